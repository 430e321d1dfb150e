// SPDX-License-Identifier: Apache-2.0
// Plans of small kernels, measured on the reference. Nothing here depends on which plan is the fastest.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "frontend/train/templates.h"
#include "ir/graph/builder.h"
#include "passes/pipeline.h"
#include "passes/schedule/choose_plan.h"
#include "runtime/device.h"
#include "tools/tune/planned_kernel.h"
#include "tools/tune/tuner.h"

namespace lockstep::tools {
namespace {

graph::ValueId input(graph::Builder& b, const std::string& name, int64_t rows, int64_t columns) {
  return b.make("input", {}, {{"name", name}, {"dtype", graph::DType::F32}, {"shape", std::vector{rows, columns}}});
}

class Tuner : public ::testing::Test {
 protected:
  /// The only kernel of a graph, as it is scheduled for the device.
  program::SymbolicKernel kernelOf(graph::Graph graph) {
    passes::CompileOptions options;
    options.profile = device_.chosen.info.profile;
    options.templates = lockstep::detail::templateSource();
    const passes::Form form = passes::compileTo(passes::Stage::Scheduled, std::move(graph), options).orThrow();
    const std::vector<program::Kernel>& kernels = std::get<program::Program>(form).kernels;
    EXPECT_EQ(kernels.size(), 1u);
    return std::get<program::SymbolicKernel>(kernels.at(0).code);
  }
  /// relu(a b), so that something is fused into the product.
  program::SymbolicKernel product(int64_t m, int64_t n, int64_t k) {
    graph::Builder b;
    const graph::ValueId left = input(b, "a", m, k), right = input(b, "b", k, n);
    b.output(graph::OutputKind::Result, "c", b.make("relu", {b.make("matmul", {left, right})}));
    return kernelOf(b.take());
  }
  [[nodiscard]] passes::PlanQuery queryOf(const program::SymbolicKernel& kernel) const {
    return {kernel.body, program::kindOf(kernel.plan), device_.chosen.info.profile, true};
  }
  Backend& backend() { return *device_.backend; }

  const detail::Device device_ = detail::openChosenDevice("reference");
};

TEST_F(Tuner, small_product_gets_one_of_its_candidates) {
  const program::SymbolicKernel kernel = product(8, 8, 8);
  const std::vector<program::Plan> plans = passes::candidatePlans(queryOf(kernel));
  const std::optional<TunedWork> tuned = tuneKernel(backend(), kernel).orThrow();
  ASSERT_TRUE(tuned.has_value());
  EXPECT_EQ(tuned->work, "contract f32>f32 1x8x8x8");
  EXPECT_GE(tuned->measured, 1u);
  EXPECT_EQ(tuned->wrong, 0u);
  EXPECT_EQ(tuned->measured + tuned->refused, plans.size());
  EXPECT_EQ(tuned->estimate, passes::choosePlan(queryOf(kernel)).orThrow().plan);
  EXPECT_TRUE(std::ranges::find(plans, tuned->best) != plans.end()) << program::print(tuned->best);
  EXPECT_TRUE(passes::choiceOf(tuned->best, queryOf(kernel)).has_value()) << program::print(tuned->best);
  ASSERT_FALSE(tuned->finalists.empty());
  EXPECT_TRUE(std::ranges::is_sorted(tuned->finalists, {}, &TimedPlan::seconds));
  EXPECT_EQ(std::ranges::count(tuned->finalists, tuned->estimate, &TimedPlan::plan), 1);
}

TEST_F(Tuner, kernel_without_a_choice_is_passed_over) {
  graph::Builder b;
  b.output(graph::OutputKind::Result, "y", b.make("exp", {input(b, "x", 8, 8)}));
  EXPECT_FALSE(tuneKernel(backend(), kernelOf(b.take())).orThrow().has_value());
}

/// Work of a kind whose plans are measured, of odd extents.
struct Work {
  const char* name;
  graph::GroupKind kind;
  graph::Graph (*make)();
};
void PrintTo(const Work& work, std::ostream* out) { *out << work.name; }

graph::ValueId input(graph::Builder& b, const std::string& name, graph::DType dtype, std::vector<int64_t> shape) {
  return b.make("input", {}, {{"name", name}, {"dtype", dtype}, {"shape", std::move(shape)}});
}
graph::ValueId cast(graph::Builder& b, graph::ValueId x, graph::DType dtype) { return b.make("cast", {x}, {{"dtype", dtype}}); }
graph::Graph resultOf(graph::Builder& b, graph::ValueId y) {
  b.output(graph::OutputKind::Result, "y", y);
  return b.take();
}

graph::Graph softmaxOf(graph::DType dtype, int64_t rows, int64_t columns) {
  graph::Builder b;
  const graph::ValueId x = input(b, "x", dtype, {rows, columns});
  if (dtype == graph::DType::F32) return resultOf(b, b.make("softmax", {x}));
  return resultOf(b, cast(b, b.make("softmax", {cast(b, x, graph::DType::F32)}), dtype));
}
graph::Graph sumOf(graph::DType dtype, const std::vector<int64_t>& shape, int64_t axis) {
  graph::Builder b;
  graph::ValueId x = input(b, "x", dtype, shape);
  if (dtype != graph::DType::F32) x = cast(b, x, graph::DType::F32);
  return resultOf(b, b.make("sum", {x}, {{"axes", std::vector{axis}}, {"keep_dims", false}}));
}
graph::Graph sumOfTwo(graph::DType dtype, int64_t elements) {
  graph::Builder b;
  graph::ValueId x = input(b, "x", dtype, {elements}), y = input(b, "y", dtype, {elements});
  if (dtype == graph::DType::F32) return resultOf(b, b.add(x, y));
  return resultOf(b, cast(b, b.add(cast(b, x, graph::DType::F32), cast(b, y, graph::DType::F32)), dtype));
}

constexpr graph::DType kF32 = graph::DType::F32, kBf16 = graph::DType::BF16;

class EveryPlan : public Tuner, public ::testing::WithParamInterface<Work> {};

// A plan that leaves elements out, or has another invocation's, is counted as wrong.
TEST_P(EveryPlan, has_the_results_of_the_estimate) {
  const program::SymbolicKernel kernel = kernelOf(GetParam().make());
  ASSERT_EQ(program::kindOf(kernel.plan), GetParam().kind);
  const std::vector<program::Plan> plans = passes::candidatePlans(queryOf(kernel));
  EXPECT_GE(plans.size(), 6u);
  const std::optional<TunedWork> tuned = tuneKernel(backend(), kernel).orThrow();
  ASSERT_TRUE(tuned.has_value());
  EXPECT_EQ(tuned->wrong, 0u) << tuned->work;
  EXPECT_EQ(tuned->refused, 0u) << tuned->work;
  EXPECT_EQ(tuned->measured, plans.size()) << tuned->work;
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, EveryPlan,
    ::testing::Values(Work{"softmax_odd", graph::GroupKind::Rows, [] { return softmaxOf(kF32, 1021, 67); }},
                      Work{"softmax_short", graph::GroupKind::Rows, [] { return softmaxOf(kF32, 5003, 16); }},
                      Work{"softmax_bf16", graph::GroupKind::Rows, [] { return softmaxOf(kBf16, 331, 210); }},
                      Work{"softmax_that_no_lanes_hold", graph::GroupKind::Rows, [] { return softmaxOf(kF32, 3, 40009); }},
                      Work{"rows_of_three", graph::GroupKind::Rows, [] { return softmaxOf(kF32, 30011, 3); }},
                      Work{"sums_of_rows", graph::GroupKind::Rows, [] { return sumOf(kBf16, {257, 258}, 1); }},
                      Work{"sums_of_columns", graph::GroupKind::Columns, [] { return sumOf(kF32, {67, 1002}, 0); }},
                      Work{"sums_of_columns_bf16", graph::GroupKind::Columns, [] { return sumOf(kBf16, {131, 520}, 0); }},
                      Work{"sums_of_the_middle", graph::GroupKind::Columns, [] { return sumOf(kF32, {3, 701, 33}, 1); }},
                      Work{"map_odd", graph::GroupKind::Map, [] { return sumOfTwo(kF32, 65543); }},
                      Work{"map_bf16", graph::GroupKind::Map, [] { return sumOfTwo(kBf16, 65543); }}),
    [](const auto& info) { return std::string(info.param.name); });

// Otherwise the results of two plans could not be compared.
TEST_F(Tuner, plans_of_one_kernel_compute_the_same_from_the_same_numbers) {
  const program::SymbolicKernel kernel = product(8, 8, 8);
  const passes::PlanChoice estimate = passes::choosePlan(queryOf(kernel)).orThrow();
  const KernelMemory memory = KernelMemory::make(backend(), kernel.body).orThrow();
  const passes::PlanChoice impossible{program::TemplatePlan{.name = "absent"}, {1, 1, 1}};
  const std::vector<passes::PlanChoice> choices{estimate, impossible, {program::NaiveContractPlan{.lanes = 64}, {1, 1, 1}}};
  std::vector<Result<PlannedKernel>> made = PlannedKernel::makeAll(backend(), kernel.body, choices, memory);
  ASSERT_EQ(made.size(), 3u);
  EXPECT_FALSE(made[1].ok()) << "an unknown template is refused, and the others are still made";
  PlannedKernel tiled = std::move(made[0]).orThrow(), naive = std::move(made[2]).orThrow();
  const auto resultsOf = [&](PlannedKernel& planned) {
    EXPECT_TRUE(memory.clearResults().ok());
    EXPECT_TRUE(std::isnan(memory.numbers(memory.results().orThrow()).front())) << "results of the plan before";
    (void)planned.fastest(1).orThrow();
    return memory.numbers(memory.results().orThrow());
  };
  const std::vector<double> got = resultsOf(tiled), want = resultsOf(naive);
  ASSERT_EQ(got.size(), 64u);
  ASSERT_EQ(want.size(), 64u);
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], want[i], 1e-5) << i;
  EXPECT_GT(*std::ranges::max_element(want), 0) << "numbers that are all 0 would compare nothing";
}

}  // namespace
}  // namespace lockstep::tools
