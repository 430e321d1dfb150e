// SPDX-License-Identifier: Apache-2.0
// Gradients inside a program: grad, custom_gradient and checkpoint.
#include "frontend/trace/module.h"
#include "frontend/train/graph_runner.h"
#include "passes/pipeline.h"
#include "tests/frontend/tracing.h"

namespace lockstep {
namespace {

using graph::OutputKind;

TEST(Grad, of_a_product_is_the_other_factor) {
  graph::Tensor value = counted({f32(3), f32(3)}, [](const auto& in) { return grad(sum(in[0] * square(in[1])), {in[1]})[0]; });
  EXPECT_EQ(value.data, (std::vector<double>{2, 8, 18}));
}

TEST(Grad, of_a_gradient_is_the_second_derivative) {
  graph::Tensor value = counted({f32(3)}, [](const auto& in) {
    Tensor slope = grad(sum(in[0] * in[0] * in[0]), {in[0]})[0];
    return grad(sum(slope), {in[0]})[0];
  });
  EXPECT_EQ(value.data, (std::vector<double>{6, 12, 18}));
}

TEST(Grad, by_a_tensor_in_between_and_by_one_that_takes_no_part) {
  graph::Tensor value = counted({f32(2)}, [](const auto& in) {
    Tensor middle = in[0] * 3, unused = in[0] + 1;
    std::vector<Tensor> gradients = grad(sum(square(middle)), {middle, unused});
    return gradients[0] + gradients[1];
  });
  EXPECT_EQ(value.data, (std::vector<double>{6, 12}));
}

TEST(Grad, rejects_what_has_no_gradient) {
  EXPECT_EQ(caught([] { traced({f32(3)}, [](const auto& in) { return grad(in[0], {in[0]})[0]; }); }).code, "grad.C2");
  Diagnostic error = caught([] { traced({f32(3), i32(3)}, [](const auto& in) { return grad(sum(in[0]), {in[1]})[0]; }); });
  EXPECT_EQ(error.code, "grad.C4");
  EXPECT_NE(error.remedy, "");
}

TEST(Grad, results_of_custom_gradients_and_checkpoints_are_f32) {
  Diagnostic custom = caught([] {
    traced({f32(3), i32(3)}, [](const auto& in) {
      return custom_gradient(
                 {in[0]}, [&](auto) { return std::vector{in[1]}; }, [](const BackwardCall& call) { return std::vector{call.inputs[0]}; })
          .front();
    });
  });
  EXPECT_EQ(custom.code, "custom_gradient.C2");
  EXPECT_NE(custom.remedy, "");
  Diagnostic again = caught([] { traced({i32(3)}, [](const auto& in) { return checkpoint([&] { return in[0]; }); }); });
  EXPECT_EQ(again.code, "checkpoint.C1");
  EXPECT_NE(again.remedy, "");
}

/// A step function with the gradient of the identity.
Tensor straightThrough(Tensor x) {
  return custom_gradient(
             {x}, [](std::span<const Tensor> in) { return std::vector{where(in[0] > 2, full({3}, 1), full({3}, 0))}; },
             [](const BackwardCall& call) { return std::vector{call.cotangents[0]}; })
      .front();
}

TEST(CustomGradient, keeps_the_values_and_replaces_the_gradient) {
  graph::Tensor value = counted({f32(3)}, [](const auto& in) { return straightThrough(in[0]); });
  EXPECT_EQ(value.data, (std::vector<double>{0, 0, 1}));
  graph::Tensor gradient = counted({f32(3)}, [](const auto& in) { return grad(sum(straightThrough(in[0]) * in[0]), {in[0]})[0]; });
  EXPECT_EQ(gradient.data, (std::vector<double>{1, 2, 4}));  // the factor x passes through, the step itself is the other one
}

TEST(CustomGradient, is_differentiable_again) {
  // The gradient of x^2 by hand: 2 x dy; its derivative must be 2.
  graph::Tensor second = counted({f32(3)}, [](const auto& in) {
    Tensor y = custom_gradient(
                   {in[0]}, [](std::span<const Tensor> x) { return std::vector{square(x[0])}; },
                   [](const BackwardCall& call) { return std::vector{2 * call.inputs[0] * call.cotangents[0]}; })
                   .front();
    return grad(sum(grad(sum(y), {in[0]})[0]), {in[0]})[0];
  });
  EXPECT_EQ(second.data, (std::vector<double>{2, 2, 2}));
}

TEST(CustomGradient, may_leave_inputs_and_results_out) {
  graph::Tensor gradient = counted({f32(2), f32(2)}, [](const auto& in) {
    std::vector<Tensor> both = custom_gradient(
        {in[0], in[1]}, [](std::span<const Tensor> x) { return std::vector{x[0] * x[1], x[0] + x[1]}; },
        [](const BackwardCall& call) { return std::vector{call.cotangents[0] * 10 + call.cotangents[1], Tensor()}; });
    std::vector<Tensor> gradients = grad(sum(both[0]), {in[0], in[1]});
    return gradients[0] + gradients[1];
  });
  EXPECT_EQ(gradient.data, (std::vector<double>{10, 10}));
}

TEST(CustomGradient, rejects_a_gradient_of_another_shape) {
  Diagnostic error = caught([] {
    traced({f32(3)}, [](const auto& in) {
      return custom_gradient(
                 {in[0]}, [](std::span<const Tensor> x) { return std::vector{sum(x[0])}; },
                 [](const BackwardCall& call) { return std::vector{call.cotangents[0]}; })
          .front();
    });
  });
  EXPECT_EQ(error.code, "custom_gradient.C3");
}

/// Four layers, each of which keeps something for its gradient; alone or in checkpoints of two.
graph::Graph layered(bool with_checkpoints) {
  detail::Trace trace;
  Tensor x = trace.addInput("x", f32(64, 64));
  std::vector<Tensor> weights;
  for (int i = 0; i < 8; ++i) weights.push_back(trace.addInput("w" + std::to_string(i), f32(64, 64)));
  for (size_t i = 0; i < weights.size(); i += 2) {
    auto block = [&, i] { return exp(-square(matmul(exp(-square(matmul(x, weights[i]))), weights[i + 1]))); };
    x = with_checkpoints ? checkpoint(block) : block();
  }
  trace.output(OutputKind::Loss, "loss", mean(square(x)));
  return trace.take();
}

TEST(Checkpoint, gives_the_same_gradients) {
  graph::LeafValues leaves;
  graph::Graph plain = layered(false), recomputed = layered(true);
  GraphRunOptions options{.gradients = true, .wrt = {"x", "w0", "w3", "w7"}};
  uint32_t state = 1;
  for (graph::NodeId id : plain.body().nodes) {
    const graph::Attribute* name = plain[id].attributes.find("name");
    if (name == nullptr) continue;
    graph::Tensor value{plain.typeOf(plain[id].results[0]), {}};
    for (int64_t i = 0; i < value.type.shape.elementCount(); ++i) {
      state = state * 1664525u + 1013904223u;
      value.data.push_back(static_cast<double>(static_cast<float>(state) * 0x1p-32f) * 0.25 - 0.125);
    }
    leaves.emplace(std::get<std::string>(*name), std::move(value));
  }
  std::vector<graph::Tensor> want = runGraph(plain, leaves, options), got = runGraph(recomputed, leaves, options);
  ASSERT_EQ(want.size(), got.size());
  for (size_t n = 0; n < want.size(); ++n) {
    for (size_t i = 0; i < want[n].data.size(); ++i) ASSERT_NEAR(want[n].data[i], got[n].data[i], 1e-12);
  }
}

TEST(Checkpoint, needs_less_memory_for_temporaries) {
  auto workspace = [](graph::Graph graph) {
    passes::CompileOptions options;
    options.keep_gradients = true;
    options.wrt = {"w0", "w7"};
    return passes::compile(std::move(graph), options).orThrow().plan.workspace_bytes;
  };
  uint64_t plain = workspace(layered(false)), recomputed = workspace(layered(true));
  EXPECT_LT(recomputed, plain * 3 / 4) << plain;
}

}  // namespace
}  // namespace lockstep
