// SPDX-License-Identifier: Apache-2.0
// The syntax tree of a WGSL module: arenas and ids, so that no text can make building or freeing it recurse deeply.
// Names are views into the source text. Types are written as expressions (WGSL's template-elaborated identifiers).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/wgsl/source.h"
#include "frontend/wgsl/token.h"
#include "ir/support/id.h"

namespace lockstep::wgsl {

using ExprId = Id<struct WgslExprTag>;
using StmtId = Id<struct WgslStmtTag>;

enum class ExprKind : uint8_t { Literal, Identifier, Call, Unary, Binary, Index, Member };
enum class UnaryOp : uint8_t { Negate, Not, Complement, AddressOf, Dereference };
enum class BinaryOp : uint8_t { Add, Sub, Mul, Div, Rem, And, Or, Xor, Shl, Shr, Eq, Ne, Lt, Le, Gt, Ge, LogicalAnd, LogicalOr };
std::string_view toString(BinaryOp op);  ///< "+"
std::string_view toString(UnaryOp op);   ///< "-"

/// Which fields are used depends on `kind`.
struct Expr {
  ExprKind kind = ExprKind::Literal;
  Span span;
  uint32_t depth = 1;             ///< how deeply a recursive visitor of this tree nests (left operands of Binary do not count)
  Literal literal;                ///< Literal
  std::string_view name;          ///< Identifier; Call: callee; Member: member
  Span name_span;                 ///< of `name`
  bool has_templates = false;     ///< Identifier, Call: a template list was written
  std::vector<ExprId> templates;  ///< Identifier, Call
  std::vector<ExprId> arguments;  ///< Call
  UnaryOp unary = UnaryOp::Negate;
  BinaryOp binary = BinaryOp::Add;
  ExprId left;   ///< Unary, Binary, Index: base, Member: base
  ExprId right;  ///< Binary, Index: index
};

struct Attribute {
  Span span;
  std::string_view name;
  bool has_parentheses = false;
  std::vector<ExprId> arguments;
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
  std::vector<ExprId> templates;  ///< var<...>: address space, access mode
  ExprId type;                    ///< may be invalid
  ExprId initializer;             ///< may be invalid
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
  std::vector<ExprId> selectors;
  bool is_default = false;
  StmtId body;
};

struct Stmt {
  StmtKind kind = StmtKind::Block;
  Span span;
  ExprId condition;                ///< If, While, For (may be invalid), BreakIf, Switch: selector, ConstAssert
  ExprId target;                   ///< Assign, CompoundAssign, Increment, Decrement: left-hand side
  ExprId value;                    ///< Assign, CompoundAssign, Phony, Return (may be invalid), Call
  BinaryOp op = BinaryOp::Add;     ///< CompoundAssign
  std::vector<StmtId> statements;  ///< Block
  StmtId body;                     ///< If: then; Loop, For, While
  StmtId otherwise;                ///< If: a Block or an If; may be invalid
  StmtId continuing;               ///< Loop; may be invalid
  StmtId initializer;              ///< For; may be invalid
  StmtId update;                   ///< For; may be invalid
  std::vector<CaseClause> cases;   ///< Switch
  VariableDecl variable;           ///< Declare
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
  std::vector<VariableDecl> variables;
  std::vector<FunctionDecl> functions;
  std::vector<StructDecl> structs;
  std::vector<AliasDecl> aliases;
  std::vector<ExprId> const_asserts;
  std::vector<Declaration> declarations;  ///< in source order
  std::vector<Directive> enables;
  std::vector<Directive> requirements;
  std::vector<DiagnosticFilter> filters;  ///< in source order
  bool whole = true;                      ///< false when parts of the text were skipped because of syntax errors

  [[nodiscard]] const Expr& operator[](ExprId id) const { return expressions[id.index()]; }
  [[nodiscard]] const Stmt& operator[](StmtId id) const { return statements[id.index()]; }
};

/// Syntax only; problems go to the reporter and the statements, members and declarations that have them are left out.
Ast parseModule(const Source& source, Reporter& reporter);

}  // namespace lockstep::wgsl
