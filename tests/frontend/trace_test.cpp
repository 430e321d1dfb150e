// SPDX-License-Identifier: Apache-2.0
#include <map>
#include <memory>

#include "frontend/nn/nn.h"
#include "tests/frontend/tracing.h"

namespace lockstep {
namespace {

TEST(Trace, op_outside_of_a_trace_is_rejected_with_its_place) {
  Diagnostic error = caught([] { arange(3); });
  EXPECT_EQ(error.code, "trace.inactive");
  EXPECT_TRUE(error.where.file.ends_with("trace_test.cpp")) << error.where.file;
  EXPECT_EQ(error.where.line, __LINE__ - 3u);
  EXPECT_FALSE(error.remedy.empty());
}

TEST(Trace, tensor_of_another_trace_is_rejected) {
  Tensor kept;
  traced({f32(2)}, [&](const auto& in) { return kept = in[0]; });
  EXPECT_EQ(caught([&] { traced({f32(2)}, [&](const auto& in) { return in[0] + kept; }); }).code, "trace.foreign");
  EXPECT_EQ(caught([&] { (void)kept.shape(); }).code, "trace.inactive");
}

TEST(Trace, tensor_that_was_never_set_is_rejected) {
  EXPECT_EQ(caught([] { traced({f32(2)}, [](const auto& in) { return in[0] + Tensor(); }); }).code, "trace.foreign");
}

TEST(Trace, nested_trace_is_rejected_and_the_outer_one_goes_on) {
  graph::Graph graph = traced({f32(2)}, [](const auto& in) {
    EXPECT_EQ(caught([] { traced({}, [](const auto&) { return arange(2); }); }).code, "trace.nested");
    return in[0] + 1;
  });
  EXPECT_EQ(graph.outputs.size(), 1u);
}

TEST(Trace, ends_when_the_function_throws) {
  EXPECT_THROW(traced({f32(2)}, [](const auto&) -> Tensor { throw std::runtime_error("user"); }), std::runtime_error);
  EXPECT_NO_THROW(traced({f32(2)}, [](const auto& in) { return in[0]; }));
}

TEST(Trace, operator_error_names_place_shapes_and_where_operands_were_made) {
  uint32_t made_at = 0, used_at = 0;
  Diagnostic error = caught([&] {
    traced({f32(3, 4), f32(5)}, [&](const auto& in) {
      Tensor twice = in[0] * 2;
      made_at = __LINE__ - 1;
      Tensor bad = twice + in[1];
      return bad;
    });
  });
  used_at = made_at + 2;
  EXPECT_EQ(error.code, "add.C2");
  EXPECT_EQ(error.message, "shapes [3,4] and [5] do not broadcast: axis -1 has 4 and 5");
  EXPECT_TRUE(error.where.file.ends_with("trace_test.cpp"));
  EXPECT_EQ(error.where.line, used_at);
  ASSERT_EQ(error.notes.size(), 2u);
  EXPECT_EQ(error.notes[0].message, "operand a is f32[3,4], made by mul here");
  EXPECT_EQ(error.notes[0].where.line, made_at);
  EXPECT_EQ(error.notes[1].message, "operand b is f32[5], the input 'b'");
}

TEST(Trace, failure_of_an_ops_rule_is_placed_too) {
  Diagnostic error = caught([] { traced({f32(3, 4), f32(3, 4)}, [](const auto& in) { return matmul(in[0], in[1]); }); });
  EXPECT_EQ(error.code, "matmul.C3");
  EXPECT_EQ(error.where.line, __LINE__ - 2u);
  ASSERT_EQ(error.notes.size(), 2u);
  EXPECT_EQ(error.notes[0].message, "operand a is f32[3,4], the input 'a'");
}

TEST(Trace, locations_reach_the_graph) {
  graph::Graph graph = traced({f32(3)}, [](const auto& in) { return relu(in[0]); });
  const graph::Node& node = graph.definition(graph.outputs[0].value);
  ASSERT_NE(node.location, 0u);
  EXPECT_EQ(graph.locations[node.location - 1].line, __LINE__ - 3u);
}

TEST(Trace, parameter_of_a_layer_made_by_make_unique_is_placed_at_its_first_use) {
  struct Model : Module {
    std::unique_ptr<nn::Linear> far = std::make_unique<nn::Linear>(*this, "far", 3, 2);
    nn::Linear near{*this, "near", 2, 2};
  };
  const uint32_t model_line = __LINE__ - 4, used_line = __LINE__ + 4;
  Model model;
  detail::Trace trace;
  trace.addParameters(model);
  const Tensor hidden = (*model.far)(trace.addInput("x", f32(1, 3)));
  trace.output(graph::OutputKind::Result, "y", model.near(hidden));
  const graph::Graph graph = trace.take();
  std::map<std::string, Location> placed;
  for (const graph::Node& node : graph.nodes) {
    const std::string* name = graph::leafName(node);
    if (name != nullptr && node.location != 0) placed[*name] = graph.locations[node.location - 1];
  }
  for (const char* name : {"far.W", "far.b", "near.W", "near.b"}) {
    EXPECT_TRUE(placed[name].file.ends_with("trace_test.cpp")) << name << " in " << placed[name].file;
    EXPECT_EQ(placed[name].line, name[0] == 'f' ? used_line : model_line) << name;
  }
}

TEST(Trace, capture_names_are_unique) {
  Diagnostic error = caught([] {
    traced({f32(3)}, [](const auto& in) {
      capture("h", in[0]);
      return capture("h", in[0]);
    });
  });
  EXPECT_EQ(error.code, "capture.name");
  ASSERT_EQ(error.notes.size(), 1u);
  EXPECT_EQ(error.notes[0].where.line + 1, error.where.line);
}

TEST(Trace, captures_and_prints_share_names_with_the_result) {
  graph::Graph graph = traced({f32(3)}, [](const auto& in) { return print(print(in[0], "loss"), "loss"); });
  ASSERT_EQ(graph.outputs.size(), 3u);
  EXPECT_EQ(graph.outputs[0].name, "loss (2)");
  EXPECT_EQ(graph.outputs[1].name, "loss (3)");
  EXPECT_EQ(caught([] { traced({f32(3)}, [](const auto& in) { return capture("loss", in[0]); }); }).code, "capture.name");
  EXPECT_EQ(caught([] { traced({f32(3)}, [](const auto& in) { return capture("h", print(in[0], "h")); }); }).code, "capture.name");
}

TEST(Trace, capture_becomes_an_output) {
  graph::Graph graph = traced({f32(3)}, [](const auto& in) { return capture("h", in[0] * 2) + 1; });
  ASSERT_EQ(graph.outputs.size(), 2u);
  EXPECT_EQ(graph.outputs[0].kind, graph::OutputKind::Capture);
  EXPECT_EQ(graph.outputs[0].name, "h");
}

TEST(Trace, input_with_a_zero_extent_is_rejected) {
  Diagnostic error = caught([] { traced({f32(3, 0)}, [](const auto& in) { return in[0]; }); });
  EXPECT_EQ(error.code, "input.C1");
  EXPECT_NE(error.message.find("input 'a'"), std::string::npos);
}

}  // namespace
}  // namespace lockstep
