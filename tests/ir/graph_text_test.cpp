// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <limits>

#include "ir/graph/builder.h"
#include "ir/graph/graph.h"
#include "ir/graph/op_def.h"
#include "tests/ir/text_testing.h"

namespace lockstep::graph {
namespace {

// A graph whose arenas are in no good order: unused entries, hints that clash, locations and a constant that nothing uses.
Graph untidyGraph() {
  Builder builder;
  builder.mutableGraph().constants.push_back({TensorType{DType::I32, Shape{1}}, {5}});
  builder.mutableGraph().values.push_back({TensorType{}, NodeId(0), 0, "unused"});
  builder.mutableGraph().nodes.emplace_back();
  builder.addLocation({"unused.cpp", 1, 1});
  builder.mutableGraph().constants.push_back({TensorType{DType::F32, Shape{2}}, {0.1, -1e300}});
  ValueId dense = builder.make("dense", {}, {{"data", ConstantId(1)}});
  builder.setLocation(builder.addLocation({"train step.cpp", 12, 7}));
  ValueId x =
      builder.make("input", {}, {{"name", std::string("a \"quoted\"\nname")}, {"dtype", DType::F32}, {"shape", std::vector<int64_t>{2}}});
  ValueId sum = builder.add(x, dense);
  ValueId product = builder.mul(sum, sum);
  for (ValueId value : {sum, product}) builder.name(value, "my value");
  builder.name(x, "12");
  builder.output(OutputKind::Result, "r", product);
  return builder.take();
}

Graph parsed(const std::string& text) {
  auto graph = parse(text, "test");
  if (!graph.ok()) {
    ADD_FAILURE() << toString(graph.diagnostics()) << text;
    return {};
  }
  return *graph;
}

class GraphFile : public testing::TestWithParam<const char*> {};

TEST_P(GraphFile, print_parse_isFixpointAndValid) {
  std::string text = readData(GetParam());
  ASSERT_FALSE(text.empty());
  Graph graph = parsed(text);
  EXPECT_EQ(print(graph), text);
  EXPECT_EQ(graph, canonical(graph));
  Status status = validate(graph);
  EXPECT_TRUE(status.ok()) << toString(status.diagnostics());
}

TEST_P(GraphFile, parse_mutatedText_neverCrashes) {
  std::string text = readData(GetParam());
  std::mt19937 random(7);
  size_t accepted = 0, valid = 0;
  for (int i = 0; i < 4000; ++i) {
    std::string mutated = mutate(text, random);
    SCOPED_TRACE(mutated);
    auto graph = parse(mutated, "mutated");
    if (!graph.ok()) {
      ASSERT_FALSE(graph.diagnostics().empty());
      ASSERT_TRUE(graph.diagnostics().front().where.known()) << toString(graph.diagnostics());
      continue;
    }
    ++accepted;
    auto again = parse(print(*graph, true), "again");
    ASSERT_TRUE(again.ok()) << toString(again.diagnostics());
    ASSERT_EQ(print(*again, true), print(*graph, true));
    valid += validate(*graph).ok() ? 1 : 0;
  }
  // Else the edits are too coarse to reach anything.
  EXPECT_GT(accepted, 100u);
  EXPECT_GT(valid, 20u);
  EXPECT_LT(valid, accepted);
}

INSTANTIATE_TEST_SUITE_P(Files, GraphFile, testing::Values("mlp.graph", "group.graph"));

TEST(GraphText, canonical_untidyGraph_dropsAndRenumbers) {
  Graph tidy = canonical(untidyGraph());
  EXPECT_EQ(tidy.nodes.size(), 4u);
  EXPECT_EQ(tidy.values.size(), 4u);
  ASSERT_EQ(tidy.constants.size(), 1u);
  EXPECT_EQ(tidy.constants[0].data[1], -1e300);
  ASSERT_EQ(tidy.locations.size(), 1u);
  EXPECT_EQ(tidy.values[1].name, "_12");
  EXPECT_EQ(tidy.values[2].name, "my_value");
  EXPECT_EQ(tidy.values[3].name, "my_value.1");
  EXPECT_EQ(tidy, canonical(tidy));
  EXPECT_NE(tidy, untidyGraph());
}

TEST(GraphText, parse_print_equalsCanonical) {
  Graph graph = untidyGraph();
  EXPECT_EQ(parsed(print(graph, true)), canonical(graph));
  EXPECT_EQ(parsed(print(graph)), canonical(withoutLocations(graph)));
  EXPECT_NE(parsed(print(graph)), canonical(graph));
}

TEST(GraphText, print_location_followsNode) {
  EXPECT_NE(print(untidyGraph(), true).find("add %_12, %0 @ \"train step.cpp\":12:7\n"), std::string::npos) << print(untidyGraph(), true);
}

TEST(GraphText, print_largeConstantWithSidecar_movesIt) {
  Builder builder;
  Constant large{TensorType{DType::F32, Shape{17}}, std::vector<double>(17, 0.25)};
  large.data[16] = std::numeric_limits<double>::infinity();
  builder.mutableGraph().constants.push_back(large);
  builder.output(OutputKind::Result, "r", builder.make("dense", {}, {{"data", ConstantId(0)}}));
  Graph graph = builder.take();
  EXPECT_EQ(parsed(print(graph)), canonical(graph));

  std::vector<Constant> sidecar;
  std::string text = print(graph, false, &sidecar);
  ASSERT_EQ(sidecar, std::vector<Constant>{large});
  EXPECT_NE(text.find("constant @c0: f32[17] = sidecar 0\n"), std::string::npos);
  auto again = parse(text, "test", &sidecar);
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(*again, canonical(graph));
  EXPECT_TRUE(reports(parse(text, "test").failure(), "graph.sidecar", 2));
  sidecar[0].type.shape = Shape{1, 17};
  EXPECT_TRUE(reports(parse(text, "test", &sidecar).failure(), "graph.sidecar", 2));
}

TEST(GraphText, parse_symbols_givesNamedDims) {
  std::string text = "lockstep.graph 1\nsymbol rows <= 128\nparameter W: f32[rows,4] {decay = true}\ngraph {\n}\n";
  Graph graph = parsed(text);
  ASSERT_EQ(graph.parameters.size(), 1u);
  EXPECT_EQ(graph.parameters[0].type.shape[0], Dim::named(SymbolId(0), 128));
  EXPECT_EQ(print(graph), text);
  EXPECT_TRUE(validate(graph).ok());
}

TEST(GraphText, parse_attributesOfEveryKind_keepTheirKind) {
  Builder builder;
  Attributes attributes{{"integer", std::numeric_limits<int64_t>::min()},
                        {"float", 3.0},
                        {"tiny", 5e-324},
                        {"minus", -std::numeric_limits<double>::infinity()},
                        {"yes", true},
                        {"no", false},
                        {"text", std::string("f32 \\ \"\t\x01")},
                        {"list", std::vector<int64_t>{-1, 2}},
                        {"none", std::vector<int64_t>{}},
                        {"dtype", DType::Bool},
                        {"a strange name", int64_t{3}},
                        {"shape", std::vector<int64_t>{}},
                        {"value", 0.0}};
  ValueId constant = builder.constant(0, TensorType{});
  Graph graph = builder.take();
  graph.nodes[graph.values[constant.index()].node.index()].attributes = attributes;
  EXPECT_EQ(parsed(print(graph)), canonical(graph)) << print(graph);
}

TEST(GraphText, print_brokenIds_neverCrashes) {
  Graph graph = parsed(readData("group.graph"));
  graph.nodes[5].operands[0] = ValueId(999);
  graph.nodes[4].results[0] = ValueId();
  graph.nodes[4].regions[0] = RegionId(0);
  graph.nodes[0].op = nullptr;
  graph.regions[0].nodes.emplace_back(77U);
  graph.outputs[0].value = ValueId(12345);
  EXPECT_NE(print(graph, true).find("%undefined"), std::string::npos);
  EXPECT_FALSE(validate(graph).ok());
  Graph empty;
  empty.regions.clear();
  EXPECT_EQ(print(empty), "lockstep.graph 1\ngraph {\n}\n");
}

struct SyntaxCase {
  const char* name;
  const char* from;
  const char* to;
  const char* code;
  uint32_t line;
  uint32_t column;
};

class GraphSyntax : public testing::TestWithParam<SyntaxCase> {};

TEST_P(GraphSyntax, parse_brokenText_pointsAtIt) {
  const SyntaxCase& broken = GetParam();
  auto graph = parse(replaced(readData("mlp.graph"), broken.from, broken.to), "test");
  ASSERT_FALSE(graph.ok());
  EXPECT_EQ(toString(graph.diagnostics().front().where), "test:" + std::to_string(broken.line) + ":" + std::to_string(broken.column))
      << toString(graph.diagnostics());
  EXPECT_EQ(graph.diagnostics().front().code, broken.code);
}

INSTANTIATE_TEST_SUITE_P(Texts, GraphSyntax,
                         testing::Values(SyntaxCase{"version", "graph 1", "graph 2", "text.version", 1, 16},
                                         SyntaxCase{"unknownOp", "relu", "rellu", "graph.op", 12, 18},
                                         SyntaxCase{"useBeforeDefinition", "relu %5", "relu %8", "graph.value", 12, 23},
                                         SyntaxCase{"definedTwice", "%4: ", "%3: ", "graph.value", 10, 3},
                                         SyntaxCase{"type", "%h: f32[8,4]", "%h: f33[8,4]", "text.syntax", 12, 7},
                                         SyntaxCase{"zeroExtent", "%h: f32[8,4]", "%h: f32[8,0]", "graph.type", 12, 7},
                                         SyntaxCase{"hugeShape", "%h: f32[8,4]", "%h: f32[9999999999,9999999999]", "graph.type", 12, 7},
                                         SyntaxCase{"symbol", "%h: f32[8,4]", "%h: f32[T,4]", "graph.symbol", 12, 11},
                                         SyntaxCase{"constantSize", ", 0.0]", "]", "graph.constant", 4, 10},
                                         SyntaxCase{"constantName", "data = @c0", "data = @c1", "graph.constant", 13, 30},
                                         SyntaxCase{"attributeTwice", "keep_dims =", "axes =", "graph.attribute", 16, 41},
                                         SyntaxCase{"attributeValue", "false}\n  output", "maybe}\n  output", "text.syntax", 16, 53},
                                         SyntaxCase{"outputKind", "capture", "snapshot", "text.syntax", 18, 10},
                                         SyntaxCase{"trailing", "}\n", "}\ngraph", "text.syntax", 3, 1}),
                         [](const auto& info) { return info.param.name; });

TEST(GraphText, parse_unknownOp_namesNearest) {
  auto graph = parse(replaced(readData("mlp.graph"), "matmul", "matmull"), "test");
  ASSERT_FALSE(graph.ok());
  EXPECT_EQ(graph.diagnostics().front().remedy, "did you mean matmul");
}

TEST(GraphText, parse_graphInsideOfANode_hasNamesOfItsOwn) {
  const std::string whole =
      "lockstep.graph 1\n"
      "constant @c0: f32[2] = [0.5, 1.5]\n"
      "graph {\n"
      "  %x: f32[2] = dense {data = @c0}\n"
      "  %h: f32[4,2] = loop %x {carries = 1, iterations = 3, reverse = true, slices = 0} body {\n"
      "    constant @c0: f32[2] = [2.0, 4.0]\n"
      "    %x: f32[2] = input {dtype = f32, name = \"carry0\", shape = [2]}\n"
      "    %1: f32[2] = dense {data = @c0}\n"
      "    %2: f32[2] = add %x, %1\n"
      "    output result \"carry0\" %2\n"
      "  }\n"
      "  output result \"h\" %h\n"
      "}\n";
  const Graph graph = parsed(whole);
  EXPECT_EQ(print(graph), whole);
  EXPECT_TRUE(validate(graph).ok());
  EXPECT_EQ(canonical(graph), graph);
  std::string broken = whole;
  broken.replace(broken.find("add %x"), 6, "exp %x");
  const Status status = validate(parsed(broken));
  ASSERT_FALSE(status.ok());
  EXPECT_NE(toString(status.diagnostics()).find("in the body of loop"), std::string::npos) << toString(status.diagnostics());
}

TEST(GraphText, parse_deepNesting_isRejected) {
  std::string text = "lockstep.graph 1\ngraph {\n%x: f32[] = input {}\n";
  for (int i = 0; i < 100000; ++i) text += "%a" + std::to_string(i) + ": f32[] = group %x {\n";
  EXPECT_TRUE(reports(parse(text, "test").failure(), "graph.depth"));
  text = "lockstep.graph 1\ngraph {\n";
  for (int i = 0; i < 100000; ++i) text += "%a: f32[] = loop {iterations = 1} body {\n";
  EXPECT_TRUE(reports(parse(text, "test").failure(), "graph.depth"));
}

}  // namespace
}  // namespace lockstep::graph
