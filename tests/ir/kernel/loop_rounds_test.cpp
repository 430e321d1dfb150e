// SPDX-License-Identifier: Apache-2.0
// Bounds of the rounds of loops, from kernel IR alone.
#include "ir/kernel/loop_rounds.h"

#include <gtest/gtest.h>

#include <functional>

#include "ir/kernel/builder.h"

namespace lockstep::kernel {
namespace {

/// The bound of an entry point with 64 invocations whose body `fill` makes from the builder and the lane.
LoopRounds roundsOf(const std::function<void(Builder&, ValueId)>& fill, uint64_t unrolled = 0) {
  Builder b;
  const FunctionId main = b.function("main", b.types().voidType());
  const ValueId lane = b.parameter(main, "lane", b.types().u32(), Builtin::LocalInvocationIndex);
  b.setWorkgroupSize(main, {64, 1, 1});
  b.enterFunction(main);
  fill(b, lane);
  const Module module = b.take();
  EXPECT_TRUE(validate(module).ok()) << toString(validate(module).diagnostics()) << print(module);
  return loopRounds(module, *module.entryPoint(), unrolled);
}

void range(Builder& b, ValueId begin, uint32_t end, uint32_t step, const std::function<void(ValueId)>& body = [](ValueId) {}) {
  b.forRange(begin, b.u32(end), b.u32(step), "i", body);
}

TEST(LoopRounds, counted_loop_is_its_rounds_and_one) {
  EXPECT_EQ(roundsOf([](Builder&, ValueId) {}).most, 0u);
  EXPECT_EQ(roundsOf([](Builder& b, ValueId) { range(b, b.u32(0), 1000, 1); }).most, 1001u);
  EXPECT_EQ(roundsOf([](Builder& b, ValueId) { range(b, b.u32(3), 1000, 7); }).most, 144u);
  EXPECT_EQ(roundsOf([](Builder& b, ValueId) { range(b, b.u32(5), 5, 1); }).most, 1u);
  // The first lane goes furthest.
  EXPECT_EQ(roundsOf([](Builder& b, ValueId lane) { range(b, lane, 6400, 64); }).most, 101u);
}

TEST(LoopRounds, nested_loops_multiply) {
  // What llvmpipe was seen to do: each outer round of 400 x 400 costs 402.
  const LoopRounds rounds = roundsOf([](Builder& b, ValueId) { range(b, b.u32(0), 400, 1, [&](ValueId) { range(b, b.u32(0), 400, 1); }); });
  EXPECT_EQ(rounds.most, 400u * 402u + 1u);
  EXPECT_FALSE(rounds.unbounded.valid());
}

TEST(LoopRounds, both_arms_and_later_loops_add_up) {
  const LoopRounds rounds = roundsOf([](Builder& b, ValueId lane) {
    b.ifThen(b.make(Op::Lt, {lane, b.u32(3)}), [&] { range(b, b.u32(0), 10, 1); }, [&] { range(b, b.u32(0), 20, 1); });
    range(b, b.u32(0), 30, 1);
  });
  EXPECT_EQ(rounds.most, 63u);
}

TEST(LoopRounds, called_functions_count_at_each_call) {
  Builder b;
  const FunctionId inner = b.function("inner", b.types().voidType());
  b.enterFunction(inner);
  range(b, b.u32(0), 10, 1);
  const FunctionId main = b.function("main", b.types().voidType());
  b.setWorkgroupSize(main, {1, 1, 1});
  b.enterFunction(main);
  b.call(inner, {});
  range(b, b.u32(0), 5, 1, [&](ValueId) { b.call(inner, {}); });
  const Module module = b.take();
  EXPECT_EQ(loopRounds(module, *module.entryPoint()).most, 11u + 5u * 12u + 1u);
}

TEST(LoopRounds, unrolled_loops_count_as_their_bodies) {
  const auto fill = [](Builder& b, ValueId) { range(b, b.u32(0), 16, 1, [&](ValueId) { range(b, b.u32(0), 1000, 1); }); };
  EXPECT_EQ(roundsOf(fill).most, 16u * 1002u + 1u);
  EXPECT_EQ(roundsOf(fill, 512).most, 16u * 1001u);
  // Not one whose start differs between lanes.
  EXPECT_EQ(roundsOf([](Builder& b, ValueId lane) { range(b, lane, 128, 64); }, 512).most, 3u);
}

TEST(LoopRounds, counter_that_may_wrap_is_unbounded) {
  const LoopRounds rounds = roundsOf([](Builder& b, ValueId) { range(b, b.u32(0), UINT32_MAX, 2); });
  EXPECT_EQ(rounds.most, kAnyRounds);
  EXPECT_TRUE(rounds.unbounded.valid());
}

TEST(LoopRounds, exit_that_may_continue_is_unbounded) {
  const LoopRounds rounds = roundsOf([](Builder& b, ValueId lane) {
    const ValueId counter = b.var(b.types().u32(), "i", b.u32(0));
    b.loop(
        [&] {
          b.ifThen(b.make(Op::Ge, {b.load(counter), b.u32(10)}), [&] {
            b.ifThen(b.make(Op::Eq, {lane, b.u32(0)}), [&] { b.continueLoop(); });
            b.breakLoop();
          });
        },
        [&] { b.store(counter, b.make(Op::Add, {b.load(counter), b.u32(1)})); });
  });
  EXPECT_EQ(rounds.most, kAnyRounds);
}

TEST(LoopRounds, loop_without_a_counter_is_unbounded_and_named) {
  const LoopRounds rounds = roundsOf([](Builder& b, ValueId lane) {
    range(b, b.u32(0), 10, 1);
    const ValueId left = b.var(b.types().u32(), "left", lane);
    b.loop([&] {
      b.ifThen(b.make(Op::Eq, {b.load(left), b.u32(0)}), [&] { b.breakLoop(); });
      b.store(left, b.make(Op::Shr, {b.load(left), b.u32(1)}));
    });
  });
  EXPECT_EQ(rounds.most, kAnyRounds);
  EXPECT_TRUE(rounds.unbounded.valid());
}

TEST(LoopRounds, what_spirv_clears_and_moves_by_loops_counts) {
  // A local array of 400 bytes is cleared at once, one of 800 by a loop.
  EXPECT_EQ(roundsOf([](Builder& b, ValueId) { b.var(b.types().array(b.types().u32(), 100), "few"); }).most, 0u);
  EXPECT_EQ(roundsOf([](Builder& b, ValueId) { b.var(b.types().array(b.types().u32(), 200), "many"); }).most, 201u);
  EXPECT_EQ(roundsOf([](Builder& b, ValueId) {
              range(b, b.u32(0), 10, 1, [&](ValueId) { b.var(b.types().array(b.types().array(b.types().u32(), 200), 3), "nested"); });
            }).most,
            10u * (1u + 3u * 202u + 1u) + 1u);
  const auto copies = [](uint32_t count) {
    return roundsOf([&](Builder& b, ValueId) {
             const ValueId from = b.global({.name = "from",
                                            .value = {},
                                            .type = b.types().array(b.types().u32(), count),
                                            .space = AddressSpace::Storage,
                                            .access = Access::ReadWrite,
                                            .group = 0,
                                            .binding = 7,
                                            .initializer = {}});
             b.store(from, b.load(from));
           })
        .most;
  };
  EXPECT_EQ(copies(32), 0u);
  EXPECT_EQ(copies(33), 68u);
  const auto zeroed = [](bool zero) {
    return roundsOf([&](Builder& b, ValueId) {
             b.global({.name = "scratch",
                       .value = {},
                       .type = b.types().array(b.types().u32(), 1000),
                       .space = AddressSpace::Workgroup,
                       .access = Access::ReadWrite,
                       .group = 0,
                       .binding = 0,
                       .initializer = {},
                       .zero_initialized = zero});
           })
        .most;
  };
  EXPECT_EQ(zeroed(false), 0u);
  EXPECT_EQ(zeroed(true), (1000u + 63u) / 64u + 1u);
}

}  // namespace
}  // namespace lockstep::kernel
