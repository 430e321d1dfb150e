// SPDX-License-Identifier: Apache-2.0
// Plans of small kernels, measured on the reference. Nothing here depends on which plan is the fastest.
#include <gtest/gtest.h>

#include <algorithm>
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
}

TEST_F(Tuner, kernel_without_a_choice_is_passed_over) {
  graph::Builder b;
  b.output(graph::OutputKind::Result, "y", b.make("exp", {input(b, "x", 8, 8)}));
  EXPECT_FALSE(tuneKernel(backend(), kernelOf(b.take())).orThrow().has_value());
}

// Otherwise the results of two plans could not be compared.
TEST_F(Tuner, plans_of_one_kernel_compute_the_same_from_the_same_numbers) {
  const program::SymbolicKernel kernel = product(8, 8, 8);
  const passes::PlanChoice estimate = passes::choosePlan(queryOf(kernel)).orThrow();
  PlannedKernel tiled = PlannedKernel::make(backend(), {kernel.body, estimate.plan}, estimate.groups).orThrow();
  PlannedKernel naive = PlannedKernel::make(backend(), {kernel.body, program::NaiveContractPlan{.lanes = 64}}, {1, 1, 1}).orThrow();
  (void)tiled.fastest(1).orThrow();
  (void)naive.fastest(1).orThrow();
  const std::vector<double> got = tiled.results().orThrow(), want = naive.results().orThrow();
  ASSERT_EQ(got.size(), 64u);
  ASSERT_EQ(want.size(), 64u);
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], want[i], 1e-5) << i;
  EXPECT_GT(*std::ranges::max_element(want), 0) << "numbers that are all 0 would compare nothing";
}

}  // namespace
}  // namespace lockstep::tools
