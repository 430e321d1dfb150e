// SPDX-License-Identifier: Apache-2.0
// Plans from a table of measurements: taken where they fit, and otherwise as if there were no table.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <vector>

#include "frontend/train/templates.h"
#include "ir/graph/builder.h"
#include "passes/pipeline.h"
#include "passes/schedule/choose_plan.h"

namespace lockstep::passes {
namespace {

using program::Plan;
using program::RowsPlan;
using program::SymbolicKernel;
using program::TemplatePlan;
using program::TuningTable;

const program::DeviceProfile& portable() {
  static const program::DeviceProfile profile = program::findProfile("portable").orThrow();
  return profile;
}

graph::ValueId input(graph::Builder& b, const std::string& name, int64_t rows, int64_t columns) {
  return b.make("input", {}, {{"name", name}, {"dtype", graph::DType::F32}, {"shape", std::vector{rows, columns}}});
}

/// c = a b
graph::Graph product(int64_t m, int64_t n, int64_t k) {
  graph::Builder b;
  const graph::ValueId left = input(b, "a", m, k), right = input(b, "b", k, n);
  b.output(graph::OutputKind::Result, "c", b.make("matmul", {left, right}));
  return b.take();
}

/// y = op(x)
graph::Graph unary(const std::string& op, int64_t rows, int64_t columns) {
  graph::Builder b;
  b.output(graph::OutputKind::Result, "y", b.make(op, {input(b, "x", rows, columns)}));
  return b.take();
}
graph::Graph sum(int64_t rows, int64_t columns, int64_t axis) {
  graph::Builder b;
  const graph::ValueId x = input(b, "x", rows, columns);
  b.output(graph::OutputKind::Result, "y", b.make("sum", {x}, {{"axes", std::vector{axis}}, {"keep_dims", false}}));
  return b.take();
}

CompileOptions optionsWith(const TuningTable& measured) {
  CompileOptions options;
  options.profile = portable();
  options.templates = lockstep::detail::templateSource();
  options.measured = measured;
  return options;
}

/// The only kernel of a graph, as it is scheduled.
SymbolicKernel kernelOf(const graph::Graph& graph, const TuningTable& measured = {}) {
  const Form form = compileTo(Stage::Scheduled, graph, optionsWith(measured)).orThrow();
  const std::vector<program::Kernel>& kernels = std::get<program::Program>(form).kernels;
  EXPECT_EQ(kernels.size(), 1u);
  return std::get<SymbolicKernel>(kernels.at(0).code);
}

/// How many plans of its compilation a table gave.
uint32_t measuredIn(const graph::Graph& graph, const TuningTable& measured) {
  return compile(graph, optionsWith(measured)).orThrow().plan.measured_plans;
}

PlanQuery queryOf(const SymbolicKernel& kernel, const TuningTable* measured = nullptr) {
  return {kernel.body, program::kindOf(kernel.plan), portable(), true, measured};
}

TuningTable tableOf(const std::string& work, const Plan& plan) {
  TuningTable table{.device = "any", .plans = {}};
  table.plans.emplace(work, plan);
  return table;
}

Plan tiled(int64_t m, int64_t n, int64_t k, int64_t thread_m, int64_t thread_n) {
  return TemplatePlan{
      .name = "shared_tiled",
      .overrides = {{"tile_m", m}, {"tile_n", n}, {"tile_k", k}, {"thread_m", thread_m}, {"thread_n", thread_n}, {"slices", 1}}};
}

Plan quads(int64_t m, int64_t n, int64_t k, int64_t thread_m, int64_t thread_n, int64_t slices) {
  Plan plan = tiled(m, n, k, thread_m, thread_n);
  std::get<TemplatePlan>(plan).name = "quad_tiled";
  std::get<TemplatePlan>(plan).overrides["slices"] = slices;
  return plan;
}

/// Small enough for any device, and not what is estimated for the products below.
Plan smallTile() { return tiled(16, 16, 16, 2, 2); }

bool contains(const std::vector<Plan>& plans, const Plan& plan) { return std::ranges::find(plans, plan) != plans.end(); }

TEST(MeasuredPlan, an_empty_table_leaves_the_estimate) {
  const SymbolicKernel kernel = kernelOf(product(128, 128, 128));
  EXPECT_EQ(kernel.plan, choosePlan(queryOf(kernel)).orThrow().plan);
  EXPECT_NE(kernel.plan, smallTile()) << "the tests below need another plan";
  EXPECT_FALSE(measuredChoice(queryOf(kernel)).has_value());
  const TuningTable empty{.device = "any", .plans = {}};
  EXPECT_FALSE(measuredChoice(queryOf(kernel, &empty)).has_value());
  const Compiled compiled = compile(product(128, 128, 128), optionsWith(empty)).orThrow();
  EXPECT_EQ(compiled.plan.plans, 1u);
  EXPECT_EQ(compiled.plan.measured_plans, 0u);
}

TEST(MeasuredPlan, a_plan_of_the_table_is_taken_and_counted) {
  const graph::Graph graph = product(128, 128, 128);
  const std::string work = describeWork(queryOf(kernelOf(graph)));
  EXPECT_EQ(work, "contract f32>f32 1x128x128x128");
  const TuningTable table = tableOf(work, smallTile());
  EXPECT_EQ(kernelOf(graph, table).plan, smallTile());
  EXPECT_EQ(measuredIn(graph, table), 1u);
}

TEST(MeasuredPlan, quads_of_the_table_are_taken) {
  const graph::Graph graph = product(127, 125, 128);
  const TuningTable table = tableOf(describeWork(queryOf(kernelOf(graph))), quads(32, 32, 16, 4, 4, 2));
  EXPECT_EQ(kernelOf(graph, table).plan, quads(32, 32, 16, 4, 4, 2));
  EXPECT_EQ(measuredIn(graph, table), 1u);
}

TEST(MeasuredPlan, a_table_without_the_work_leaves_the_estimate) {
  const graph::Graph graph = product(128, 128, 128);
  const TuningTable table = tableOf("contract f32>f32 1x128x128x256", smallTile());
  EXPECT_EQ(kernelOf(graph, table).plan, kernelOf(graph).plan);
  EXPECT_EQ(measuredIn(graph, table), 0u);
}

struct Misfit {
  const char* name;
  Plan plan;
};
void PrintTo(const Misfit& misfit, std::ostream* out) { *out << misfit.name; }

Plan without(Plan plan, const std::string& number) {
  std::get<TemplatePlan>(plan).overrides.erase(number);
  return plan;
}
Plan with(Plan plan, const std::string& number, int64_t value) {
  std::get<TemplatePlan>(plan).overrides[number] = value;
  return plan;
}
Plan named(Plan plan, const std::string& name) {
  std::get<TemplatePlan>(plan).name = name;
  return plan;
}

class MisfitPlans : public ::testing::TestWithParam<Misfit> {};

TEST_P(MisfitPlans, are_left_alone) {
  const graph::Graph graph = product(128, 128, 128);
  const SymbolicKernel estimated = kernelOf(graph);
  EXPECT_FALSE(choiceOf(GetParam().plan, queryOf(estimated)).has_value());
  const TuningTable table = tableOf(describeWork(queryOf(estimated)), GetParam().plan);
  EXPECT_EQ(kernelOf(graph, table).plan, estimated.plan);
  EXPECT_EQ(measuredIn(graph, table), 0u);
}

INSTANTIATE_TEST_SUITE_P(
    All, MisfitPlans,
    ::testing::Values(Misfit{"another_kind", RowsPlan{.lanes = 4, .rows_per_group = 16}},
                      // Two tiles of 16 x 128, which need a little more than the 16 KiB of the profile; all else of it fits.
                      Misfit{"beyond_workgroup_memory", tiled(128, 128, 16, 8, 8)}, Misfit{"beyond_invocations", tiled(64, 64, 8, 2, 2)},
                      Misfit{"beyond_registers", tiled(64, 64, 8, 16, 8)}, Misfit{"tile_in_uneven_parts", tiled(16, 16, 16, 3, 2)},
                      Misfit{"missing_number", without(smallTile(), "slices")}, Misfit{"number_too_many", with(smallTile(), "depth", 2)},
                      Misfit{"number_of_0", with(smallTile(), "tile_k", 0)}, Misfit{"pairs_of_f32", with(smallTile(), "pairs", 1)},
                      Misfit{"unknown_template", named(smallTile(), "no_such")}, Misfit{"quads_of_two", quads(32, 32, 16, 2, 4, 1)},
                      Misfit{"quads_beyond_the_step", quads(32, 32, 6, 4, 4, 1)}, Misfit{"slices_of_three", quads(32, 32, 16, 4, 4, 3)},
                      Misfit{"quads_beyond_invocations", quads(64, 64, 16, 4, 4, 2)},
                      Misfit{"quads_beyond_workgroup_memory", quads(128, 128, 16, 8, 8, 1)},
                      Misfit{"quads_beyond_registers", quads(64, 64, 16, 16, 8, 1)}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(MeasuredPlan, candidates_are_accepted_and_the_estimate_is_among_them) {
  for (const graph::Graph& graph : {product(128, 128, 128), product(100, 30, 500), product(8, 8, 8), product(1, 64, 256),
                                    unary("exp", 701, 331), unary("softmax", 701, 331), sum(701, 332, 0), sum(701, 331, 1)}) {
    const SymbolicKernel kernel = kernelOf(graph);
    const PlanQuery query = queryOf(kernel);
    SCOPED_TRACE(describeWork(query));
    const std::vector<Plan> plans = candidatePlans(query);
    EXPECT_GE(plans.size(), 2u);
    EXPECT_TRUE(contains(plans, choosePlan(query).orThrow().plan));
    for (const Plan& plan : plans) {
      const std::optional<PlanChoice> choice = choiceOf(plan, query);
      ASSERT_TRUE(choice.has_value()) << program::print(plan);
      EXPECT_EQ(choice->plan, plan) << program::print(plan);
      EXPECT_EQ(std::ranges::count(plans, plan), 1) << program::print(plan);
      for (const uint32_t groups : choice->groups) EXPECT_GE(groups, 1u) << program::print(plan);
    }
  }
}

TEST(MeasuredPlan, extents_are_rounded_up_to_powers_of_two) {
  const graph::Graph odd = product(100, 100, 100), even = product(128, 128, 128), larger = product(129, 128, 128);
  const std::string work = describeWork(queryOf(kernelOf(even)));
  EXPECT_EQ(describeWork(queryOf(kernelOf(odd))), work);
  EXPECT_EQ(describeWork(queryOf(kernelOf(larger))), "contract f32>f32 1x256x128x128");
  const TuningTable table = tableOf(work, smallTile());
  EXPECT_EQ(kernelOf(odd, table).plan, smallTile());
  EXPECT_EQ(measuredIn(odd, table), 1u);
  EXPECT_NE(kernelOf(larger, table).plan, smallTile());
  // The plan is that of the table; how many workgroups it needs is that of the work: 7 x 7 tiles cover 100 x 100.
  const SymbolicKernel kernel = kernelOf(odd);
  EXPECT_EQ(choiceOf(smallTile(), queryOf(kernel))->groups, (std::array<uint32_t, 3>{49, 1, 1}));
}

TEST(MeasuredPlan, work_is_named_by_its_kind_types_sizes_and_body) {
  const auto nameOf = [](const graph::Graph& graph) { return describeWork(queryOf(kernelOf(graph))); };
  EXPECT_EQ(nameOf(unary("exp", 1000, 300)), "map f32>f32 524288 1>1 n2");
  EXPECT_EQ(nameOf(unary("softmax", 1000, 300)), "rows f32>f32 1024x512 1>1 n16");
  EXPECT_EQ(nameOf(sum(1000, 300, 1)), "rows f32>f32 1024x512 1>0 n2");
  EXPECT_EQ(nameOf(sum(300, 1000, 0)), "columns f32>f32 512x1024 1>0 n2");
  EXPECT_EQ(nameOf(unary("softmax", 100, 300)), "") << "such a small kernel is merged with others";
}

TEST(MeasuredPlan, maps_rows_and_columns_take_plans_of_the_table) {
  const std::pair<graph::Graph, Plan> planned[] = {
      {unary("exp", 1000, 300), program::VectorPlan{.lanes = 128, .width = 8}},
      {unary("exp", 1000, 300), program::StripsPlan{.lanes = 128, .per_lane = 2}},
      {unary("softmax", 1000, 300), RowsPlan{.lanes = 16, .rows_per_group = 4}},
      {unary("softmax", 1000, 300), program::HeldRowsPlan{.lanes = 16, .rows_per_group = 8, .width = 2, .per_lane = 10}},
      {sum(300, 1000, 0), program::ColumnsPlan{.width = 16, .lanes = 8, .unroll = 2, .vector = 2}}};
  for (const auto& [graph, plan] : planned) {
    const SymbolicKernel estimated = kernelOf(graph);
    ASSERT_NE(estimated.plan, plan) << "another plan is needed";
    const TuningTable table = tableOf(describeWork(queryOf(estimated)), plan);
    EXPECT_EQ(program::print(kernelOf(graph, table).plan), program::print(plan));
    EXPECT_EQ(measuredIn(graph, table), 1u) << program::print(plan);
  }
}

// 512 columns were measured; of 300 each lane has fewer.
TEST(MeasuredPlan, held_rows_hold_as_much_as_the_work_has) {
  const graph::Graph graph = unary("softmax", 1000, 300);
  const SymbolicKernel kernel = kernelOf(graph);
  const program::HeldRowsPlan measured{.lanes = 32, .rows_per_group = 4, .width = 4, .per_lane = 4};
  const std::optional<PlanChoice> choice = choiceOf(measured, queryOf(kernel));
  ASSERT_TRUE(choice.has_value());
  EXPECT_EQ(std::get<program::HeldRowsPlan>(choice->plan).per_lane, 3);
  EXPECT_EQ(choice->groups, (std::array<uint32_t, 3>{250, 1, 1}));
}

TEST(MeasuredPlan, maps_rows_and_columns_leave_what_does_not_fit) {
  const std::pair<graph::Graph, Plan> misfits[] = {
      {unary("exp", 1000, 300), RowsPlan{.lanes = 4, .rows_per_group = 16}},
      {unary("exp", 1000, 300), program::MapPlan{.lanes = 100'000}},
      {unary("exp", 1000, 300), program::VectorPlan{.lanes = 64, .width = 16}},
      {unary("exp", 1000, 300), program::StripsPlan{.lanes = 64, .per_lane = 64}},
      {unary("softmax", 1000, 300), RowsPlan{.lanes = 64, .rows_per_group = 64}},
      {unary("softmax", 1000, 300), program::HeldRowsPlan{.lanes = 1, .rows_per_group = 64, .width = 4, .per_lane = 75}},
      {unary("softmax", 1000, 300), program::HeldRowsPlan{.lanes = 32, .rows_per_group = 4, .width = 8, .per_lane = 2}},
      {unary("softmax", 1000, 300), program::HeldRowsPlan{.lanes = 32, .rows_per_group = 4, .width = 4, .per_lane = 3, .rows_per_lane = 2}},
      {unary("softmax", 1000, 300), program::HeldRowsPlan{.lanes = 32, .rows_per_group = 4, .width = 4, .per_lane = 3, .subgroup = 32}},
      {sum(300, 1000, 0), program::ColumnsPlan{.width = 64, .lanes = 64}},
      {sum(300, 1000, 0), program::ColumnsPlan{.width = 64, .lanes = 1, .unroll = 1, .vector = 3}},
      {sum(300, 1000, 0), program::ColumnsPlan{.width = 64, .lanes = 1, .unroll = 1, .vector = 5}},
      {sum(300, 996, 0), program::ColumnsPlan{.width = 64, .lanes = 1, .unroll = 1, .vector = 6}},
      {unary("exp", 1000, 300), program::VectorPlan{.lanes = 64, .width = 6}},
      {unary("softmax", 1000, 300), RowsPlan{.lanes = 12, .rows_per_group = 4}},
      {sum(300, 1001, 0), program::ColumnsPlan{.width = 64, .lanes = 1, .unroll = 1, .vector = 2}}};
  for (const auto& [graph, plan] : misfits) {
    const SymbolicKernel estimated = kernelOf(graph);
    EXPECT_FALSE(choiceOf(plan, queryOf(estimated)).has_value()) << program::print(plan);
    EXPECT_EQ(kernelOf(graph, tableOf(describeWork(queryOf(estimated)), plan)).plan, estimated.plan) << program::print(plan);
  }
}

TEST(MeasuredPlan, work_without_a_choice_has_no_name) {
  const SymbolicKernel kernel = kernelOf(unary("exp", 64, 64));
  EXPECT_EQ(describeWork(queryOf(kernel)), "");
  EXPECT_TRUE(candidatePlans(queryOf(kernel)).empty());
  const TuningTable table = tableOf("", kernel.plan);
  EXPECT_FALSE(measuredChoice(queryOf(kernel, &table)).has_value());
}

}  // namespace
}  // namespace lockstep::passes
