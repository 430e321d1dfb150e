// SPDX-License-Identifier: Apache-2.0
// The syntax tree of a WGSL module: arenas and ids, so that no text can make building or freeing it recurse deeply.
// Names are views into the source text. Lists are views into memory of the Ast. Types are written as expressions (WGSL's
// template-elaborated identifiers).
#pragma once

#include <cstdint>
#include <memory>
#include <memory_resource>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/wgsl/syntax/source.h"
#include "frontend/wgsl/syntax/token.h"
#include "ir/support/id.h"

namespace lockstep::wgsl {

using ExprId = Id<struct WgslExprTag>;
using StmtId = Id<struct WgslStmtTag>;

enum class ExprKind : uint8_t { Literal, Identifier, Call, Unary, Binary, Index, Member };
enum class UnaryOp : uint8_t { Negate, Not, Complement, AddressOf, Dereference };
enum class BinaryOp : uint8_t { Add, Sub, Mul, Div, Rem, And, Or, Xor, Shl, Shr, Eq, Ne, Lt, Le, Gt, Ge, LogicalAnd, LogicalOr };
std::string_view toString(BinaryOp op);  ///< "+"
std::string_view toString(UnaryOp op);   ///< "-"

using ExprList = std::span<const ExprId>;
using StmtList = std::span<const StmtId>;

/// Which fields are used depends on `kind`.
struct Expr {
  ExprKind kind = ExprKind::Literal;
  UnaryOp unary = UnaryOp::Negate;
  BinaryOp binary = BinaryOp::Add;
  bool has_templates = false;  ///< Identifier, Call: a template list was written
  uint32_t depth = 1;          ///< how deeply a recursive visitor of this tree nests (left operands of Binary do not count)
  Span span;
  Span name_span;         ///< of `name`
  std::string_view name;  ///< Identifier; Call: callee; Member: member; Literal that is a text: with its quotes
  ExprList templates;     ///< Identifier, Call
  ExprList arguments;     ///< Call
  ExprId left;            ///< Unary, Binary, Index: base, Member: base
  ExprId right;           ///< Binary, Index: index
  uint32_t literal = 0;   ///< Literal: index into Ast::literals
};

struct Attribute {
  Span span;
  std::string_view name;
  bool has_parentheses = false;
  ExprList arguments;
  uint32_t filter = 0;  ///< diagnostic: index into Ast::filters
};

/// The directive `diagnostic(severity, rule);` or the attribute `@diagnostic(severity, rule)`.
struct DiagnosticFilter {
  Span span;
  Severity severity = Severity::Error;
  std::string rule;  ///< "subgroup_uniformity", or "prefix.name"
  Span range;        ///< the part of the text that it is for; a directive's is everything
};

enum class VariableKind : uint8_t { Const, Override, Let, Var };

/// A declaration of const, override, let or var, at either scope.
struct VariableDecl {
  VariableKind kind = VariableKind::Let;
  Span span;
  std::string_view name;
  Span name_span;
  std::vector<Attribute> attributes;
  ExprList templates;  ///< var<...>: address space, access mode
  ExprId type;         ///< may be invalid
  ExprId initializer;  ///< may be invalid
};

enum class StmtKind : uint8_t {
  Block,
  If,
  Switch,
  Loop,
  For,
  While,
  Break,
  BreakIf,
  Continue,
  Return,
  Assign,
  CompoundAssign,
  Increment,
  Decrement,
  Call,
  Phony,
  ConstAssert,
  Declare,
  Discard,
};

struct CaseClause {
  Span span;
  ExprList selectors;
  bool is_default = false;
  StmtId body;
};

struct Stmt {
  StmtKind kind = StmtKind::Block;
  BinaryOp op = BinaryOp::Add;  ///< CompoundAssign
  Span span;
  ExprId condition;                   ///< If, While, For (may be invalid), BreakIf, Switch: selector, ConstAssert
  ExprId target;                      ///< Assign, CompoundAssign, Increment, Decrement: left-hand side
  ExprId value;                       ///< Assign, CompoundAssign, Phony, Return (may be invalid), Call
  StmtId body;                        ///< If: then; Loop, For, While
  StmtId otherwise;                   ///< If: a Block or an If; may be invalid
  StmtId continuing;                  ///< Loop; may be invalid
  StmtId initializer;                 ///< For; may be invalid
  StmtId update;                      ///< For; may be invalid
  uint32_t local = 0;                 ///< Declare: index into Ast::locals
  StmtList statements;                ///< Block
  std::span<const CaseClause> cases;  ///< Switch
};

struct ParameterDecl {
  std::vector<Attribute> attributes;
  std::string_view name;
  Span name_span;
  ExprId type;
};

struct FunctionDecl {
  Span span;
  std::string_view name;
  Span name_span;
  std::vector<Attribute> attributes;
  std::vector<ParameterDecl> parameters;
  std::vector<Attribute> return_attributes;
  ExprId return_type;  ///< invalid: none
  StmtId body;
  bool whole = true;  ///< false when statements were left out because of syntax errors
};

struct StructDecl {
  std::string_view name;
  Span name_span;
  std::vector<ParameterDecl> members;
};

struct AliasDecl {
  std::string_view name;
  Span name_span;
  ExprId type;
};

enum class DeclarationKind : uint8_t { Variable, Function, Struct, Alias, ConstAssert };

/// One module-scope declaration, as an index into the vector of its kind.
struct Declaration {
  DeclarationKind kind = DeclarationKind::Variable;
  uint32_t index = 0;
};

struct Directive {
  Span span;
  std::string_view name;  ///< the extension of `enable`, the feature of `requires`
};

struct Ast {
  std::vector<Expr> expressions;
  std::vector<Stmt> statements;
  std::vector<Literal> literals;
  std::vector<VariableDecl> locals;     ///< what the Declare statements declare
  std::vector<VariableDecl> variables;  ///< of module scope
  std::vector<FunctionDecl> functions;
  std::vector<StructDecl> structs;
  std::vector<AliasDecl> aliases;
  std::vector<ExprId> const_asserts;
  std::vector<Declaration> declarations;  ///< in source order
  std::vector<Directive> enables;
  std::vector<Directive> requirements;
  std::vector<DiagnosticFilter> filters;  ///< in source order
  bool whole = true;                      ///< false when declarations, or parts of them, were skipped because of syntax errors

  [[nodiscard]] const Expr& operator[](ExprId id) const { return expressions[id.index()]; }
  [[nodiscard]] const Stmt& operator[](StmtId id) const { return statements[id.index()]; }
  /// Whether it is a "text", which has no type.
  [[nodiscard]] bool isText(ExprId id) const {
    const Expr& expr = expressions[id.index()];
    return expr.kind == ExprKind::Literal && literals[expr.literal].kind == LiteralKind::Text;
  }
  /// Of a Declare statement.
  [[nodiscard]] const VariableDecl& localOf(const Stmt& stmt) const { return locals[stmt.local]; }

  /// A copy of a list that lives as long as the Ast, wherever that is moved.
  template <class T>
  std::span<const T> keep(std::span<const T> list) {
    static_assert(std::is_trivially_destructible_v<T>);
    if (list.empty()) return {};
    T* copy = static_cast<T*>(lists->allocate(list.size_bytes(), alignof(T)));
    std::uninitialized_copy(list.begin(), list.end(), copy);
    return {copy, list.size()};
  }
  std::unique_ptr<std::pmr::monotonic_buffer_resource> lists = std::make_unique<std::pmr::monotonic_buffer_resource>();
};

/// Syntax only; problems go to the reporter and the statements, members and declarations that have them are left out.
Ast parseModule(const Source& source, Reporter& reporter);

}  // namespace lockstep::wgsl
