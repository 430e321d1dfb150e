// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <limits>

#include "ir/graph/graph.h"
#include "ir/graph/op_def.h"
#include "tests/ir/text_testing.h"

namespace lockstep::graph {
namespace {

Graph load(const std::string& file) {
  auto graph = parse(readData(file), file);
  if (!graph.ok()) {
    ADD_FAILURE() << toString(graph.diagnostics());
    return {};
  }
  return *graph;
}

// A text that parses and is wrong in one place.
struct TextCase {
  const char* name;
  const char* file;
  const char* from;
  const char* to;
  const char* code;
  const char* line;  ///< part of the line of the printed graph that the diagnostic points at
};

class GraphRule : public testing::TestWithParam<TextCase> {};

TEST_P(GraphRule, validate_brokenRule_pointsIntoText) {
  const TextCase& broken = GetParam();
  auto graph = parse(replaced(readData(broken.file), broken.from, broken.to), "test");
  ASSERT_TRUE(graph.ok()) << toString(graph.diagnostics());
  Status status = validate(*graph);
  ASSERT_FALSE(status.ok());
  uint32_t line = lineOf(print(*graph), broken.line);
  ASSERT_NE(line, 0u);
  EXPECT_EQ(status.diagnostics().front().code, broken.code) << toString(status.diagnostics());
  EXPECT_EQ(status.diagnostics().front().where.line, line) << toString(status.diagnostics());
  EXPECT_LE(status.diagnostics().size(), 2u) << toString(status.diagnostics());
}

INSTANTIATE_TEST_SUITE_P(
    Rules, GraphRule,
    testing::Values(
        TextCase{"operandCount", "mlp.graph", "relu %5", "relu %5, %3", "graph.operands", "= relu"},
        TextCase{"unknownAttribute", "mlp.graph", "relu %5", "relu %5 {slope = 0.5}", "graph.attribute", "= relu"},
        TextCase{"missingAttribute", "mlp.graph", "{axes = [0, 1], ", "{", "graph.attribute", "= sum"},
        TextCase{"attributeKind", "mlp.graph", "keep_dims = false", "keep_dims = 0", "graph.attribute", "= sum"},
        TextCase{"resultType", "mlp.graph", "%h: f32[8,4]", "%h: f32[4,8]", "graph.type", "= relu"},
        TextCase{"resultCount", "mlp.graph", "%10: f32[] =", "%10: f32[], %11: f32[] =", "graph.result", "= sum"},
        TextCase{"opRule", "mlp.graph", "add %3, %4", "add %3, %x", "add.C2", "= add"},
        TextCase{"groupKind", "group.graph", "{kind = \"map\"}", "{kind = \"mapp\"}", "graph.attribute", "mapp"},
        TextCase{"regionMissing", "mlp.graph", "relu %5", "group %5 {kind = \"map\"}", "graph.region", "= group"},
        TextCase{"lossType", "mlp.graph", "\"loss\" %10", "\"loss\" %7", "graph.output", "output loss"},
        TextCase{"twoLosses", "mlp.graph", "capture", "loss", "graph.output", "hidden layer"},
        TextCase{"outputTwice", "mlp.graph", "output gradient \"l1.b\" %l1.b", "output capture \"hidden layer\" %x", "graph.output",
                 "layer\" %x"},
        TextCase{"gradientName", "mlp.graph", "gradient \"l1.b\"", "gradient \"l2.b\"", "graph.output", "output gradient"},
        TextCase{"gradientType", "mlp.graph", "gradient \"l1.b\" %l1.b", "gradient \"l1.b\" %h", "graph.output", "output gradient"},
        TextCase{"parameterTwice", "mlp.graph", "parameter l1.b", "parameter l1.W", "graph.parameter", "parameter l1.W: f32[4]"},
        TextCase{"stateName", "group.graph", "next_state \"params\"", "next_state \"moments\"", "graph.output", "output next_state"},
        TextCase{"stateType", "group.graph", "next_state \"params\" %sum", "next_state \"params\" %2", "graph.output", "output next_state"},
        TextCase{"yieldCount", "group.graph", "yield %9, %6", "yield %9", "graph.yield", "yield %9"},
        TextCase{"yieldType", "group.graph", "yield %8", "yield %2", "graph.yield", "yield %2"},
        TextCase{"yieldOwnResult", "group.graph", "yield %9, %6", "yield %9, %5", "graph.yield", "yield %9"},
        TextCase{"useOutOfRegion", "group.graph", "add %sum, %5", "add %sum, %9", "graph.value", "add %sum"},
        TextCase{"outputOutOfRegion", "group.graph", "\"r\" %10", "\"r\" %8", "graph.output", "output result"},
        TextCase{"regionNotTaken", "group.graph", "neg %6\n", "neg %6 {\nyield %6\n}\n", "graph.region", "= neg"}),
    [](const auto& info) { return info.param.name; });

// What no text can say.
struct EditCase {
  const char* name;
  void (*edit)(Graph&);
  const char* code;
};

class GraphIds : public testing::TestWithParam<EditCase> {};

TEST_P(GraphIds, validate_brokenIds_areReported) {
  Graph graph = load("group.graph");
  ASSERT_TRUE(validate(graph).ok());
  GetParam().edit(graph);
  Status status = validate(graph);
  ASSERT_FALSE(status.ok());
  EXPECT_TRUE(reports(status.failure(), GetParam().code)) << toString(status.diagnostics());
}

INSTANTIATE_TEST_SUITE_P(
    Edits, GraphIds,
    testing::Values(EditCase{"noRegion", [](Graph& g) { g.regions.clear(); }, "graph.region"},
                    EditCase{"nodeMissing", [](Graph& g) { g.regions[0].nodes.emplace_back(99U); }, "graph.node"},
                    EditCase{"nodeInvalid", [](Graph& g) { g.regions[0].nodes.emplace_back(); }, "graph.node"},
                    EditCase{"nodeTwice", [](Graph& g) { g.regions[0].nodes.emplace_back(0U); }, "graph.node"},
                    EditCase{"nodeInTwoRegions", [](Graph& g) { g.regions[1].nodes.emplace_back(0U); }, "graph.node"},
                    EditCase{"opMissing", [](Graph& g) { g.nodes[0].op = nullptr; }, "graph.op"},
                    EditCase{"operandMissing", [](Graph& g) { g.nodes[5].operands[0] = ValueId(99); }, "graph.value"},
                    EditCase{"operandInvalid", [](Graph& g) { g.nodes[5].operands[0] = {}; }, "graph.value"},
                    EditCase{"useBeforeDefinition", [](Graph& g) { std::swap(g.regions[1].nodes[0], g.regions[1].nodes[1]); },
                             "graph.value"},
                    EditCase{"resultMissing", [](Graph& g) { g.nodes[0].results[0] = ValueId(99); }, "graph.value"},
                    EditCase{"resultNone", [](Graph& g) { g.nodes[2].results.clear(); }, "graph.result"},
                    EditCase{"resultTwice", [](Graph& g) { g.nodes[1].results[0] = ValueId(0); }, "graph.value"},
                    EditCase{"makerWrong", [](Graph& g) { g.values[1].node = NodeId(0); }, "graph.value"},
                    EditCase{"resultIndexWrong", [](Graph& g) { g.values[1].result = 3; }, "graph.value"},
                    EditCase{"dtype", [](Graph& g) { g.values[1].type.dtype = static_cast<DType>(9); }, "graph.type"},
                    EditCase{"extent", [](Graph& g) { g.values[1].type.shape = Shape{-4}; }, "graph.type"},
                    EditCase{"overflow", [](Graph& g) { g.values[1].type.shape = Shape{INT64_MAX, INT64_MAX}; }, "graph.type"},
                    EditCase{"symbol", [](Graph& g) { g.values[1].type.shape = Shape{Dim::named(SymbolId(2), 64)}; }, "graph.type"},
                    EditCase{"constantMissing", [](Graph& g) { g.nodes[2].attributes.set("data", ConstantId(9)); }, "graph.constant"},
                    EditCase{"constantSize", [](Graph& g) { g.constants[0].data.pop_back(); }, "graph.constant"},
                    EditCase{"location", [](Graph& g) { g.nodes[2].location = 4; }, "graph.location"},
                    EditCase{"regionMissing", [](Graph& g) { g.nodes[4].regions[0] = RegionId(9); }, "graph.region"},
                    EditCase{"regionShared", [](Graph& g) { g.nodes[4].regions.push_back(RegionId(1)); }, "graph.region"},
                    EditCase{"regionRecursive", [](Graph& g) { g.nodes[6].regions[0] = RegionId(1); }, "graph.region"},
                    EditCase{"bodyOwned", [](Graph& g) { g.nodes[4].regions[0] = RegionId(0); }, "graph.region"},
                    EditCase{"bodyYields", [](Graph& g) { g.regions[0].yields.emplace_back(size_t{0}); }, "graph.yield"},
                    EditCase{"yieldMissing", [](Graph& g) { g.regions[1].yields[0] = ValueId(99); }, "graph.yield"},
                    EditCase{"outputMissing", [](Graph& g) { g.outputs[0].value = ValueId(99); }, "graph.output"}),
    [](const auto& info) { return info.param.name; });

TEST(GraphValidate, validate_nodeWithLocation_notesIt) {
  auto graph = parse(replaced(readData("mlp.graph"), "relu %5", "relu %5, %3 @ \"train.cpp\":7:3"), "test");
  ASSERT_TRUE(graph.ok()) << toString(graph.diagnostics());
  Status status = validate(*graph);
  ASSERT_FALSE(status.ok());
  ASSERT_EQ(status.diagnostics().front().notes.size(), 1u);
  EXPECT_EQ(status.diagnostics().front().notes[0].where, (Location{"train.cpp", 7, 3}));
}

}  // namespace
}  // namespace lockstep::graph
