// SPDX-License-Identifier: Apache-2.0
// Loops that surely end, against the arithmetic of 32-bit numbers.
#include "ir/kernel/loop_ends.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <functional>

#include "ir/kernel/builder.h"

namespace lockstep::kernel {
namespace {

struct Form {
  Op compare = Op::Ge;
  bool mirrored = false, negated = false;
  Scalar type = Scalar::U32;
  uint32_t bound = 10, step = 1;
  bool subtracts = false;
  bool tests_old = false, steps_old = false;    ///< with the number of before the loop
  std::function<ValueId(Builder&)> other = {};  ///< another bound
  std::function<void(Builder&)> arm = {};       ///< what comes before the break
};

const Instruction& loopOf(const Module& module) {
  for (const InstructionId id : module[module.entryPoint()->body].instructions) {
    if (module[id].op == Op::Loop) return module[id];
  }
  throw std::logic_error("no loop");
}

bool ends(const Form& form) {
  Builder b;
  const FunctionId main = b.function("main", b.types().voidType());
  b.setWorkgroupSize(main, {1, 1, 1});
  b.enterFunction(main);
  const auto number = [&](uint32_t bits) {
    if (form.type == Scalar::F32) return b.f32(static_cast<float>(bits));
    return form.type == Scalar::I32 ? b.i32(static_cast<int32_t>(bits)) : b.u32(bits);
  };
  const ValueId counter = b.var(b.types().scalar(form.type), "i", number(0)), old = b.load(counter);
  const ValueId bound = form.other ? form.other(b) : number(form.bound);
  b.loop(
      [&] {
        const ValueId now = form.tests_old ? old : b.load(counter);
        ValueId holds = form.mirrored ? b.make(form.compare, {bound, now}) : b.make(form.compare, {now, bound});
        if (form.negated) holds = b.make(Op::Not, {holds});
        b.ifThen(holds, [&] {
          if (form.arm) form.arm(b);
          b.breakLoop();
        });
      },
      [&] {
        const ValueId from = form.steps_old ? old : b.load(counter);
        b.store(counter, b.make(form.subtracts ? Op::Sub : Op::Add, {from, number(form.step)}));
      });
  const Module module = b.take();
  EXPECT_TRUE(validate(module).ok()) << toString(validate(module).diagnostics());
  return surelyEnds(module, loopOf(module));
}

/// Whether the counter leaves before it wraps, whatever it starts at: the numbers that leave are on the side that it moves to, and at least
/// as many as a step is long.
bool leavesBeforeItWraps(const Form& form) {
  Op op = form.compare;
  const auto swap = [&](std::initializer_list<std::pair<Op, Op>> pairs) {
    for (const auto& [from, to] : pairs) {
      if (op == from) return to;
      if (op == to) return from;
    }
    return op;
  };
  if (form.mirrored) op = swap({{Op::Lt, Op::Gt}, {Op::Le, Op::Ge}});
  if (form.negated) op = swap({{Op::Lt, Op::Ge}, {Op::Le, Op::Gt}});
  const bool is_signed = form.type == Scalar::I32;
  const int64_t lowest = is_signed ? INT32_MIN : 0, highest = is_signed ? INT32_MAX : UINT32_MAX;
  const int64_t bound = is_signed ? int64_t{static_cast<int32_t>(form.bound)} : int64_t{form.bound};
  const int64_t step = static_cast<int32_t>(form.subtracts ? 0 - form.step : form.step);
  if (step > 0) {
    const int64_t first = op == Op::Gt ? bound + 1 : bound;
    return (op == Op::Gt || op == Op::Ge) && highest - first + 1 >= step;
  }
  const int64_t last = op == Op::Lt ? bound - 1 : bound;
  return (op == Op::Lt || op == Op::Le) && last - lowest + 1 >= -step;
}

TEST(LoopEnds, steps_of_any_size_reach_the_bound_before_they_wrap_or_are_not_sure_to) {
  size_t sure = 0, unsure = 0;
  for (const Op compare : {Op::Lt, Op::Le, Op::Gt, Op::Ge}) {
    for (const Scalar type : {Scalar::U32, Scalar::I32}) {
      for (const uint32_t bound :
           {0u, 1u, 2u, 9u, 0x7ffffffdu, 0x7ffffffeu, 0x7fffffffu, 0x80000000u, 0x80000001u, 0xfffffffdu, 0xfffffffeu, 0xffffffffu}) {
        for (const uint32_t step : {1u, 2u, 3u, 4u, 6u, 64u, 0x10000u, 0x40000000u, 0x80000000u, 0xffffffffu, 0xfffffffeu}) {
          for (const int variant : {0, 1, 2, 3, 4, 5, 6, 7}) {
            const Form form{.compare = compare,
                            .mirrored = (variant & 1) != 0,
                            .negated = (variant & 2) != 0,
                            .type = type,
                            .bound = bound,
                            .step = step,
                            .subtracts = (variant & 4) != 0};
            const bool said = ends(form);
            (said ? sure : unsure) += 1;
            EXPECT_EQ(said, leavesBeforeItWraps(form)) << fmt::format("op {} bound {} step {} variant {} type {}",
                                                                      static_cast<int>(compare), bound, step, variant, toString(type));
          }
        }
      }
    }
  }
  EXPECT_GT(sure, 1000u);
  EXPECT_GT(unsure, 1000u);
}

/// A number that nobody knows.
ValueId unknown(Builder& b) {
  return b.load(b.global({.name = "n",
                          .value = {},
                          .type = b.types().u32(),
                          .space = AddressSpace::Storage,
                          .access = Access::Read,
                          .group = 0,
                          .binding = 0,
                          .initializer = {}}));
}

TEST(LoopEnds, ordinary_loops_do) {
  EXPECT_TRUE(ends({}));
  EXPECT_TRUE(ends({.compare = Op::Gt, .bound = 99, .step = 64}));
  EXPECT_TRUE(ends({.compare = Op::Lt, .type = Scalar::I32, .bound = 1, .subtracts = true}));
  // A bound that is read: any number may be reached by steps of one.
  EXPECT_TRUE(ends({.other = unknown}));
  // Over an array, by a grid of 64.
  const auto length = [](Builder& b) {
    const ValueId a = b.global({.name = "a",
                                .value = {},
                                .type = b.types().array(b.types().f32(), 0),
                                .space = AddressSpace::Storage,
                                .access = Access::Read,
                                .group = 0,
                                .binding = 0,
                                .initializer = {}});
    return b.make(Op::ArrayLength, {a});
  };
  EXPECT_TRUE(ends({.step = 64, .other = length}));
  // `i <= n` has no end where n is the largest number, and steps of two may miss it.
  EXPECT_FALSE(ends({.compare = Op::Gt, .other = unknown}));
  EXPECT_FALSE(ends({.step = 2, .other = unknown}));
}

TEST(LoopEnds, numbers_of_before_the_loop_do_not_move) {
  EXPECT_FALSE(ends({.tests_old = true}));
  EXPECT_FALSE(ends({.steps_old = true}));
}

TEST(LoopEnds, exits_that_may_continue_are_none) {
  const auto sometimes = [](Builder& b, const std::function<void()>& then) { b.ifThen(b.make(Op::Eq, {unknown(b), b.u32(1)}), then); };
  EXPECT_TRUE(ends({.arm = [](Builder& b) { (void)unknown(b); }}));
  EXPECT_FALSE(ends({.arm = [&](Builder& b) { sometimes(b, [&] { b.continueLoop(); }); }}));
  EXPECT_FALSE(ends({.arm = [](Builder& b) {
    b.switchOn(unknown(b), {{.selectors = {1, 2}, .is_default = false}, {.selectors = {}, .is_default = true}}, [&](size_t at) {
      if (at == 0) b.continueLoop();
    });
  }}));
}

TEST(LoopEnds, floats_stop_moving) { EXPECT_FALSE(ends({.type = Scalar::F32, .bound = 1u << 25})); }

}  // namespace
}  // namespace lockstep::kernel
