// SPDX-License-Identifier: Apache-2.0
// The checker's state, internal to the reader. One class over several files: check_module, check_declarations, check_types,
// check_expressions, check_operators, check_constructors, check_builtins, check_subgroups, check_subgroup_matrices,
// check_statements.
#pragma once

#include <set>
#include <string_view>
#include <unordered_map>

#include "frontend/wgsl/check/local_scopes.h"

namespace lockstep::wgsl {

/// A predeclared type name: a complete type ("vec3f") or a generator that takes or infers its parameters ("vec3").
struct TypeName {
  Kind kind = Kind::Error;
  uint32_t columns = 0, rows = 0;
  Ty scalar;  ///< invalid: not given by the name
  kernel::MatrixUse use = kernel::MatrixUse::Left;
};
std::optional<TypeName> findTypeName(std::string_view name);
/// Textures, samplers and what extensions have.
bool isUnsupportedType(std::string_view name);

/// Where an attribute may stand.
enum class AttributePlace : uint8_t { Function, EntryParameter, Parameter, EntryResult, Result, Member, Variable, Override };

/// Scalars that a builtin's parameter T ranges over.
enum class Family : uint8_t { Float, Numeric, Signed, Integer, F32, U32 };

class Checker {
 public:
  enum class Overrides : uint8_t { HaveNoValues, HaveValues, AreConstants };
  Checker(const Ast& ast, const ReadOptions& options, Overrides overrides, Reporter& reporter);
  Program run();

 private:
  enum class State : uint8_t { Waiting, Running, Done };
  /// A problem that counts only when an entry point reaches the declaration that has it.
  struct Deferred {
    const char* code;
    Span where;
    std::string message, remedy;
    std::vector<Note> notes;
  };
  struct Global {
    Declaration declaration;
    Span span;  // of the name
    State state = State::Waiting;
    EntityId entity;   // variables
    Ty type = kError;  // structs and aliases
    std::set<size_t> uses = {};
    std::vector<Deferred> deferred = {};
  };
  /// The loop or switch that encloses a statement.
  struct Breakable {
    bool is_loop = false;
    bool in_continuing = false;            // its continuing block is being checked
    size_t body_scope = 0;                 // depth of the loop body's scope
    uint32_t first_continue = UINT32_MAX;  // offset of the first continue statement
  };
  /// What a name means.
  struct Meaning {
    enum class Kind : uint8_t { Unknown, Value, Function, Type, TypeGenerator, Builtin, Failed } kind = Kind::Unknown;
    EntityId entity;
    uint32_t function = 0;
    Ty type = kError;
    TypeName type_name;
    Builtin builtin = Builtin::Abs;
  };

  // check_module.cpp
  void declareGlobals();
  void resolveGlobal(Global& global);
  void orderFunctions();
  /// Per global: whether it is used by one that `roots` names, directly or not.
  std::vector<bool> reachedFrom(const std::vector<size_t>& roots) const;
  std::vector<size_t> entryPoints() const;
  void reportDeferred();
  void leaveOut(const std::vector<bool>& reached);
  void checkBindings();
  void listReached();
  void checkExtensions();
  void checkUnusedOverrides();
  void checkMatrixElements();

  // check_attributes.cpp: false after reporting
  bool checkAttributes(const std::vector<Attribute>& attributes, AttributePlace place);
  bool checkInterface(const std::vector<Attribute>& attributes, Ty type);

  // check_declarations.cpp
  EntityId checkGlobalVariable(const VariableDecl& decl);
  EntityId checkOverride(const VariableDecl& decl);
  EntityId checkModuleVar(const VariableDecl& decl);
  EntityId checkConst(const VariableDecl& decl, size_t scope);
  Ty checkStruct(const StructDecl& decl);
  void checkSignature(uint32_t index);
  void checkFunctionBody(uint32_t index);
  void checkEntryPoint(uint32_t index);
  std::array<uint32_t, 3> workgroupSize(const Attribute& attribute, bool& good);
  /// 0 when it is not known yet, or after reporting.
  uint32_t subgroupSize(const Attribute& attribute, bool& good);
  void checkSubgroups(const FunctionDecl& decl, const FunctionInfo& info, bool& good);
  /// Builtin values of other stages are an error unless `other_stage` is there to be set.
  kernel::Builtin builtinAttribute(const Attribute& attribute, Ty type, bool* other_stage = nullptr);
  /// The value of an attribute's argument as a non-negative integer constant.
  std::optional<uint32_t> attributeNumber(const Attribute& attribute, size_t argument = 0);
  /// Address space and access of var<...> or ptr<...>.
  bool readSpace(ExprId expr, AddressSpace& space);
  bool readAccess(ExprId expr, Access& access);
  bool readDirection(ExprId expr, bool& by_columns);
  bool isShadowed(const Expr& expr);
  std::string whyNotIn(Ty type, AddressSpace space, Access access) const;
  bool checkUniformLayout(Ty type, Span where);
  std::optional<ConstValue> overrideValue(double value, Ty type);

  // check_types.cpp
  Ty resolveType(ExprId expr);
  Ty typeFromName(const TypeName& name, const Expr& expr);
  Ty arrayType(const Expr& expr);
  Ty pointerType(const Expr& expr);
  /// False after reporting. The count is 0 when it is an override expression without value.
  bool arrayCount(ExprId expr, uint32_t& count, uint32_t& override_count);
  Ty limitedType(Ty type, Span where);
  Meaning lookUp(std::string_view name, Span where);
  /// "did you mean 'x'?" for a name that is not declared; empty when nothing is near.
  std::string similarName(std::string_view name) const;

  // check_expressions.cpp: each fills `info` of the expression.
  void checkExpr(ExprId id);
  /// checkExpr, and the type that reading gives; reports references that cannot be read.
  Ty checkValue(ExprId id);
  void checkIdentifier(ExprId id);
  void checkUnary(ExprId id);
  void checkIndex(ExprId id);
  void checkMember(ExprId id);
  void checkSwizzle(ExprId id, Ty base, bool through_reference);
  void checkCall(ExprId id);
  void checkUserCall(ExprId id, uint32_t function);
  /// Type, space and access of the memory that `expr` refers to when it is a reference or a pointer.
  std::optional<Type> memoryView(ExprId expr) const;
  bool constantCondition(ExprId id);
  /// Where a name that is not what its user needs is declared, and which module-scope declaration it hides; nothing if it hides none.
  [[nodiscard]] std::vector<Note> hiddenBy(EntityId local) const;

  // Conversion of an already checked expression to a type; reports when there is none.
  bool materialize(ExprId id, Ty to, std::string_view context);
  [[nodiscard]] bool materializeDefault(ExprId id);
  void setResult(ExprId id, Ty type, Stage stage, const std::optional<Evaluated>& value);
  ExprInfo& infoOf(ExprId id) { return program_.expressions[id.index()]; }
  [[nodiscard]] Ty valueType(ExprId id) const { return program_.types.value(program_[id].type); }
  [[nodiscard]] Stage stageOf(ExprList ids) const;

  // check_operators.cpp
  void checkBinary(ExprId id);
  void checkBinaryNode(ExprId id);
  /// Type of `left op right` with both sides converted; kError after reporting.
  Ty binaryType(BinaryOp op, Span span, ExprId left, ExprId right);
  Ty shiftType(BinaryOp op, Span span, ExprId left, ExprId right);
  Ty arithmeticShape(BinaryOp op, Ty left, Ty right);
  Ty commonScalar(Ty a, Ty b) const;
  Ty operatorError(BinaryOp op, Span span, ExprId left, ExprId right);
  void checkDivisor(ExprId left, ExprId right);

  // check_constructors.cpp
  void checkConstructor(ExprId id, Ty type);
  void checkInferredConstructor(ExprId id, const TypeName& name);
  void constructScalar(ExprId id, Ty type);
  void constructVector(ExprId id, Ty type);
  void constructMatrix(ExprId id, Ty type);
  void constructComposite(ExprId id, Ty type);
  bool checkArguments(const Expr& call);
  Ty commonType(ExprList ids);
  void finishConstructor(ExprId id, Ty type);
  std::optional<Evaluated> constantComposite(const Expr& call, Ty type);

  // check_builtins.cpp
  void checkBuiltinCall(ExprId id, Builtin builtin);
  Ty builtinType(const Expr& call, Builtin builtin);
  Ty sameArguments(const Expr& call, size_t first, size_t count, Family family);
  Ty vectorsAndScalar(const Expr& call);
  Ty vectorBuiltinType(const Expr& call, Builtin builtin);
  Ty selectType(const Expr& call);
  Ty memoryBuiltinType(const Expr& call, Builtin builtin);
  Ty printType(const Expr& call);
  bool checkPrinted(const Expr& call);
  Ty bitcastType(const Expr& call);
  Ty noOverload(const Expr& call);
  bool argumentCount(const Expr& call, size_t count);
  void checkLdexpExponent(const Expr& call);
  void checkConstantArguments(const Expr& call, Builtin builtin);

  // check_subgroups.cpp
  Ty subgroupType(const Expr& call, Builtin builtin);
  bool checkLane(const Expr& call, Builtin builtin);

  // check_subgroup_matrices.cpp
  Ty subgroupMatrixType(const TypeName& name, const Expr& expr);
  Ty matrixComponent(ExprId id, const Expr& matrix, kernel::MatrixUse use);
  /// False after reporting. 0 when it is an override expression without value.
  bool matrixExtent(ExprId id, std::string_view what, uint32_t& extent);
  void constructSubgroupMatrix(ExprId id, Ty type);
  Ty matrixBuiltinType(const Expr& call, Builtin builtin);
  Ty matrixConversion(const Expr& call, Ty to_type, Span to_place);
  Ty matrixProduct(const Expr& call, Ty sum, Span sum_place);
  bool checkMatrixPlace(const Expr& call, Ty matrix, bool loads);
  bool checkMatrixNumber(const Expr& call, ExprId id, std::string_view what);
  bool checkMatrixLines(const Expr& call, Ty array, Ty matrix, uint32_t held, bool by_columns);
  bool subgroupMatricesEnabled(const Expr& expr);
  bool hasDirectionArgument(const Expr& call, Signature signature);

  // check_statements.cpp
  Behavior checkStatement(StmtId id);
  Behavior checkBlock(StmtId id, bool new_scope = true);
  Behavior checkSequence(StmtList statements);
  Behavior checkSwitch(const Stmt& stmt);
  Behavior checkLoop(const Stmt& stmt);
  Behavior checkFor(const Stmt& stmt);
  Behavior checkWhile(const Stmt& stmt);
  Behavior checkJump(const Stmt& stmt);
  void checkReturn(const Stmt& stmt);
  void checkAssign(const Stmt& stmt);
  void checkCallStatement(const Stmt& stmt);
  void checkCondition(ExprId id, std::string_view what);
  void checkConstAssert(ExprId id);
  EntityId checkLocal(const VariableDecl& decl);
  EntityId declareLocal(std::string_view name, Entity entity);
  /// Type of the value that an assignment may store through `target`; kError after reporting.
  Ty assignable(ExprId target);
  Ty assignableSwizzle(ExprId target, const SwizzlePlace& place);

  EntityId addEntity(Entity entity);
  Ty fail(const char* code, Span where, std::string message, std::string remedy = {}, std::vector<Note> notes = {});
  Ty defer(const char* code, Span where, std::string message, std::string remedy = {}, std::vector<Note> notes = {});
  [[nodiscard]] std::string name(Ty type) const { return program_.types.toString(type); }

  const Ast& ast_;
  const ReadOptions& options_;
  const Overrides overrides_;
  Reporter& reporter_;
  Program program_;
  Types& types_;
  ConstEval eval_;
  std::vector<Global> globals_;
  std::unordered_map<std::string_view, size_t> global_names_;
  std::vector<size_t> function_globals_;          // parallel to Ast::functions
  size_t unit_ = SIZE_MAX;                        // the global whose declaration is being checked
  std::map<uint32_t, uint32_t> override_counts_;  // override entity -> Type::override_count
  std::set<std::string> used_overrides_;
  std::map<size_t, Span> matrix_elements_;  // global -> its first use of an element of a subgroup matrix
  std::set<Ty> uniform_types_;              // whose layout suits uniform buffers
  std::set<uint32_t> override_ids_;
  LocalScopes scopes_;
  std::vector<Breakable> breakables_;
  uint32_t function_ = UINT32_MAX;  // whose body is being checked
  uint32_t quiet_ = 0;              // > 0: constant evaluation errors are ignored (unevaluated operand)
  uint32_t resolving_ = 0;          // nesting of resolveGlobal
  bool f16_enabled_ = false, subgroups_enabled_ = false, subgroup_sizes_enabled_ = false, subgroup_matrices_enabled_ = false;
};

}  // namespace lockstep::wgsl
