// SPDX-License-Identifier: Apache-2.0
// Random structured programs on u32 variables: each is emitted as a kernel and walked as a tree, one invocation at a time.
#include <map>
#include <random>

#include <fmt/format.h>

#include "tests/backends/conformance.h"

namespace lockstep::conformance {
namespace {

using kernel::Builder;
using kernel::Op;
using kernel::ValueId;

constexpr uint32_t kVariables = 5;

/// Leaves: a variable, a value that was computed before, the invocation's index in its workgroup, the workgroup's number, or a constant.
/// Else a binary operator.
struct Expression {
  enum class Kind : uint8_t { Variable, Let, Local, Group, Constant, Binary } kind = Kind::Constant;
  Op op = Op::Add;
  uint32_t value = 0;
  std::vector<Expression> operands;
};

struct Statement {
  enum class Kind : uint8_t { Assign, Let, If, Loop, Switch, Break, Continue, Return, Element } kind = Kind::Assign;
  uint32_t variable = 0;  ///< Assign; Let: its number
  Expression expression;  ///< Assign, Let: value; If: condition (odd = true); Loop: number of iterations; Switch: selector
  std::vector<std::vector<Statement>> bodies;
};
using Block = std::vector<Statement>;

class Generator {
 public:
  explicit Generator(uint32_t seed) : random_(seed) {}

  Block block(int depth, bool in_loop, bool in_switch) {
    Block out;
    uint32_t count = 1 + pick(4);
    size_t outer = visible_.size();
    for (uint32_t k = 0; k < count; ++k) {
      Statement statement = this->statement(depth, in_loop, in_switch);
      bool leaves = statement.kind == Statement::Kind::Break || statement.kind == Statement::Kind::Continue ||
                    statement.kind == Statement::Kind::Return;
      out.push_back(std::move(statement));
      if (leaves) break;
    }
    visible_.resize(outer);
    return out;
  }

 private:
  uint32_t pick(uint32_t below) { return static_cast<uint32_t>(random_() % below); }

  Expression expression(int depth) {
    Expression out;
    uint32_t kind = pick(depth > 0 ? 12 : 8);
    if (kind >= (depth > 0 ? 10u : 6u) && !visible_.empty()) {
      out.kind = Expression::Kind::Let;
      out.value = visible_[pick(static_cast<uint32_t>(visible_.size()))];
      return out;
    }
    kind %= depth > 0 ? 10 : 6;
    if (kind < 3) {
      out.kind = Expression::Kind::Variable;
      out.value = pick(kVariables);
    } else if (kind == 3) {
      out.kind = Expression::Kind::Local;
    } else if (kind == 4) {
      out.kind = Expression::Kind::Group;
    } else if (kind == 5) {
      out.value = pick(9);
    } else {
      constexpr Op kOps[] = {Op::Add, Op::Sub, Op::Mul, Op::Xor, Op::And, Op::Or, Op::Rem, Op::Min, Op::Shr};
      out.kind = Expression::Kind::Binary;
      out.op = kOps[pick(9)];
      out.operands = {expression(depth - 1), expression(depth - 1)};
    }
    return out;
  }

  Statement statement(int depth, bool in_loop, bool in_switch) {
    Statement out;
    uint32_t kind = pick(14);
    out.expression = expression(2);
    out.variable = pick(kVariables);
    if (depth > 0 && kind < 3) {
      out.kind = Statement::Kind::If;
      out.bodies.push_back(block(depth - 1, in_loop, in_switch));
      out.bodies.push_back(pick(2) == 0 ? Block{} : block(depth - 1, in_loop, in_switch));
    } else if (depth > 0 && kind < 5) {
      out.kind = Statement::Kind::Loop;
      out.bodies.push_back(block(depth - 1, true, false));
    } else if (depth > 0 && kind == 5) {
      out.kind = Statement::Kind::Switch;
      for (int k = 0; k < 3; ++k) out.bodies.push_back(block(depth - 1, in_loop, true));
    } else if (kind == 6 && (in_loop || in_switch)) {
      out.kind = Statement::Kind::Break;
    } else if (kind == 7 && in_loop) {
      out.kind = Statement::Kind::Continue;
    } else if (kind == 8 && pick(3) == 0) {
      out.kind = Statement::Kind::Return;
    } else if (kind == 9) {
      out.kind = Statement::Kind::Element;
    } else if (kind > 11) {
      out.kind = Statement::Kind::Let;
      if (pick(2) == 0) {
        out.expression = {};
        out.expression.kind = Expression::Kind::Variable;
        out.expression.value = pick(kVariables);
      }
      out.variable = lets_++;
      visible_.push_back(out.variable);
    }
    return out;
  }

  std::mt19937 random_;
  std::vector<uint32_t> visible_;
  uint32_t lets_ = 0;
};

/// One invocation.
class Walker {
 public:
  enum class Flow : uint8_t { Next, Break, Continue, Return };
  Walker(uint32_t local, uint32_t group) : local_(local), group_(group) {}
  std::array<uint32_t, kVariables> variables{};
  std::array<uint32_t, 4> list{};

  Flow run(const Block& block) {
    for (const Statement& statement : block) {
      Flow flow = run(statement);
      if (flow != Flow::Next) return flow;
    }
    return Flow::Next;
  }

 private:
  uint32_t evaluate(const Expression& x) {
    switch (x.kind) {
      case Expression::Kind::Variable:
        return variables[x.value];
      case Expression::Kind::Let:
        return lets_.at(x.value);
      case Expression::Kind::Local:
        return local_;
      case Expression::Kind::Group:
        return group_;
      case Expression::Kind::Constant:
        return x.value;
      case Expression::Kind::Binary:
        break;
    }
    uint32_t a = evaluate(x.operands[0]), b = evaluate(x.operands[1]);
    if (x.op == Op::Add) return a + b;
    if (x.op == Op::Sub) return a - b;
    if (x.op == Op::Mul) return a * b;
    if (x.op == Op::Xor) return a ^ b;
    if (x.op == Op::And) return a & b;
    if (x.op == Op::Or) return a | b;
    if (x.op == Op::Rem) return b == 0 ? 0 : a % b;
    if (x.op == Op::Min) return a < b ? a : b;
    return a >> (b % 32);
  }

  Flow run(const Statement& x) {
    switch (x.kind) {
      case Statement::Kind::Assign:
        variables[x.variable] = evaluate(x.expression);
        return Flow::Next;
      case Statement::Kind::Let:
        lets_[x.variable] = evaluate(x.expression);
        return Flow::Next;
      case Statement::Kind::Element: {
        uint32_t& element = list[evaluate(x.expression) % 4];
        element += variables[x.variable];
        variables[x.variable] = element;
        return Flow::Next;
      }
      case Statement::Kind::If:
        return run(x.bodies[evaluate(x.expression) % 2 == 1 ? 0 : 1]);
      case Statement::Kind::Loop: {
        uint32_t count = evaluate(x.expression) % 5;
        for (uint32_t k = 0; k < count; ++k) {
          Flow flow = run(x.bodies[0]);
          if (flow == Flow::Break) break;
          if (flow == Flow::Return) return flow;
        }
        return Flow::Next;
      }
      case Statement::Kind::Switch: {
        Flow flow = run(x.bodies[evaluate(x.expression) % 3]);
        return flow == Flow::Break ? Flow::Next : flow;
      }
      case Statement::Kind::Break:
        return Flow::Break;
      case Statement::Kind::Continue:
        return Flow::Continue;
      case Statement::Kind::Return:
        return Flow::Return;
    }
    return Flow::Next;
  }

  uint32_t local_, group_;
  std::map<uint32_t, uint32_t> lets_;
};

/// The program in a function `body(local, group, ptr to the variables...)`, so that its returns are those of an inlined function.
class Emitter {
 public:
  kernel::Module module(const Block& program, uint32_t group_size) {
    kernel::TypeTable& types = builder_.types();
    ValueId out = builder_.global({.name = "out",
                                   .value = {},
                                   .type = types.array(types.u32(), 0),
                                   .space = kernel::AddressSpace::Storage,
                                   .access = kernel::Access::ReadWrite,
                                   .group = 0,
                                   .binding = 0,
                                   .initializer = {}});
    kernel::TypeId pointer = types.pointer(kernel::AddressSpace::Function, types.u32());
    kernel::FunctionId body = builder_.function("body", types.voidType());
    local_ = builder_.parameter(body, "local", types.u32());
    group_ = builder_.parameter(body, "group", types.u32());
    for (uint32_t k = 0; k < kVariables; ++k) variables_.push_back(builder_.parameter(body, fmt::format("v{}", k), pointer));
    builder_.enterFunction(body);
    list_ = builder_.var(types.array(types.u32(), 4), "list");
    emit(program);
    kernel::FunctionId main = builder_.function("main", types.voidType());
    ValueId local = builder_.parameter(main, "local", types.u32(), kernel::Builtin::LocalInvocationIndex);
    ValueId group = builder_.parameter(main, "group", types.vector(kernel::Scalar::U32, 3), kernel::Builtin::WorkgroupId);
    builder_.setWorkgroupSize(main, {group_size, 1, 1});
    builder_.enterFunction(main);
    ValueId number = builder_.extract(group, 0);
    std::vector<ValueId> arguments{local, number};
    for (uint32_t k = 0; k < kVariables; ++k) arguments.push_back(builder_.var(types.u32(), fmt::format("m{}", k)));
    builder_.call(body, arguments);
    ValueId first = builder_.make(Op::Add, {builder_.make(Op::Mul, {number, builder_.u32(group_size)}), local});
    ValueId start = builder_.make(Op::Mul, {first, builder_.u32(kVariables)});
    for (uint32_t k = 0; k < kVariables; ++k) {
      ValueId at = builder_.make(Op::Add, {start, builder_.u32(k)});
      builder_.store(builder_.access(out, {at}), builder_.load(arguments[2 + k]));
    }
    return builder_.take();
  }

 private:
  ValueId emit(const Expression& x) {
    switch (x.kind) {
      case Expression::Kind::Variable:
        return builder_.load(variables_[x.value]);
      case Expression::Kind::Let:
        return lets_.at(x.value);
      case Expression::Kind::Local:
        return local_;
      case Expression::Kind::Group:
        return group_;
      case Expression::Kind::Constant:
        return builder_.u32(x.value);
      case Expression::Kind::Binary:
        break;
    }
    ValueId a = emit(x.operands[0]), b = emit(x.operands[1]);
    return builder_.make(x.op, {a, b});
  }

  ValueId remainder(const Expression& x, uint32_t by) { return builder_.make(Op::Rem, {emit(x), builder_.u32(by)}); }

  void emit(const Block& block) {
    for (const Statement& statement : block) emit(statement);
  }

  void emit(const Statement& x) {
    switch (x.kind) {
      case Statement::Kind::Assign:
        builder_.store(variables_[x.variable], emit(x.expression));
        return;
      case Statement::Kind::Let:
        lets_[x.variable] = emit(x.expression);
        return;
      case Statement::Kind::Element: {
        ValueId element = builder_.access(list_, {remainder(x.expression, 4)});
        builder_.store(element, builder_.make(Op::Add, {builder_.load(element), builder_.load(variables_[x.variable])}));
        builder_.store(variables_[x.variable], builder_.load(element));
        return;
      }
      case Statement::Kind::If: {
        ValueId odd = builder_.make(Op::Eq, {remainder(x.expression, 2), builder_.u32(1)});
        builder_.ifThen(odd, [&] { emit(x.bodies[0]); }, [&] { emit(x.bodies[1]); });
        return;
      }
      case Statement::Kind::Loop:
        builder_.forRange(builder_.u32(0), remainder(x.expression, 5), builder_.u32(1), "k", [&](ValueId) { emit(x.bodies[0]); });
        return;
      case Statement::Kind::Switch:
        builder_.switchOn(remainder(x.expression, 3), {{{0}, false}, {{}, true}, {{2}, false}}, [&](size_t k) { emit(x.bodies[k]); });
        return;
      case Statement::Kind::Break:
        builder_.breakLoop();
        return;
      case Statement::Kind::Continue:
        builder_.continueLoop();
        return;
      case Statement::Kind::Return:
        builder_.returnVoid();
        return;
    }
  }

  Builder builder_;
  std::vector<ValueId> variables_;
  std::map<uint32_t, ValueId> lets_;
  ValueId local_, group_, list_;
};

TEST_P(Conformance, random_programs) {
  uint32_t programs = GetParam().exact ? 800 : 25;
  for (uint32_t seed = 1; seed <= programs; ++seed) {
    Block program = Generator(seed).block(4, false, false);
    // Small groups run side by side on the reference, large ones alone.
    const uint32_t size = seed % 2 == 0 ? 24 : 150, groups = seed % 2 == 0 ? 13 : 3;
    kernel::Module module = Emitter().module(program, size);
    std::vector<Words> out = run(module, {Words(groups * size * kVariables, 77)}, {groups, 1, 1});
    for (uint32_t group = 0; group < groups; ++group) {
      for (uint32_t local = 0; local < size; ++local) {
        Walker walker(local, group);
        walker.run(program);
        for (uint32_t k = 0; k < kVariables; ++k)
          ASSERT_EQ(out[0][(group * size + local) * kVariables + k], walker.variables[k])
              << "seed " << seed << " group " << group << " local " << local << " variable " << k << "\n"
              << kernel::print(module);
      }
    }
  }
}

}  // namespace
}  // namespace lockstep::conformance
