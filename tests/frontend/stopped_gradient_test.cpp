// SPDX-License-Identifier: Apache-2.0
// A trained parameter that gets no gradient is an error that names what stops it, unless the zeros are meant.
#include "frontend/ops/gradient.h"
#include "tests/frontend/trainer_fixture.h"

namespace lockstep {
namespace {

struct Two : Module {
  Parameter a{*this, "a", {3}, init::literal({1, 2, 3})}, b{*this, "b", {3}, init::literal({3, 2, 1})};
};
using Loss = std::function<Tensor(const Two&, Tensor x)>;

CompileSpec<Two> specOf(Loss loss, OptimizerSpec optimizer = sgd({.lr = 0.1})) {
  return {.inputs = {{"x", f32(3)}},
          .loss = [loss = std::move(loss)](const Two& model, const Inputs& in) { return loss(model, in["x"]); },
          .optimizer = std::move(optimizer),
          .seed = 1,
          .device = "reference"};
}

void expectTrains(const Loss& loss, const OptimizerSpec& optimizer = sgd({.lr = 0.1})) {
  auto trainer = compile<Two>(specOf(loss, optimizer));
  const std::vector<float> x{1, 2, 3};
  EXPECT_TRUE(trainer.step({{"x", x}}).completed());
}

Error errorOf(const Loss& loss) {
  return caught([&] { (void)compile<Two>(specOf(loss)); });
}

/// One diagnostic with this message, at `line` of this file.
void expectStopped(const Error& error, const std::string& message, int line) {
  ASSERT_EQ(error.diagnostics().size(), 1u) << error.what();
  const Diagnostic& diagnostic = error.diagnostics().front();
  EXPECT_EQ(diagnostic.code, "grad.C5");
  EXPECT_EQ(diagnostic.message, message);
  EXPECT_TRUE(diagnostic.where.file.ends_with("stopped_gradient_test.cpp")) << diagnostic.where.file;
  EXPECT_EQ(static_cast<int>(diagnostic.where.line), line);
  EXPECT_NE(diagnostic.remedy.find("stop_gradient"), std::string::npos) << diagnostic.remedy;
}

Tensor asFloat(Tensor x) { return cast(x, DType::F32); }

TEST(StoppedGradient, by_a_position) {
  const int line = __LINE__ + 1;
  expectStopped(errorOf([](const Two& m, Tensor x) { return mean(square(m.b * x)) + asFloat(argmax(m.a * x, 0)); }),
                "parameter 'a' gets no gradient: 'argmax' stops it (the result is a position)", line);
}

TEST(StoppedGradient, by_a_comparison) {
  const int line = __LINE__ + 1;
  expectStopped(errorOf([](const Two& m, Tensor x) { return mean(where(x > m.a, m.b * x, x)); }),
                "parameter 'a' gets no gradient: 'greater' stops it (the result is a truth value, which is constant almost everywhere)",
                line);
}

TEST(StoppedGradient, by_an_integer) {
  const int line = __LINE__ + 1;
  expectStopped(errorOf([](const Two& m, Tensor x) { return mean(m.b * x) + mean(asFloat(cast(m.a * x, DType::I32))); }),
                "parameter 'a' gets no gradient: 'cast' stops it (its result is i32)", line);
  const int sorted = __LINE__ + 1;
  expectStopped(errorOf([](const Two& m, Tensor x) { return mean(m.b * x) + mean(asFloat(sort(m.a * x, 0).indices)); }),
                "parameter 'a' gets no gradient: 'sort' stops it (its result is i32)", sorted);
}

TEST(StoppedGradient, of_several_parameters_is_one_error_for_each_place) {
  const int line = __LINE__ + 1;
  expectStopped(errorOf([](const Two& m, Tensor x) { return asFloat(argmax(m.a * m.b * x, 0)); }),
                "parameters 'a' and 'b' get no gradient: 'argmax' stops it (the result is a position)", line);
  const Error two = errorOf([](const Two& m, Tensor x) {
    Tensor first = argmax(m.a * x, 0), second = argmin(m.b * x, 0);
    return asFloat(first + second);
  });
  ASSERT_EQ(two.diagnostics().size(), 2u);
  EXPECT_NE(two.diagnostics()[0].message.find("'a' gets no gradient: 'argmax'"), std::string::npos);
  EXPECT_NE(two.diagnostics()[1].message.find("'b' gets no gradient: 'argmin'"), std::string::npos);
}

constexpr const char* kDouble = R"(
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u) {
  if (id.x < arrayLength(&y)) { y[id.x] = 2 * x[id.x]; }
})";

TEST(StoppedGradient, by_a_kernel_without_a_gradient) {
  const Kernel twice{{.name = "twice", .source = kDouble}};
  const int line = __LINE__ + 1;
  const Error error = errorOf([&](const Two& m, Tensor x) { return mean(m.b * x) + mean(twice({m.a})[0]); });
  expectStopped(error, "parameter 'a' gets no gradient through kernel 'twice' (what a kernel computes is not known)", line);
  EXPECT_TRUE(error.diagnostics().front().remedy.starts_with("give the kernel a .gradient"));
  expectTrains([&](const Two& m, Tensor x) { return mean(m.b * x) + mean(twice({stop_gradient(m.a)})[0]); });
  // Another way does not make up for what the kernel would add.
  const int beside = __LINE__ + 1;
  expectStopped(errorOf([&](const Two& m, Tensor x) { return mean(m.a * m.b * x) + mean(twice({m.a})[0]); }),
                "parameter 'a' gets no gradient through kernel 'twice' (what a kernel computes is not known)", beside);
  EXPECT_EQ(errorOf([&](const Two& m, Tensor x) { return mean(checkpoint([&] { return m.a * m.b * x + twice({m.a * x})[0]; })); }).code(),
            "grad.C5");
  EXPECT_EQ(errorOf([&](const Two& m, Tensor x) { return mean(m.b * x + grad(mean(m.a * m.a * x + twice({m.a})[0]), {m.a})[0]); }).code(),
            "grad.C5");
  expectTrains([&](const Two& m, Tensor x) { return mean(m.a * m.b * x) + mean(twice({stop_gradient(m.a)})[0]); });
  expectTrains([&](const Two& m, Tensor x) { return mean(m.a * m.b * x) + stop_gradient(mean(twice({m.a})[0])); });
  // What a capture alone sees is no part of the loss.
  expectTrains([&](const Two& m, Tensor x) {
    capture("doubled", twice({m.a})[0]);
    return mean(m.a * m.b * x);
  });
  const Kernel known{
      {.name = "known", .source = kDouble, .gradient = [](const BackwardCall& call) { return std::vector{2 * call.cotangents[0]}; }}};
  expectTrains([&](const Two& m, Tensor x) { return mean(m.b * x) + mean(known({m.a})[0]); });
}

TEST(StoppedGradient, inside_of_a_checkpoint) {
  const Error error =
      errorOf([](const Two& m, Tensor x) { return mean(checkpoint([&] { return m.b * x * asFloat(argmax(m.a * x, 0)); })); });
  EXPECT_EQ(error.code(), "grad.C5");
  EXPECT_NE(std::string(error.what()).find("'a' gets no gradient: 'argmax'"), std::string::npos) << error.what();
  expectTrains([](const Two& m, Tensor x) { return mean(checkpoint([&] { return m.a * m.b * x * asFloat(argmax(m.a * x, 0)); })); });
}

TEST(StoppedGradient, is_ordinary_beside_another_way) {
  expectTrains([](const Two& m, Tensor x) { return mean(square(m.b * m.a * x)) + asFloat(argmax(m.a * x, 0)); });
  expectTrains([](const Two& m, Tensor x) { return mean(where(m.a > m.b, m.b * x, m.a)); });
  // Straight through: the value is rounded, the gradient is not.
  expectTrains([](const Two& m, Tensor x) { return mean((m.a + stop_gradient(asFloat(cast(m.a, DType::I32)) - m.a)) * m.b * x); });
}

TEST(StoppedGradient, can_be_meant) {
  expectTrains([](const Two& m, Tensor x) { return mean(m.b * x); });
  expectTrains([](const Two& m, Tensor x) { return mean(m.b * x) + asFloat(argmax(stop_gradient(m.a) * x, 0)); });
  expectTrains([](const Two& m, Tensor x) { return mean(m.b * x) + stop_gradient(asFloat(argmax(m.a * x, 0))); });
  expectTrains([](const Two& m, Tensor x) { return mean(m.b * x * round(m.a)); });
  expectTrains([](const Two& m, Tensor x) {
    return mean(m.b * x) + mean(custom_gradient(
                               {m.a}, [](std::span<const Tensor> in) { return std::vector{asFloat(argmax(in[0], 0))}; },
                               [](const BackwardCall&) { return std::vector{Tensor()}; })[0]);
  });
  const ParameterGroup frozen{.filter = [](const std::string& name) { return name == "a"; }, .frozen = true};
  expectTrains([](const Two& m, Tensor x) { return mean(m.b * x) + asFloat(argmax(m.a * x, 0)); }, sgd({.lr = 0.1}, {.groups = {frozen}}));
}

TEST(StoppedGradient, of_a_gradient_is_meant_for_what_it_compares) {
  // The slope of a relu network depends on l1.b by the sign of its hidden values alone.
  struct Network : Module {
    nn::Linear l1{*this, "l1", 3, 8}, l2{*this, "l2", 8, 1};
  };
  auto trainer = compile<Network>({.inputs = {{"x", f32(5, 3)}},
                                   .loss =
                                       [](const Network& m, const Inputs& in) {
                                         Tensor x = in["x"];
                                         return mean(square(grad(sum(m.l2(relu(m.l1(x)))), {x})[0]));
                                       },
                                   .seed = 1,
                                   .device = "reference"});
  const std::vector<float> x(15, 0.5f);
  EXPECT_TRUE(trainer.step({{"x", x}}).completed());
  // Of a maximum and of a sorted line it is where they were found.
  expectTrains([](const Two& m, Tensor x) {
    Tensor peak = reduce_max(m.a * x) + sum(sort(m.a * x, 0).values * m.b);
    return mean(square(grad(peak, {m.a})[0])) + mean(m.a);
  });
}

TEST(StoppedGradient, of_ls_grad_names_the_call) {
  const int line = __LINE__ + 2;
  const Error error = errorOf([](const Two& m, Tensor x) {
    Tensor y = asFloat(argmax(m.a * x, 0));
    return mean(m.b * grad(y, {m.a})[0]);
  });
  expectStopped(error, "tensor 1 of grad (f32[3]) gets no gradient: 'argmax' stops it (the result is a position)", line);
  ASSERT_EQ(error.diagnostics().front().notes.size(), 1u);
  EXPECT_EQ(static_cast<int>(error.diagnostics().front().notes[0].where.line), line + 1);
}

TEST(StoppedGradient, of_every_parameter_is_an_error) {
  for (const Loss& loss :
       {Loss([](const Two&, Tensor x) { return mean(x); }), Loss([](const Two& m, Tensor x) { return mean(stop_gradient(m.a) * x); }),
        Loss([](const Two& m, Tensor x) { return mean(sign(m.a) * x); })}) {
    const Error error = errorOf(loss);
    EXPECT_EQ(error.code(), "grad.C6");
    EXPECT_TRUE(error.diagnostics().front().where.file.ends_with("stopped_gradient_test.cpp")) << error.what();
    EXPECT_NE(error.diagnostics().front().remedy, "");
  }
}

TEST(StoppedGradient, of_a_frozen_parameter_does_not_keep_the_search_from_what_is_not_finite) {
  const ParameterGroup frozen{.filter = [](const std::string& name) { return name == "a"; }, .frozen = true};
  auto trainer = compile<Two>(specOf([](const Two& m, Tensor x) { return mean(log(m.b * x)) + asFloat(argmax(m.a * x, 0)); },
                                     sgd({.lr = 0.1}, {.groups = {frozen}})));
  const std::vector<float> x{1, -2, 3};
  const StepResult result = trainer.step({{"x", x}});
  ASSERT_FALSE(result.completed());
  ASSERT_TRUE(result.failure->origin.has_value());
  EXPECT_EQ(result.failure->origin->value.op, "log");
}

}  // namespace
}  // namespace lockstep
