// SPDX-License-Identifier: Apache-2.0
// One program for many extents of the dynamic axes beside a program for each: the same results, and how many are compiled.
#include <random>
#include <stdexcept>

#include "frontend/nn/nn.h"
#include "frontend/train/function.h"
#include "tests/differential/compare.h"
#include "tests/frontend/tracing.h"
#include "tests/frontend/trainer_fixture.h"

namespace lockstep {
namespace {

struct ExtentCase {
  std::string name;
  std::vector<InputSpec> inputs;
  std::function<Tensor(const Inputs&)> body;
  bool is_shared = true;
  bool has_gradient = true;  ///< of the sum of squares of the result, towards all f32 inputs
};
void PrintTo(const ExtentCase& one, std::ostream* out) { *out << one.name; }

class SharedExtents : public ::testing::TestWithParam<ExtentCase> {};

/// Rows of random numbers, other ones for each extent; whole numbers below 4 for integers.
struct Numbers {
  std::vector<std::vector<float>> floats;
  std::vector<std::vector<int32_t>> integers;
};
Batch batchFor(const ExtentCase& c, int64_t extent, Numbers& numbers) {
  std::mt19937 random(static_cast<uint32_t>(extent));
  std::uniform_real_distribution<float> real(0.2f, 1.5f);
  std::uniform_int_distribution<int32_t> whole(0, 3);
  Batch batch;
  numbers.floats.reserve(c.inputs.size());
  numbers.integers.reserve(c.inputs.size());
  for (const InputSpec& input : c.inputs) {
    int64_t count = 1;
    for (const int64_t one : input.type.shape.extents()) count *= one == dynamic ? extent : one;
    if (input.type.dtype == graph::DType::I32) {
      std::generate_n(std::back_inserter(numbers.integers.emplace_back()), count, [&] { return whole(random); });
      batch.emplace_back(input.name, numbers.integers.back());
    } else {
      std::generate_n(std::back_inserter(numbers.floats.emplace_back()), count, [&] { return real(random); });
      batch.emplace_back(input.name, numbers.floats.back());
    }
  }
  return batch;
}

/// The first has a program of its own; the others share one of 4, of 8 and of 16.
constexpr std::array<int64_t, 11> kExtents{6, 3, 4, 5, 7, 8, 13, 6, 16, 9, 3};

void expectSame(const HostTensor& mine, const HostTensor& own, const std::string& what) {
  ASSERT_EQ(toString(mine.type()), toString(own.type())) << what;
  const std::vector<double> a = mine.doubles(), b = own.doubles();
  double worst = 0, size = 1e-3;
  for (size_t i = 0; i < a.size(); ++i) {
    worst = std::max(worst, std::isfinite(a[i]) ? std::abs(a[i] - b[i]) : (a[i] == b[i] ? 0.0 : INFINITY));
    size = std::max(size, std::abs(b[i]));
  }
  EXPECT_LE(worst, 4e-6 * size) << what;
}

TEST_P(SharedExtents, give_what_programs_of_their_own_give) {
  const ExtentCase& c = GetParam();
  for (const std::string& device : devicesUnderTest()) {
    for (const bool with_gradient : {false, true}) {
      if (with_gradient && !c.has_gradient) continue;
      FunctionSpec spec{.inputs = c.inputs, .body = c.body, .device = device};
      if (with_gradient) {
        spec.body = [&](const Inputs& in) { return mean(square(c.body(in))); };
        for (const InputSpec& input : c.inputs) {
          if (input.type.dtype == graph::DType::F32) spec.gradients.push_back(input.name);
        }
      }
      Function shared = function(spec);
      spec.disable = {"openExtents"};
      Function each = function(spec);
      for (const int64_t extent : kExtents) {
        Numbers numbers;
        const Batch batch = batchFor(c, extent, numbers);
        const FunctionResult mine = shared(batch), own = each(batch);
        const std::string what = fmt::format("extent {} on {}{}", extent, device, with_gradient ? ", gradient" : "");
        expectSame(mine.value, own.value, what);
        for (const auto& [name, gradient] : own.gradients)
          expectSame(mine.gradients.at(name), gradient, fmt::format("{} of {}", what, name));
      }
      EXPECT_EQ(each.run_facts().compilations, 9U + 1U);  // 8 are kept: the 3 of the end is compiled again
      EXPECT_EQ(shared.run_facts().compilations, c.is_shared ? 4U : 10U) << device << (with_gradient ? ", gradient" : "");
    }
  }
}

Tensor positions(Tensor x) { return cast(arange(x.extent(1), DType::I32), DType::F32); }

std::vector<ExtentCase> extentCases() {
  const TensorType rows = f32(dynamic, 3), middle = f32(2, dynamic, 4), last = f32(3, dynamic);
  const auto x = [](const Inputs& in) { return in["x"]; };
  return {
      {"elements", {{"x", rows}}, [=](const Inputs& in) { return exp(x(in)) * 2 + 1; }},
      {"sum_of_rows", {{"x", rows}}, [=](const Inputs& in) { return sum(x(in), {0}); }},
      {"mean_of_all", {{"x", middle}}, [=](const Inputs& in) { return mean(log(x(in))); }},
      {"maxima", {{"x", last}}, [=](const Inputs& in) { return reduce_max(x(in), {1}) - reduce_min(x(in), {1}); }},
      {"product", {{"x", last}}, [=](const Inputs& in) { return prod(x(in), {1}); }},
      {"contraction", {{"x", rows}}, [=](const Inputs& in) { return matmul(swap_axes(x(in), 0, 1), x(in)); }},
      {"pairs", {{"x", rows}}, [=](const Inputs& in) { return matmul(x(in), swap_axes(x(in), 0, 1)); }},
      {"softmax", {{"x", last}}, [=](const Inputs& in) { return softmax(x(in)); }},
      {"log_softmax", {{"x", last}}, [=](const Inputs& in) { return log_softmax(x(in)); }},
      {"layer_norm_of_rows",
       {{"x", rows}, {"g", f32(3)}, {"b", f32(3)}},
       [=](const Inputs& in) { return layer_norm(x(in), in["g"], in["b"]); }},
      {"normalised_along", {{"x", last}}, [=](const Inputs& in) { return (x(in) - mean(x(in), {1}, {.keep_dims = true})) / 2; }},
      {"joined", {{"x", middle}}, [=](const Inputs& in) { return reshape(x(in), {2 * in["x"].extent(1), 4}); }},
      {"joined_and_summed", {{"x", middle}}, [=](const Inputs& in) { return sum(reshape(x(in), {2 * in["x"].extent(1), 4}), {0}); }},
      {"flattened_mean", {{"x", middle}}, [=](const Inputs& in) { return mean(reshape(x(in), {in["x"].extent(1) * 8}), {0}); }},
      {"first_positions", {{"x", middle}}, [=](const Inputs& in) { return x(in) * expand_dims(positions(x(in)), 1); }},
      {"first_row", {{"x", rows}}, [=](const Inputs& in) { return narrow(x(in), 0, 0, 2) * 3; }},
      {"prefixes", {{"x", last}}, [=](const Inputs& in) { return cumsum(x(in), 1); }},
      {"causal",
       {{"x", f32(2, dynamic, 4)}},
       [=](const Inputs& in) {
         Tensor h = expand_dims(x(in), 1);
         return scaled_dot_product_attention(h, h, h, {.causal = true});
       }},
      {"attention",
       {{"x", f32(2, dynamic, 4)}},
       [=](const Inputs& in) {
         Tensor h = expand_dims(x(in), 1);
         return scaled_dot_product_attention(h, h * 2, h);
       }},
      {"attention_by_hand",
       {{"x", f32(2, dynamic, 4)}},
       [=](const Inputs& in) { return matmul(softmax(matmul(x(in), swap_axes(x(in), 1, 2)) * 0.5), x(in)); }},
      {"pictures",
       {{"x", f32(dynamic, 2, 5, 5)}, {"w", f32(3, 2, 3, 3)}},
       [=](const Inputs& in) { return max_pool2d(conv2d(x(in), in["w"]), 3); }},
      {"labels", {{"x", f32(dynamic, 4)}, {"label", i32(dynamic)}}, [=](const Inputs& in) { return cross_entropy(x(in), in["label"]); }},
      {"labels_of_some",
       {{"x", f32(dynamic, 4)}, {"label", i32(dynamic)}},
       [=](const Inputs& in) { return cross_entropy(x(in), in["label"], {.ignore_index = 2}); }},
      {"labels_outside_of_the_classes_are_ignored",
       {{"x", f32(2, dynamic, 2)}, {"label", i32(2, dynamic)}},
       [=](const Inputs& in) {
         // 0 and 1 are classes, 2 and 3 are not.
         const Tensor label = where(in["label"] < 2, in["label"], full({2, in["label"].extent(1)}, -100, DType::I32));
         return cross_entropy(x(in), label, {.ignore_index = -100});
       }},
      {"labels_with_weights",
       {{"x", f32(dynamic, 4)}, {"label", i32(dynamic)}, {"weight", f32(4)}},
       [=](const Inputs& in) {
         return cross_entropy(x(in), in["label"], {.reduction = Reduction::Sum, .class_weights = stop_gradient(in["weight"])});
       }},
      {"mean_with_weights",
       {{"x", f32(dynamic, 4)}, {"label", i32(dynamic)}, {"weight", f32(4)}},
       [=](const Inputs& in) { return cross_entropy(x(in), in["label"], {.class_weights = stop_gradient(in["weight"])}); },
       false},
      {"words",
       {{"id", i32(2, dynamic)}, {"table", f32(4, 3)}, {"place", f32(16, 3)}},
       [=](const Inputs& in) { return embedding(in["table"], in["id"]) + narrow(in["place"], 0, 0, in["id"].extent(1)); }},
      {"largest", {{"x", last}}, [=](const Inputs& in) { return argmax(x(in), 1); }, true, false},
      {"scaled_by_the_root", {{"x", rows}}, [=](const Inputs& in) { return x(in) / std::sqrt(static_cast<double>(in["x"].extent(0))); }},
      {"ones_times_joined",
       {{"x", middle}},
       [=](const Inputs& in) {
         const int64_t rows = 2 * in["x"].extent(1);
         return matmul(ones({1, rows}), reshape(x(in), {rows, 4}));
       }},
      {"counted_from_one", {{"x", last}}, [=](const Inputs& in) { return sum(x(in) * cumsum(ones({3, in["x"].extent(1)}), 1), {1}); }},
      {"joined_beside_a_sum_of_ones",
       {{"x", middle}},
       [=](const Inputs& in) {
         const int64_t count = 8 * in["x"].extent(1);
         return reshape(x(in), {count}) * cumsum(ones({count}), 0);
       },
       false},
      {"causal_by_hand",
       {{"x", f32(2, dynamic, 4)}},
       [=](const Inputs& in) { return matmul(softmax(where_causal(matmul(x(in), swap_axes(x(in), 1, 2)) * 0.5, -1e30)), x(in)); }},
      {"grouped_queries",
       {{"q", f32(2, 4, dynamic, 4)}, {"k", f32(2, 2, dynamic, 4)}, {"mask", f32(dynamic)}},
       [](const Inputs& in) { return scaled_dot_product_attention(in["q"], in["k"], in["k"] * 2, {.mask = stop_gradient(in["mask"])}); }},
      {"rotated", {{"x", f32(2, dynamic, 4)}}, [=](const Inputs& in) { return rope(x(in)) + rope(x(in), arange(in["x"].extent(1)) * 3); }},
      {"tiled", {{"x", rows}}, [=](const Inputs& in) { return sum(square(concat({x(in), x(in) * 2}, 1)), {0}); }},
      {"gradient_of_a_gradient",
       {{"x", rows}},
       [=](const Inputs& in) { return sum(grad(sum(x(in) * x(in) * x(in)) / static_cast<double>(in["x"].extent(0)), {x(in)})[0], {0}); }},
      // What has no form along the axis, or depends on the extent in another way.
      {"last_row", {{"x", rows}}, [=](const Inputs& in) { return narrow(x(in), 0, in["x"].extent(0) - 1, 1); }, false},
      {"flipped", {{"x", rows}}, [=](const Inputs& in) { return flip(x(in), {0}) * 2; }, false},
      {"shifted", {{"x", last}}, [=](const Inputs& in) { return narrow(x(in), 1, 1, in["x"].extent(1) - 1); }, false},
      {"variance", {{"x", last}}, [=](const Inputs& in) { return sum(square(x(in)), {1}) / static_cast<double>(in["x"].extent(1) - 1); }},
      {"other_ops", {{"x", rows}}, [=](const Inputs& in) { return in["x"].extent(0) % 2 == 0 ? exp(x(in)) : sqrt(x(in)); }, false},
      {"suffixes", {{"x", last}}, [=](const Inputs& in) { return cumsum(x(in), 1, true); }, false},
  };
}
INSTANTIATE_TEST_SUITE_P(Cases, SharedExtents, ::testing::ValuesIn(extentCases()), [](const auto& info) { return info.param.name; });

struct SmallGpt : Module {
  nn::Embedding tokens{*this, "tokens", 11, 16}, places{*this, "places", 64, 16};
  nn::TransformerBlock block{*this, "block", 16, 2, {.attention = {.causal = true}}};
  nn::LayerNorm norm{*this, "norm", 16};
  nn::Linear head{*this, "head", 16, 11};
  Tensor operator()(Tensor id) const { return head(norm(block(tokens(id) + places(arange(id.extent(1)))))); }
};
struct SmallCnn : Module {
  nn::Conv2d conv{*this, "conv", 1, 4, 3, {.padding = 1}};
  nn::BatchNorm norm{*this, "norm", 4};
  nn::Linear head{*this, "head", 4 * 36, 3};
  Tensor operator()(Tensor x) const { return head(reshape(relu(norm(conv(x))), {x.extent(0), 4 * 36})); }
};

/// Compares training with and without shared programs, one step for each extent.
template <class Model>
void expectSameTraining(CompileSpec<Model> spec, const std::vector<int64_t>& extents, int64_t per_position, size_t programs) {
  for (const std::string& device : devicesUnderTest()) {
    spec.device = device;
    spec.disable = {};
    auto shared = compile<Model>(spec);
    spec.disable = {"openExtents"};
    auto each = compile<Model>(spec);
    std::mt19937 random(3);
    std::uniform_int_distribution<int32_t> whole(0, 2);
    std::uniform_real_distribution<float> real(-1, 1);
    for (const int64_t extent : extents) {
      std::vector<int32_t> labels, ids;
      std::vector<float> pixels;
      int64_t labelled = extent;
      Batch batch;
      for (const InputSpec& input : spec.inputs) {
        if (input.name == "x") std::generate_n(std::back_inserter(pixels), extent * per_position, [&] { return real(random); });
        if (input.name == "id") std::generate_n(std::back_inserter(ids), extent * per_position, [&] { return whole(random); });
        if (input.name == "id") labelled = extent * per_position;
      }
      std::generate_n(std::back_inserter(labels), labelled, [&] { return whole(random); });
      if (ids.empty())
        batch = {{"x", pixels}, {"label", labels}};
      else
        batch = {{"id", ids}, {"label", labels}};
      const StepResult mine = shared.step(batch), own = each.step(batch);
      ASSERT_TRUE(mine.completed() && own.completed());
      EXPECT_NEAR(mine.loss, own.loss, 2e-5 * std::abs(own.loss)) << extent << " on " << device;
    }
    const ParameterValues mine = shared.download(), own = each.download();
    for (const auto& [name, values] : own) {
      for (size_t i = 0; i < values.size(); ++i) ASSERT_NEAR(mine.at(name)[i], values[i], 2e-5) << name << " on " << device;
    }
    EXPECT_EQ(shared.run_facts().compilations, programs) << device;
  }
}

TEST(SharedTraining, of_sequences_of_different_lengths) {
  expectSameTraining<SmallGpt>({.inputs = {{"id", i32(3, dynamic)}, {"label", i32(3, dynamic)}},
                                .loss = [](const SmallGpt& model, const Inputs& in) { return cross_entropy(model(in["id"]), in["label"]); },
                                .optimizer = sgd({.lr = 0.1}),
                                .seed = 5},
                               {64, 9, 16, 13, 17, 31, 64, 10}, 3, 3);
}

TEST(SharedTraining, of_batches_of_different_sizes_with_running_statistics) {
  expectSameTraining<SmallCnn>({.inputs = {{"x", f32(dynamic, 1, 6, 6)}, {"label", i32(dynamic)}},
                                .loss = [](const SmallCnn& model, const Inputs& in) { return cross_entropy(model(in["x"]), in["label"]); },
                                .optimizer = sgd({.lr = 0.1}),
                                .seed = 5},
                               {8, 5, 7, 6, 8, 13}, 36, 3);
}

TEST(SharedTraining, lengths_up_to_4096_take_14_programs) {
  for (const std::string& device : devicesUnderTest()) {
    Function f = function({.inputs = {{"x", f32(2, dynamic)}},
                           .body = [](const Inputs& in) { return mean(square(in["x"]), {1}); },
                           .device = device,
                           .cached_programs = 20});
    std::mt19937 random(1);
    std::uniform_real_distribution<double> exponent(0, 12);
    std::vector<int64_t> lengths{100, 1, 2, 3, 4096, 4095, 2049, 2048};
    for (int i = 0; i < 40; ++i) lengths.push_back(static_cast<int64_t>(std::exp2(exponent(random))));
    for (const int64_t length : lengths) {
      std::vector<float> x(static_cast<size_t>(2 * length), 3);
      std::fill(x.begin() + length, x.end(), 2.0F);
      const std::vector<double> means = f({{"x", x}}).value.doubles();
      EXPECT_NEAR(means[0], 9, 1e-5) << length << " on " << device;
      EXPECT_NEAR(means[1], 4, 1e-5) << length << " on " << device;
    }
    EXPECT_EQ(f.run_facts().compilations, 14U) << device;
  }
}

TEST(SharedTraining, an_extent_at_which_the_function_does_something_else_has_its_own_program) {
  Function f = function({.inputs = {{"x", f32(dynamic)}},
                         .body =
                             [](const Inputs& in) {
                               const int64_t extent = in["x"].extent(0);
                               if (extent == 6) return sum(in["x"]) * 10;
                               if (extent == 16) throw std::runtime_error("no sixteen");
                               return sum(in["x"]) * (extent == 7 ? 2 : 1);
                             },
                         .device = "reference"});
  const auto at = [&](size_t extent) { return f({{"x", std::vector<float>(extent, 1)}}).value.doubles().front(); };
  EXPECT_EQ(at(3), 3);
  EXPECT_EQ(at(5), 5);
  EXPECT_EQ(at(6), 60);
  EXPECT_EQ(at(7), 14);
  EXPECT_EQ(at(8), 8);
  EXPECT_EQ(at(5), 5);
  EXPECT_EQ(f.run_facts().compilations, 4U);  // of 3, of 5 and 8, of 6, which is another graph, and of 7, which has another number
  // The trace at the capacity fails, which is nothing that 9 could help.
  EXPECT_EQ(at(9), 9);
  EXPECT_EQ(at(10), 10);
  EXPECT_EQ(f.run_facts().compilations, 6U);
}

TEST(SharedTraining, errors_name_the_place_in_the_batch) {
  CompileSpec<SmallGpt> spec{.inputs = {{"id", i32(3, dynamic)}, {"label", i32(3, dynamic)}},
                             .loss = [](const SmallGpt& model, const Inputs& in) { return cross_entropy(model(in["id"]), in["label"]); },
                             .seed = 5,
                             .device = "reference"};
  auto trainer = compile<SmallGpt>(spec);
  const auto step = [&](size_t length, int32_t label) {
    std::vector<int32_t> ids(3 * length, 1), labels(3 * length, 2);
    labels[length + 4] = label;
    return trainer.step({{"id", ids}, {"label", labels}});
  };
  EXPECT_TRUE(step(8, 2).completed());
  EXPECT_TRUE(step(5, 2).completed());
  const Error error = caught([&] { step(5, 11); });
  EXPECT_EQ(error.code(), "batch.index");
  EXPECT_NE(std::string(error.what()).find("label 11 at [1, 4] of 'label' is outside the 11 classes"), std::string::npos) << error.what();
  EXPECT_EQ(trainer.run_facts().compilations, 2U);
}

TEST(SharedTraining, a_loss_that_is_not_finite_is_traced_to_its_origin) {
  CompileSpec<Mlp> spec = specFor("reference");
  spec.inputs = {{"x", f32(dynamic, 1)}, {"y", f32(dynamic, 1)}};
  spec.loss = [](const Mlp& model, const Inputs& in) { return mean(square(model(in["x"]) - log(in["y"]))); };
  auto trainer = compile<Mlp>(spec);
  EXPECT_TRUE(trainer.step({{"x", std::vector<float>(4, 1)}, {"y", std::vector<float>(4, 1)}}).completed());
  EXPECT_TRUE(trainer.step({{"x", std::vector<float>(7, 1)}, {"y", std::vector<float>(7, 1)}}).completed());
  const StepResult result = trainer.step({{"x", std::vector<float>(6, 1)}, {"y", std::vector<float>{1, 1, -1, 1, 1, 1}}});
  ASSERT_FALSE(result.completed());
  ASSERT_TRUE(result.failure->origin.has_value());
  EXPECT_EQ(result.failure->origin->value.op, "log");
  EXPECT_EQ(result.failure->origin->value.non_finite, 1);
  EXPECT_EQ(result.failure->origin->value.type, f32(6, 1));
}

TEST(SharedTraining, captures_with_the_extent_have_programs_of_their_own) {
  auto spec = specFor("reference");
  spec.inputs = {{"x", f32(dynamic, 1)}, {"y", f32(dynamic, 1)}};
  auto trainer = compile<Mlp>(spec);
  const auto step = [&](size_t rows) {
    return trainer.step({{"x", std::vector<float>(rows, 1)}, {"y", std::vector<float>(rows, 1)}}, {.captures = true});
  };
  for (const size_t rows : {8, 5, 6}) EXPECT_EQ(step(rows).captures.get("hidden").shape(), (Shape{static_cast<int64_t>(rows), 16}));
  EXPECT_EQ(trainer.run_facts().compilations, 3U);
}

}  // namespace
}  // namespace lockstep
