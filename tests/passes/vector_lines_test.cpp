// SPDX-License-Identifier: Apache-2.0
// Scans, sums by segments and rows of a table by vectors: chosen where the index maps prove neighbours, and right.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "frontend/train/graph_runner.h"
#include "frontend/train/templates.h"
#include "ir/graph/builder.h"
#include "tests/passes/profiled_device.h"

namespace lockstep {
namespace {

using namespace graph;

struct Lines {
  std::string name;
  std::vector<int64_t> shape;
  int64_t axis = 0;
  bool reverse = false;
  int64_t vector = 1;  ///< that is chosen for a GPU
};

Graph scanGraph(const Lines& lines) {
  Builder b;
  const ValueId x = b.make("input", {}, {{"name", std::string("x")}, {"dtype", DType::F32}, {"shape", lines.shape}});
  b.output(OutputKind::Result, "y", b.make("cumsum", {b.mul(x, 2.0)}, {{"axis", lines.axis}, {"reverse", lines.reverse}}));
  return b.take();
}

/// Rows of a table of `columns` by `count` indices, and the sum of each entry's rows.
Graph rowsGraph(int64_t entries, int64_t columns, int64_t count, DType storage) {
  Builder b;
  const ValueId packed =
      b.make("input", {}, {{"name", std::string("table")}, {"dtype", storage}, {"shape", std::vector<int64_t>{entries, columns}}});
  const ValueId table = storage == DType::F32 ? packed : b.make("cast", {packed}, {{"dtype", DType::F32}});
  const ValueId index =
      b.make("input", {}, {{"name", std::string("index")}, {"dtype", DType::I32}, {"shape", std::vector<int64_t>{count}}});
  const ValueId rows = b.make("embedding", {table, index});
  b.output(OutputKind::Result, "rows", rows);
  b.output(OutputKind::Result, "sums", b.make("segment_sum", {b.mul(rows, 2.0), index}, {{"axis", int64_t{0}}, {"segments", entries}}));
  return b.take();
}

/// The neighbours that the kernels of a graph load at once, by kind of plan.
std::map<std::string, int64_t> vectorsOf(const Graph& graph) {
  passes::CompileOptions options;
  options.profile = program::findProfile("portable").orThrow();
  options.templates = detail::templateSource();
  options.disabled = {"sortSegments"};
  const passes::Form form = passes::compileTo(passes::Stage::Scheduled, graph, options).orThrow();
  std::map<std::string, int64_t> vectors;
  for (const program::Kernel& kernel : std::get<program::Program>(form).kernels) {
    const program::Plan& plan = std::get<program::SymbolicKernel>(kernel.code).plan;
    if (const auto* map = std::get_if<program::VectorPlan>(&plan)) vectors["map"] = map->width;
    if (const auto* scan = std::get_if<program::ScanPlan>(&plan)) vectors["scan"] = scan->vector;
    if (const auto* scatter = std::get_if<program::ScatterPlan>(&plan)) vectors["scatter"] = scatter->vector;
  }
  return vectors;
}

class VectorScans : public ::testing::TestWithParam<Lines> {};
INSTANTIATE_TEST_SUITE_P(Lines, VectorScans,
                         ::testing::Values(Lines{"along", {300, 1024}, 1, false, 4}, Lines{"along_backwards", {300, 1028}, 1, true, 4},
                                           Lines{"along_odd", {300, 1023}, 1, false, 1}, Lines{"across", {3, 33, 4100}, 1, false, 4},
                                           Lines{"across_backwards", {33, 8196}, 0, true, 4}, Lines{"across_odd", {33, 8197}, 0, false, 1},
                                           Lines{"short", {5, 4}, 1, false, 4}),
                         [](const auto& info) { return info.param.name; });

TEST_P(VectorScans, are_right) {
  const Lines& lines = GetParam();
  const Graph graph = scanGraph(lines);
  EXPECT_EQ(vectorsOf(graph).at("scan"), lines.vector);
  const Shape shape(lines.shape);
  std::vector<double> x(static_cast<size_t>(shape.elementCount())), wanted(x.size());
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<double>(i * 7919 % 65) - 32;  // exact sums
  const auto stride = static_cast<size_t>(shape.strides()[static_cast<size_t>(lines.axis)]);
  const auto length = static_cast<size_t>(shape.extent(static_cast<size_t>(lines.axis)));
  for (size_t first = 0; first < x.size(); ++first) {
    if (first / stride % length != 0) continue;
    double sum = 0;
    for (size_t n = 0; n < length; ++n) {
      const size_t at = first + (lines.reverse ? length - 1 - n : n) * stride;
      wanted[at] = sum += 2 * x[at];
    }
  }
  for (const char* name : {"reference", "vulkan"}) {
    if (!chooseDevice(name).ok()) continue;
    const auto runner = makeDeviceRunner(graph, {}, portableDevice(name)).orThrow();
    EXPECT_EQ(runner->step({{"x", x}}).orThrow().at({OutputKind::Result, "y"}), wanted) << name;
  }
}

TEST(VectorRows, of_a_table_are_neighbours_and_so_are_their_sums) {
  EXPECT_EQ(vectorsOf(rowsGraph(1031, 768, 4099, DType::F32)), (std::map<std::string, int64_t>{{"map", 4}, {"scatter", 4}}));
  EXPECT_EQ(vectorsOf(rowsGraph(1031, 768, 4099, DType::BF16)).at("map"), 4) << "results of 32 bits: 16 bytes are four";
  EXPECT_EQ(vectorsOf(rowsGraph(1031, 769, 4099, DType::F32)), (std::map<std::string, int64_t>{{"scatter", 1}})) << "odd rows";
}

class VectorRows : public ::testing::TestWithParam<int64_t> {};
INSTANTIATE_TEST_SUITE_P(Columns, VectorRows, ::testing::Values(768, 769, 132), ::testing::PrintToStringParamName());

TEST_P(VectorRows, are_right) {
  const int64_t entries = 257, columns = GetParam(), count = 1031;
  const auto width = static_cast<size_t>(columns);
  std::vector<double> table(static_cast<size_t>(entries) * width), index(static_cast<size_t>(count));
  for (size_t i = 0; i < table.size(); ++i) table[i] = static_cast<double>(i * 7919 % 257) - 128;
  for (size_t i = 0; i < index.size(); ++i) index[i] = static_cast<double>(i * i % 257);
  index[5] = -1;  // rows that there are not are zeros, and nobody's
  index[7] = 257;
  std::vector<double> rows(index.size() * width, 0.0), sums(table.size(), 0.0);
  for (size_t i = 0; i < index.size(); ++i) {
    if (index[i] < 0 || index[i] >= static_cast<double>(entries)) continue;
    for (size_t c = 0; c < width; ++c) {
      const size_t at = static_cast<size_t>(index[i]) * width + c;
      rows[i * width + c] = table[at];
      sums[at] += 2 * table[at];
    }
  }
  for (const DType storage : {DType::F32, DType::BF16}) {  // which has numbers up to 256
    for (const char* name : {"reference", "vulkan"}) {
      if (!chooseDevice(name).ok()) continue;
      for (const bool sorts : {false, true}) {
        passes::CompileOptions options;
        options.check_indices = false;
        if (!sorts) options.disabled = {"sortSegments"};
        const auto runner = makeDeviceRunner(rowsGraph(entries, columns, count, storage), options, portableDevice(name)).orThrow();
        const StepOutputs out = runner->step({{"table", table}, {"index", index}}).orThrow();
        EXPECT_EQ(out.at({OutputKind::Result, "rows"}), rows) << name;
        EXPECT_EQ(out.at({OutputKind::Result, "sums"}), sums) << name;
      }
    }
  }
}

}  // namespace
}  // namespace lockstep
