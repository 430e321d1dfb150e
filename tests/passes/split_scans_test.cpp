// SPDX-License-Identifier: Apache-2.0
// Scans along few long lines in three steps, as on GPUs, and totals in two: how many dispatches they take, and that they are right for any
// length.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "frontend/train/graph_runner.h"
#include "frontend/train/templates.h"
#include "ir/graph/scalar_graph.h"
#include "tests/differential/compare.h"
#include "tests/passes/profiled_device.h"

namespace lockstep {
namespace {

using namespace graph;

struct ScanCase {
  std::string name, op;
  std::vector<int64_t> shape;
  int64_t axis = 0;
  bool reverse = false;
};
void PrintTo(const ScanCase& one, std::ostream* out) { *out << one.name; }

/// The larger of two first components, with sums of the second ones relative to it: neither commutes with rounding nor has an identity.
std::string logSum() {
  return print(makeCombine(std::array{DType::F32, DType::F32}, [](Builder& b, auto x, auto y) {
    const ValueId larger = b.make("max", {x[0], y[0]});
    const auto scaled = [&](auto& tuple) { return b.mul(tuple[1], b.make("exp", {b.sub(tuple[0], larger)})); };
    return std::vector{larger, b.add(scaled(x), scaled(y))};
  }));
}

Graph scanGraph(const ScanCase& c) {
  Builder b;
  std::vector<ValueId> operands;
  for (int i = 0; i < (c.op == "cumsum" ? 1 : 2); ++i)
    operands.push_back(b.make("input", {}, {{"name", fmt::format("x{}", i)}, {"dtype", DType::F32}, {"shape", c.shape}}));
  Attributes attributes{{"axis", c.axis}};
  if (c.op != "associative_reduce") attributes.set("reverse", c.reverse);
  if (c.op.starts_with("associative")) attributes.set("combine", logSum());
  const std::vector<ValueId> results = b.makeAll(c.op, operands, attributes);
  b.output(OutputKind::Result, "y", results.back());
  return b.take();
}

/// On each device as evaluate.
void expectRight(const ScanCase& c, const std::vector<detail::Device>& devices) {
  const Graph graph = scanGraph(c);
  LeafValues leaves;
  for (const NodeId id : graph.body().nodes) {
    if (leafKind(graph[id]) != LeafKind::Input) continue;
    const TensorType& type = graph.typeOf(graph[id].results[0]);
    Tensor values{type, {}};
    // Factors near 1, so that states reach far; totals of positive numbers, whose rounding is not seen as more than it is.
    const bool is_factor = *leafName(graph[id]) == "x0" && c.op == "linear_recurrence";
    const bool is_added = *leafName(graph[id]) == "x1" && c.op == "associative_reduce";
    const double middle = is_factor ? 0.999 : is_added ? 1.5 : 0, width = is_factor ? 1e-3 : 1;
    for (int64_t i = 0; i < type.shape.elementCount(); ++i)
      values.data.push_back(static_cast<double>(static_cast<float>(middle + width * std::sin(0.7 * static_cast<double>(i)))));
    leaves.emplace(*leafName(graph[id]), std::move(values));
  }
  const Tensor want = runGraph(graph, leaves).front();
  for (const detail::Device& device : devices) {
    const std::string& id = device.chosen.info.id;
    expectClose({runGraph(graph, leaves, {.device = id, .opened = &device}).front()}, {want}, 2e-5, id);
  }
}

std::vector<detail::Device> asGpus() {
  std::vector<detail::Device> devices;
  for (const std::string device : {"reference", "vulkan"}) {
    if (chooseDevice(device).ok()) devices.push_back(portableDevice(device));
  }
  return devices;
}

/// The dispatches with and without the pass.
std::pair<size_t, size_t> dispatchesOf(const ScanCase& c) {
  passes::CompileOptions options;
  options.profile = program::findProfile("portable").orThrow();
  options.templates = detail::templateSource();
  const size_t with = passes::compile(scanGraph(c), options).orThrow().plan.dispatches;
  options.disabled = {"splitScans"};
  return {with, passes::compile(scanGraph(c), options).orThrow().plan.dispatches};
}

class SplitScans : public ::testing::TestWithParam<ScanCase> {};

TEST_P(SplitScans, take_three_dispatches) { EXPECT_EQ(dispatchesOf(GetParam()), std::pair(size_t{3}, size_t{1})); }

TEST_P(SplitScans, are_right) { expectRight(GetParam(), asGpus()); }

class SplitTotals : public ::testing::TestWithParam<ScanCase> {};

/// The parts, their totals, and where the parts are no divisor of a line, what is left.
TEST_P(SplitTotals, take_at_most_three_dispatches) {
  const auto [with, without] = dispatchesOf(GetParam());
  EXPECT_GE(with, 2U);
  EXPECT_LE(with, 3U);
  EXPECT_EQ(without, 1U);
}

TEST_P(SplitTotals, are_right) { expectRight(GetParam(), asGpus()); }

INSTANTIATE_TEST_SUITE_P(Cases, SplitTotals,
                         ::testing::Values(ScanCase{"line", "associative_reduce", {100'003}},
                                           ScanCase{"even", "associative_reduce", {1 << 17}},
                                           ScanCase{"lines", "associative_reduce", {3, 70'001}, 1},
                                           ScanCase{"middle", "associative_reduce", {2, 5'003, 3}, 1},
                                           ScanCase{"columns", "associative_reduce", {4'099, 40}, 0},
                                           ScanCase{"wide_columns", "associative_reduce", {1'031, 128}, 0}),
                         [](const auto& info) { return info.param.name; });

INSTANTIATE_TEST_SUITE_P(Cases, SplitScans,
                         ::testing::Values(ScanCase{"sum", "cumsum", {100'003}}, ScanCase{"sum_reverse", "cumsum", {3, 70'001}, 1, true},
                                           ScanCase{"recurrence", "linear_recurrence", {2, 65'537}, 1},
                                           ScanCase{"recurrence_middle", "linear_recurrence", {2, 5'003, 3}, 1},
                                           ScanCase{"recurrence_reverse", "linear_recurrence", {99'991}, 0, true},
                                           ScanCase{"log_sum", "associative_scan", {4'099, 2}, 0},
                                           ScanCase{"log_sum_reverse", "associative_scan", {20'011}, 0, true}),
                         [](const auto& info) { return info.param.name; });

/// Each place is one more total, and few kernels put them side by side; nothing is sorted.
TEST(SplitTotals, of_the_largest_elements_sort_nothing) {
  for (const int64_t k : {1, 5, 32}) {
    Builder b;
    const ValueId x = b.make("input", {}, {{"name", std::string("x")}, {"dtype", DType::F32}, {"shape", std::vector<int64_t>{50'257}}});
    const std::vector<ValueId> best = b.makeAll("top_k", {x}, {{"axis", int64_t{0}}, {"k", k}});
    b.output(OutputKind::Result, "values", best[0]);
    b.output(OutputKind::Result, "places", best[1]);
    passes::CompileOptions options;
    options.profile = program::findProfile("portable").orThrow();
    const passes::Compiled compiled = passes::compile(b.graph(), options).orThrow();
    EXPECT_LE(compiled.plan.dispatches, static_cast<size_t>(3 * k + k / 4 + 2));
    for (const program::Command& command : compiled.program.commands) EXPECT_EQ(command.label.find("merge_order"), std::string::npos);
  }
}

/// Where lines are many, or short, there is work enough.
TEST(WholeScans, take_one_dispatch) {
  for (const std::vector<int64_t>& shape : {std::vector<int64_t>{512, 5'003}, std::vector<int64_t>{2, 4'000}}) {
    passes::CompileOptions options;
    options.profile = program::findProfile("portable").orThrow();
    EXPECT_EQ(passes::compile(scanGraph({"", "cumsum", shape, 1}), options).orThrow().plan.dispatches, 1U);
  }
}

/// Lines that a device cannot bind at once run in slices of them, each a dispatch.
TEST(WholeScans, of_more_than_a_binding_run_in_slices) {
  if (!chooseDevice("reference").ok()) GTEST_SKIP() << "the reference device is not available";
  detail::Device small = portableDevice("reference");
  small.chosen.info.profile.max_binding_bytes = 64U << 10;  // 15 of 61 lines
  for (const ScanCase& c : {ScanCase{"sum", "cumsum", {61, 1'088}, 1}, ScanCase{"recurrence", "linear_recurrence", {61, 1'088}, 1}}) {
    passes::CompileOptions options;
    options.profile = small.chosen.info.profile;
    options.disabled = {"mergeDispatches"};
    EXPECT_EQ(passes::compile(scanGraph(c), options).orThrow().plan.dispatches, 5U) << c.name;
    expectRight(c, {small});
  }
}

/// A scan of more tensors than a kernel binds cannot be cut.
TEST(WholeScans, of_too_many_tensors_are_refused) {
  Builder b;
  std::vector<ValueId> operands;
  for (int i = 0; i < 5; ++i)
    operands.push_back(b.make("input", {}, {{"name", fmt::format("x{}", i)}, {"dtype", DType::F32}, {"shape", std::vector<int64_t>{9}}}));
  const std::vector<DType> types(5, DType::F32);
  const std::string later = print(makeCombine(types, [](Builder&, auto, auto y) { return std::vector<ValueId>(y.begin(), y.end()); }));
  const std::vector<ValueId> results =
      b.makeAll("associative_scan", operands, {{"axis", int64_t{0}}, {"reverse", false}, {"combine", later}});
  for (const ValueId result : results) b.output(OutputKind::Result, fmt::format("y{}", result.value), result);
  passes::CompileOptions options;
  options.profile = program::findProfile("portable").orThrow();
  const Result<passes::Compiled> refused = passes::compile(b.graph(), options);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.diagnostics().front().code, "schedule.bindings");
  options.profile.max_storage_buffers = 10;
  EXPECT_TRUE(passes::compile(b.graph(), options).ok());
}

}  // namespace
}  // namespace lockstep
