// SPDX-License-Identifier: Apache-2.0
// What ls::scan refuses, and where its errors point.
#include <gtest/gtest.h>

#include <functional>
#include <memory>

#include "frontend/nn/nn.h"
#include "frontend/ops/ops.h"
#include "frontend/trace/trace_function.h"
#include "ir/graph/loop.h"

namespace lockstep {
namespace {

using Tensors = std::vector<Tensor>;

struct Model : Module {
  nn::BatchNorm norm{*this, "norm", 3};
};

/// The code of what the function throws; empty where it throws nothing.
std::string codeOf(const std::function<LoopResult(const Model&, const Inputs&)>& function) {
  Model model;
  const auto loss = [&](const Module&, const Inputs& in) -> Outputs { return sum(function(model, in).history[0]); };
  try {
    (void)detail::traceFunction(&model, {{"h", f32(2, 3)}, {"x", f32(5, 2, 3)}, {"y", f32(4, 2, 3)}}, loss, graph::OutputKind::Loss,
                                Where::current());
  } catch (const Error& error) {
    EXPECT_NE(error.diagnostics().front().where.file.find("loop_test.cpp"), std::string::npos);
    EXPECT_FALSE(error.diagnostics().front().remedy.empty());
    return error.diagnostics().front().code;
  }
  return {};
}

LoopStep adding(const Tensors& h, const Tensors& x) { return {{h[0] + x[0]}}; }

TEST(Scan, says_what_is_wrong_with_its_steps) {
  EXPECT_EQ(codeOf([](const Model&, const Inputs& in) { return scan(adding, {in["h"]}, {in["x"]}); }), "");
  const auto alone = [](const Tensors& h, const Tensors&) -> LoopStep { return {{h[0] * 2.0}}; };
  EXPECT_EQ(codeOf([&](const Model&, const Inputs& in) { return scan(alone, {in["h"]}, {}, {.steps = 5}); }), "");
  EXPECT_EQ(codeOf([&](const Model&, const Inputs& in) { return scan(alone, {in["h"]}); }), "scan.steps");
  EXPECT_EQ(codeOf([&](const Model&, const Inputs& in) { return scan(alone, {in["h"]}, {}, {.steps = 0}); }), "scan.steps");
  EXPECT_EQ(codeOf([](const Model&, const Inputs& in) { return scan(adding, {in["h"]}, {in["x"]}, {.steps = 6}); }), "scan.steps");
  EXPECT_EQ(codeOf([](const Model&, const Inputs& in) { return scan(adding, {in["h"]}, {in["x"], in["y"]}); }), "scan.steps");
  EXPECT_EQ(codeOf([](const Model&, const Inputs& in) { return scan(adding, {in["h"]}, {sum(in["x"])}); }), "scan.steps");
}

TEST(Scan, carries_come_back_as_they_went_in) {
  const auto with = [](const std::function<LoopStep(const Tensors&, const Tensors&)>& body) {
    return codeOf([&](const Model&, const Inputs& in) { return scan(body, {in["h"]}, {in["x"]}); });
  };
  EXPECT_EQ(with([](const Tensors& h, const Tensors&) -> LoopStep { return {{sum(h[0])}}; }), "scan.carry");
  EXPECT_EQ(with([](const Tensors& h, const Tensors&) -> LoopStep { return {{cast(h[0], i32)}}; }), "scan.carry");
  EXPECT_EQ(with([](const Tensors&, const Tensors& x) -> LoopStep { return {{}, {x[0]}}; }), "scan.carry");
  EXPECT_EQ(with([](const Tensors& h, const Tensors&) -> LoopStep { return {{h[0]}, {cast(h[0], bf16)}}; }), "loop.C5");
}

TEST(Scan, refuses_what_belongs_to_one_step_alone) {
  const auto captures = [](const Tensors& h, const Tensors& x) -> LoopStep {
    capture("inside", x[0]);
    return adding(h, x);
  };
  EXPECT_EQ(codeOf([&](const Model&, const Inputs& in) { return scan(captures, {in["h"]}, {in["x"]}); }), "scan.capture");
  EXPECT_EQ(codeOf([](const Model& model, const Inputs& in) {
              const auto normalises = [&](const Tensors& h, const Tensors& x) -> LoopStep { return {{model.norm(h[0] + x[0])}}; };
              return scan(normalises, {in["h"]}, {in["x"]});
            }),
            "scan.buffer");
}

/// The body is gone after the call: what it made is no value of the trace.
TEST(Scan, tensors_of_the_body_stay_inside) {
  EXPECT_EQ(codeOf([](const Model&, const Inputs& in) {
              Tensor leaked;
              const auto leaks = [&](const Tensors& h, const Tensors& x) -> LoopStep {
                leaked = h[0] * x[0];
                return adding(h, x);
              };
              LoopResult made = scan(leaks, {in["h"]}, {in["x"]});
              made.history[0] = made.history[0] + leaked;
              return made;
            }),
            "trace.foreign");
}

/// A parameter that std::make_unique declares has the place of its first use, which is in the body.
TEST(Scan, parameters_may_be_used_in_the_body_alone) {
  struct Layered : Module {
    std::unique_ptr<nn::Linear> layer = std::make_unique<nn::Linear>(*this, "layer", 3, 3);
  } model;
  constexpr uint32_t kUse = __LINE__ + 2;
  const auto loss = [&](const Module&, const Inputs& in) -> Outputs {
    const auto layered = [&](const Tensors& h, const Tensors& x) -> LoopStep { return {{tanh((*model.layer)(h[0] + x[0]))}}; };
    return sum(scan(layered, {in["h"]}, {in["x"]}).carry[0]);
  };
  const graph::Graph traced =
      detail::traceFunction(&model, {{"h", f32(2, 3)}, {"x", f32(5, 2, 3)}}, loss, graph::OutputKind::Loss, Where::current());
  EXPECT_TRUE(graph::validate(traced).ok());
  const graph::Node& parameter = traced.definition(graph::findLeaf(traced, "layer.W"));
  ASSERT_NE(parameter.location, 0U);
  EXPECT_EQ(traced.locations.at(parameter.location - 1).line, kUse);
}

}  // namespace
}  // namespace lockstep
