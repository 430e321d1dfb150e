// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "frontend/wgsl/lower/lower.h"

namespace lockstep::wgsl {

void Lowerer::lowerBlock(StmtId id) { lowerSequence(ast_[id].statements); }

void Lowerer::lowerSequence(StmtList statements) {
  for (const StmtId id : statements) {
    // What follows a jump can never run, and a block of the IR ends at a jump.
    if (jumped_) return;
    lowerStatement(id);
  }
}

void Lowerer::jump(kernel::Op op) {
  builder_.makeVoid(op);
  jumped_ = true;
  if (op == Op::Continue) continued_ = true;
}

void Lowerer::lowerStatement(StmtId id) {
  const Stmt& stmt = ast_[id];
  at(stmt.span);
  switch (stmt.kind) {
    case StmtKind::Block:
      return lowerBlock(id);
    case StmtKind::If:
      return lowerIf(stmt);
    case StmtKind::Switch:
      return lowerSwitch(stmt);
    case StmtKind::Loop:
      return lowerLoop(stmt);
    case StmtKind::For:
    case StmtKind::While:
      return lowerConditionLoop(stmt);
    case StmtKind::Break:
      return jump(Op::Break);
    case StmtKind::Continue:
      return jump(Op::Continue);
    case StmtKind::BreakIf: {
      // The writer says `break if false` of a loop that never ends.
      if (infoOf(stmt.condition).value && infoOf(stmt.condition).value->integer == 0) return;
      const Value condition = lowerValue(stmt.condition);
      at(stmt.span);
      builder_.breakIf(condition);
      jumped_ = true;
      return;
    }
    case StmtKind::Return: {
      const Value value = stmt.value.valid() ? lowerValue(stmt.value) : Value();
      at(stmt.span);
      if (value.valid()) {
        builder_.returnValue(value);
      } else {
        builder_.returnVoid();
      }
      jumped_ = true;
      return;
    }
    case StmtKind::Assign:
    case StmtKind::CompoundAssign:
    case StmtKind::Increment:
    case StmtKind::Decrement:
      return lowerAssign(stmt);
    case StmtKind::Call:
    case StmtKind::Phony:
      if (!infoOf(stmt.value).value) lowerValue(stmt.value);
      return;
    case StmtKind::Discard:  // only in functions that are left out
    case StmtKind::ConstAssert:
      return;
    case StmtKind::Declare:
      return lowerDeclaration(id);
  }
}

void Lowerer::lowerDeclaration(StmtId id) {
  const VariableDecl& decl = ast_.localOf(ast_[id]);
  if (decl.kind == VariableKind::Const) return;
  const EntityId entity_id = program_.declared[id.index()];
  const Entity& entity = program_[entity_id];
  const Value initial = decl.initializer.valid() ? lowerValue(decl.initializer) : Value();
  at(ast_[id].span);
  Value& value = entity_values_[entity_id.index()];
  if (decl.kind == VariableKind::Var) {
    value = builder_.var(type(types_[entity.type].element), plainName(entity.name), initial);
    return;
  }
  value = initial;
  const kernel::Value& made = builder_.module()[initial];
  if (made.kind == kernel::ValueKind::Instruction && made.name.empty()) builder_.name(initial, plainName(entity.name));
}

/// Each component is a store of its own, so that the others keep what other invocations write.
void Lowerer::lowerSwizzleAssign(const Stmt& stmt) {
  const SwizzlePlace place = *findSwizzlePlace(ast_, program_, stmt.target);
  const Value vector = lowerReference(place.vector);
  std::vector<Value> components;
  for (const uint32_t component : place.components) components.push_back(builder_.u32(component));
  if (place.index.valid()) {
    const kernel::TypeId positions = builder_.types().vector(kernel::Scalar::U32, static_cast<uint32_t>(components.size()));
    const Value index = lowerValue(place.index);
    components = {make(Op::Extract, {construct(positions, std::move(components)), runTimeIndex(index)})};
  }
  at(ast_[stmt.target].span);
  const bool in_bounds = !place.index.valid();
  const auto pointer = [&](Value component) { return builder_.access(vector, {component}, in_bounds); };
  Value value;
  if (stmt.kind == StmtKind::Assign) {
    value = lowerValue(stmt.value);
  } else {
    std::vector<Value> parts;
    for (const Value component : components) parts.push_back(builder_.load(pointer(component)));
    const Value old = parts.size() == 1 ? parts[0] : construct(type(infoOf(stmt.target).type), std::move(parts));
    const Value operand = stmt.kind == StmtKind::CompoundAssign ? lowerValue(stmt.value) : number(old, 1);
    value = stmt.kind == StmtKind::CompoundAssign ? binary(stmt.op, old, operand)
                                                  : make(stmt.kind == StmtKind::Increment ? Op::Add : Op::Sub, {old, operand});
  }
  at(stmt.span);
  for (uint32_t i = 0; i < components.size(); ++i) {
    const Value part = components.size() == 1 ? value : extract(value, i);
    builder_.store(pointer(components[i]), part);
  }
}

void Lowerer::lowerAssign(const Stmt& stmt) {
  if (!types_.isReference(infoOf(stmt.target).type)) return lowerSwizzleAssign(stmt);
  MemoryPlace place = lowerPlace(stmt.target);
  if (stmt.kind == StmtKind::Assign) {
    // The indices come before the value; the access itself computes nothing and stands beside its store.
    const Value value = lowerValue(stmt.value);
    const Value target = accessPlace(std::move(place));
    at(stmt.span);
    builder_.store(target, value);
    return;
  }
  const Value target = accessPlace(std::move(place));
  at(stmt.target.valid() ? ast_[stmt.target].span : stmt.span);
  const Value old = builder_.load(target);
  Value result;
  if (stmt.kind == StmtKind::CompoundAssign) {
    const Value operand = lowerValue(stmt.value);
    at(stmt.span);
    result = binary(stmt.op, old, operand);
  } else {
    at(stmt.span);
    result = make(stmt.kind == StmtKind::Increment ? Op::Add : Op::Sub, {old, number(old, 1)});
  }
  builder_.store(target, result);
}

void Lowerer::lowerIf(const Stmt& stmt) {
  const Value condition = lowerValue(stmt.condition);
  at(stmt.span);
  bool then_jumps = false, otherwise_jumps = false;
  builder_.ifThen(
      condition,
      [&] {
        lowerBlock(stmt.body);
        then_jumps = std::exchange(jumped_, false);
      },
      [&] {
        if (stmt.otherwise.valid()) lowerStatement(stmt.otherwise);
        otherwise_jumps = std::exchange(jumped_, false);
      });
  jumped_ = then_jumps && otherwise_jumps;
}

void Lowerer::lowerSwitch(const Stmt& stmt) {
  const Value selector = lowerValue(stmt.condition);
  at(stmt.span);
  std::vector<kernel::SwitchCase> cases;
  for (const CaseClause& clause : stmt.cases) {
    kernel::SwitchCase out;
    out.is_default = clause.is_default;
    for (const ExprId id : clause.selectors) out.selectors.push_back(scalarBits(*infoOf(id).value));
    cases.push_back(std::move(out));
  }
  builder_.switchOn(selector, std::move(cases), [&](size_t i) {
    lowerBlock(stmt.cases[i].body);
    jumped_ = false;
  });
}

void Lowerer::lowerLoop(const Stmt& stmt) {
  const bool outer_continued = std::exchange(continued_, false);
  bool reaches_end = false;
  builder_.loop(
      [&] {
        lowerBlock(stmt.body);
        reaches_end = !std::exchange(jumped_, false);
      },
      [&] {
        // An unreachable continuing block may use declarations that were dropped because they are unreachable, too.
        const bool reached = (reaches_end || continued_) && !program_.never_continued.contains(stmt.continuing.value);
        if (stmt.continuing.valid() && reached) lowerBlock(stmt.continuing);
        jumped_ = false;
      });
  continued_ = outer_continued;
}

void Lowerer::lowerCondition(ExprId condition) {
  if (infoOf(condition).value && infoOf(condition).value->integer != 0) return;
  // `while !done` stops when done is true.
  const Expr& expr = ast_[condition];
  const bool negated = expr.kind == ExprKind::Unary && expr.unary == UnaryOp::Not && !infoOf(condition).value;
  const Value value = lowerValue(negated ? expr.left : condition);
  at(expr.span);
  const Value stop = negated ? value : builder_.make(Op::Not, {value});
  builder_.ifThen(stop, [&] { builder_.breakLoop(); });
}

void Lowerer::lowerConditionLoop(const Stmt& stmt) {
  if (stmt.initializer.valid()) lowerStatement(stmt.initializer);
  at(stmt.span);
  const bool outer_continued = std::exchange(continued_, false);
  bool reaches_end = false;
  builder_.loop(
      [&] {
        if (stmt.condition.valid()) lowerCondition(stmt.condition);
        lowerBlock(stmt.body);
        reaches_end = !std::exchange(jumped_, false);
      },
      [&] {
        // As in a loop: written out it is a continuing block, and the text must be read as the same module.
        const bool reached = (reaches_end || continued_) && !program_.never_continued.contains(stmt.update.value);
        if (stmt.update.valid() && reached) lowerStatement(stmt.update);
        jumped_ = false;
      });
  continued_ = outer_continued;
}

}  // namespace lockstep::wgsl
