// SPDX-License-Identifier: Apache-2.0
#include "tests/prover/random_kernel.h"

#include <array>

#include "ir/kernel/builder.h"

namespace lockstep::prover {
namespace {

using namespace kernel;

constexpr std::array<uint32_t, 14> kNumbers{0, 1, 2, 3, 7, 8, 9, 10, 31, kOutputs - 1, kOutputs, 0x7fffffff, 0x80000000, 0xffffffff};
constexpr std::array<uint32_t, 9> kSteps{1, 1, 2, 3, 4, 0x10000, 0xffffffff, 0x40000000, 0x80000000};
constexpr std::array<uint32_t, 4> kLengths{1, 3, 8, 10};
constexpr std::array kArithmetic{Op::Add, Op::Add, Op::Sub, Op::Mul, Op::Div, Op::Rem, Op::And, Op::Or, Op::Xor, Op::Min, Op::Min, Op::Max};
constexpr std::array kCompare{Op::Lt, Op::Le, Op::Gt, Op::Ge, Op::Eq, Op::Ne};

constexpr int kDeepest = 4;

class Maker {
 public:
  explicit Maker(const std::vector<uint32_t>& choices) : choices_(choices) {}

  Module make() {
    const FunctionId main = b_.function("main", b_.types().voidType());
    lane_ = b_.parameter(main, "lane", b_.types().u32(), Builtin::LocalInvocationIndex);
    b_.setWorkgroupSize(main, {std::array<uint32_t, 3>{1, 4, 8}[pick(3)], 1, 1});
    in_ = variable("in", b_.types().array(b_.types().u32(), kInputs), AddressSpace::Storage, Access::Read, 0);
    out_ = variable("out", b_.types().array(b_.types().u32(), 0), AddressSpace::Storage, Access::ReadWrite, 1);
    arrays_.push_back(out_);
    arrays_.push_back(variable("shared", array(), AddressSpace::Workgroup, Access::ReadWrite, 0));
    arrays_.push_back(variable("own", array(), AddressSpace::Private, Access::ReadWrite, 0));
    b_.enterFunction(main);
    arrays_.push_back(b_.var(array(), "local"));
    for (int i = 0; i < 3; ++i) {
      const bool is_signed = pick(3) == 0;
      variables_.push_back(b_.var(is_signed ? b_.types().i32() : b_.types().u32(), "v", value(is_signed, 1)));
    }
    statements(3, kDeepest);
    for (const ValueId v : variables_) use(as(false, b_.load(v)));
    return b_.take();
  }

 private:
  /// Where the list ends, what makes no more of the kernel.
  uint32_t pick(uint32_t count) { return at_ < choices_.size() ? choices_[at_++] % count : 0; }
  [[nodiscard]] bool isSpent() const { return at_ >= choices_.size(); }
  TypeId array() { return b_.types().array(b_.types().u32(), kLengths[pick(kLengths.size())]); }

  ValueId variable(const std::string& name, TypeId type, AddressSpace space, Access access, uint32_t binding) {
    return b_.global(
        {.name = name, .value = {}, .type = type, .space = space, .access = access, .group = 0, .binding = binding, .initializer = {}});
  }

  bool isSigned(ValueId v) { return b_.types()[b_.typeIdOf(v)].is(Scalar::I32); }
  ValueId number(bool is_signed, uint32_t bits) { return is_signed ? b_.i32(static_cast<int32_t>(bits)) : b_.u32(bits); }
  ValueId as(bool is_signed, ValueId v) {
    if (isSigned(v) == is_signed) return v;
    return b_.makeAs(pick(2) == 0 ? Op::Bitcast : Op::Convert, is_signed ? b_.types().i32() : b_.types().u32(), {v});
  }

  /// An integer; `depth` operations at most.
  ValueId value(bool is_signed, int depth) {
    switch (depth == 0 ? pick(4) : pick(8)) {
      case 0:
        return number(is_signed, kNumbers[pick(kNumbers.size())]);
      case 1:
        return as(is_signed, variables_.empty() ? lane_ : b_.load(variables_[pick(static_cast<uint32_t>(variables_.size()))]));
      case 2:
        return as(is_signed, lane_);
      case 3:
        return as(is_signed, stale_.empty() || pick(2) == 0 ? b_.load(b_.access(in_, {b_.u32(pick(kInputs))}, true))
                                                            : stale_[pick(static_cast<uint32_t>(stale_.size()))]);
      case 4: {
        const Op op = pick(2) == 0 ? Op::Shr : Op::Shl;
        const ValueId left = value(is_signed, depth - 1);
        return b_.make(op, {left, value(false, depth - 1)});
      }
      case 5: {
        const ValueId no = value(is_signed, depth - 1), yes = value(is_signed, depth - 1);
        return b_.make(Op::Select, {no, yes, condition(depth - 1)});
      }
      default: {
        const Op op = kArithmetic[pick(kArithmetic.size())];
        const ValueId left = value(is_signed, depth - 1);
        return b_.make(op, {left, value(is_signed, depth - 1)});
      }
    }
  }

  ValueId condition(int depth) {
    const uint32_t kind = depth <= 0 ? 0 : pick(6);
    if (kind == 4) return b_.make(Op::Not, {condition(depth - 1)});
    if (kind == 5) {
      const ValueId left = condition(depth - 1);
      return b_.make(pick(2) == 0 ? Op::And : Op::Or, {left, condition(depth - 1)});
    }
    if (pick(5) == 0) {
      const ValueId index = noted(value(false, 1));
      return b_.make(kCompare[pick(2)], {index, b_.make(Op::ArrayLength, {out_})});
    }
    const bool is_signed = pick(3) == 0;
    const ValueId left = value(is_signed, depth <= 0 ? 0 : 1);
    if (!is_signed) noted(left);
    return b_.make(kCompare[pick(kCompare.size())], {left, value(is_signed, 0)});
  }

  /// May be used again in this block: then a condition has told something about it.
  ValueId noted(ValueId v) {
    if (pick(2) == 0) stale_.push_back(v);
    return v;
  }

  /// An element of some array. A constant index must be in range for the kernel to be valid.
  ValueId element(int depth) {
    const ValueId array = arrays_[pick(static_cast<uint32_t>(arrays_.size()))];
    ValueId index = value(pick(3) == 0, depth);
    const uint32_t length = b_.types()[b_.types()[b_.typeIdOf(array)].element].count;
    const Value& made = b_.module()[index];
    if (made.kind == ValueKind::Constant && length != 0) index = b_.u32(made.bits % length);
    return b_.access(array, {index});
  }
  void use(ValueId v) { b_.store(element(2), v); }

  void statements(int most, int depth) {
    for (int i = 0; i < most && !isSpent(); ++i) {
      if (!statement(depth)) return;
    }
  }

  /// False after a jump: nothing may follow it.
  bool statement(int depth) {
    switch (depth == 0 ? pick(4) : pick(10)) {
      case 0: {
        const ValueId v = variables_[pick(static_cast<uint32_t>(variables_.size()))];
        if (pick(3) == 0) b_.store(v, value(isElementSigned(v), 2));
        return true;
      }
      case 1: {
        use(b_.load(element(1)));
        return true;
      }
      case 2:
        use(value(false, 1));
        return true;
      case 3:
        stale_.push_back(as(false, b_.load(variables_[pick(static_cast<uint32_t>(variables_.size()))])));
        use(stale_.back());
        return true;
      case 4:
        if (loops_ == 0 && (depth == kDeepest || pick(8) != 0)) return true;
        jump();
        return false;
      case 5:
        compareAndUse();
        return true;
      case 6:
        return branch(depth);
      case 7:
        choose(depth);
        return true;
      default:
        loop(depth);
        return true;
    }
  }

  bool isElementSigned(ValueId pointer) { return b_.types()[b_.types()[b_.typeIdOf(pointer)].element].is(Scalar::I32); }

  void jump() {
    const uint32_t kind = pick(8);
    if (loops_ == 0 || kind == 0) return b_.returnVoid();
    if (kind < 4) return b_.continueLoop();
    b_.breakLoop();
  }

  /// Values that a block loads are not known after it.
  template <class Fill>
  void scoped(Fill&& fill) {
    const size_t before = stale_.size();
    fill();
    stale_.resize(before);
  }

  /// `if index < length { array[index] = … }`, with any comparison and a bound that may be one off.
  void compareAndUse() {
    const ValueId array = arrays_[pick(static_cast<uint32_t>(arrays_.size()))];
    const uint32_t length = b_.types()[b_.types()[b_.typeIdOf(array)].element].count;
    ValueId index = value(false, 1);
    if (b_.module()[index].kind == ValueKind::Constant) index = b_.make(Op::Min, {lane_, index});
    const ValueId bound = length == 0 ? b_.make(Op::ArrayLength, {array}) : b_.u32(length + pick(3) - 1);
    const ValueId holds = b_.make(kCompare[pick(kCompare.size())], {index, bound});
    const auto store = [&] { b_.store(b_.access(array, {index}), lane_); };
    if (pick(3) == 0) {
      b_.ifThen(holds, [] {}, store);
    } else {
      b_.ifThen(holds, store);
    }
  }

  bool branch(int depth) {
    const ValueId holds = condition(2);
    const bool has_else = pick(2) == 0;
    b_.ifThen(
        holds, [&] { scoped([&] { statements(3, depth - 1); }); },
        has_else ? std::function<void()>([&] { scoped([&] { statements(2, depth - 1); }); }) : std::function<void()>());
    return true;
  }

  void choose(int depth) {
    // A jump inside of a switch: `break` leaves the switch, `continue` the round.
    const ValueId selector = value(false, 1);
    std::vector<SwitchCase> cases{{.selectors = {pick(3)}}, {.selectors = {}, .is_default = true}};
    b_.switchOn(selector, cases, [&](size_t) { scoped([&] { statements(2, depth - 1); }); });
  }

  void loop(int depth) {
    const ValueId counter = variables_[pick(static_cast<uint32_t>(variables_.size()))];
    const bool is_signed = isElementSigned(counter);
    if (pick(2) == 0) b_.store(counter, number(is_signed, kNumbers[pick(kNumbers.size())]));
    const ValueId before = b_.load(counter);
    ++loops_;
    scoped([&] {
      const uint32_t step = kSteps[pick(kSteps.size())], form = pick(10);
      const Op move = pick(2) == 0 ? Op::Add : Op::Sub;
      const bool breaks_at_end = pick(6) == 0;
      b_.loop(
          [&] {
            scoped([&] {
              if (!breaks_at_end) leave(counter, before, is_signed, depth);
              statements(3, depth - 1);
            });
          },
          [&] {
            const ValueId from = form == 0 ? before : b_.load(counter);
            const ValueId moved = b_.make(move, {from, number(is_signed, step)});
            if (form == 1) {
              b_.ifThen(condition(1), [&] { b_.store(counter, moved); });
            } else {
              b_.store(counter, moved);
            }
            if (form == 2) b_.store(counter, value(is_signed, 1));
            if (breaks_at_end) b_.breakIf(compare(form == 3 ? moved : b_.load(counter), is_signed));
          });
    });
    --loops_;
  }

  ValueId compare(ValueId left, bool is_signed) {
    const ValueId right = value(is_signed, 0);
    return pick(4) == 0 ? b_.make(kCompare[pick(kCompare.size())], {right, left}) : b_.make(kCompare[pick(kCompare.size())], {left, right});
  }

  /// The exit at the head of a loop, in one of the forms that the analyses tell apart.
  void leave(ValueId counter, ValueId before, bool is_signed, int depth) {
    const ValueId tested = pick(8) == 0 ? before : b_.load(counter);
    ValueId holds = compare(tested, is_signed);
    if (pick(5) == 0) holds = b_.make(Op::Or, {holds, condition(1)});
    const auto out = [&] {
      scoped([&] {
        switch (pick(6)) {
          case 0:
            b_.ifThen(condition(1), [&] { b_.continueLoop(); });
            break;
          case 1:
            b_.switchOn(value(false, 0), {{.selectors = {1}}, {.selectors = {}, .is_default = true}}, [&](size_t i) {
              if (i == 0) b_.continueLoop();
            });
            break;
          case 2:
            if (depth > 1) statements(1, 0);
            break;
          default:
            break;
        }
        b_.breakLoop();
      });
    };
    if (pick(3) == 0) {
      b_.ifThen(holds, [] {}, out);
    } else {
      b_.ifThen(holds, out);
    }
  }

  const std::vector<uint32_t>& choices_;
  size_t at_ = 0;
  Builder b_;
  ValueId lane_, in_, out_;
  std::vector<ValueId> arrays_, variables_, stale_;
  int loops_ = 0;
};

}  // namespace

kernel::Module makeKernel(const std::vector<uint32_t>& choices) { return Maker(choices).make(); }

std::vector<uint32_t> smallest(std::vector<uint32_t> choices, const std::function<bool(const std::vector<uint32_t>&)>& isBad) {
  for (bool smaller = true; smaller;) {
    smaller = false;
    for (size_t length = choices.size() / 2; length > 0; length /= 2) {
      for (size_t at = 0; at + length <= choices.size();) {
        std::vector<uint32_t> less = choices;
        less.erase(less.begin() + static_cast<ptrdiff_t>(at), less.begin() + static_cast<ptrdiff_t>(at + length));
        if (isBad(less)) {
          choices = std::move(less);
          smaller = true;
        } else {
          ++at;
        }
      }
    }
  }
  return choices;
}

std::vector<uint32_t> makeInputs(uint32_t seed) {
  std::vector<uint32_t> inputs;
  for (uint32_t i = 0; i < kInputs; ++i) {
    seed = seed * 1664525u + 1013904223u;
    inputs.push_back(kNumbers[(seed >> 8) % kNumbers.size()] + (seed >> 30));
  }
  return inputs;
}

}  // namespace lockstep::prover
