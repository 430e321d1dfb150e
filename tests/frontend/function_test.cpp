// SPDX-License-Identifier: Apache-2.0
// Compiled functions: values, gradients, dynamic extents, random numbers.
#include "frontend/train/function.h"

#include "tests/differential/compare.h"
#include "tests/frontend/tracing.h"

namespace lockstep {
namespace {

FunctionSpec rosenbrock(const std::string& device) {
  return {.inputs = {{"x", f32(2)}},
          .body =
              [](const Inputs& in) {
                Tensor x = narrow(in["x"], 0, 0, 1), y = narrow(in["x"], 0, 1, 1);
                return sum(square(1 - x) + 100 * square(y - square(x)));
              },
          .gradients = {"x"},
          .device = device};
}

TEST(Function, gives_values_and_gradients) {
  for (const std::string& device : devicesUnderTest()) {
    Function f = function(rosenbrock(device));
    const std::vector<float> at{0.5f, 2};
    FunctionResult result = f({{"x", at}});
    EXPECT_NEAR(result.value.floats()[0], 306.5, 1e-3) << device;
    std::span<const float> gradient = result.gradients.at("x").floats();
    EXPECT_NEAR(gradient[0], -351, 1e-3) << device;  // -2 (1 - x) - 400 x (y - x²)
    EXPECT_NEAR(gradient[1], 350, 1e-3) << device;   // 200 (y - x²)
  }
}

TEST(Function, takes_dynamic_extents_and_any_shape_of_result) {
  Function f = function({.inputs = {{"x", f32(dynamic, 3)}},
                         .body = [](const Inputs& in) { return matmul(swap_axes(in["x"], 0, 1), in["x"]); },
                         .device = "reference"});
  const std::vector<float> one{1, 2, 3}, two{1, 0, 0, 0, 2, 0};
  EXPECT_EQ(f({{"x", one}}).value.doubles(), (std::vector<double>{1, 2, 3, 2, 4, 6, 3, 6, 9}));
  EXPECT_EQ(f({{"x", two}}).value.doubles(), (std::vector<double>{1, 0, 0, 0, 4, 0, 0, 0, 0}));
}

TEST(Function, narrows_at_a_value) {
  const std::vector<float> x{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};  // [2, 3, 2]
  for (const std::string& device : devicesUnderTest()) {
    Function one = function({.inputs = {{"x", f32(2, 3, 2)}, {"at", i32()}},
                             .body = [](const Inputs& in) { return sum(square(narrow(in["x"], 1, in["at"], 2))); },
                             .gradients = {"x"},
                             .device = device});
    const FunctionResult from_one = one({{"x", x}, {"at", std::vector<int32_t>{1}}});
    EXPECT_EQ(from_one.value.doubles(), (std::vector<double>{4 + 9 + 16 + 25 + 64 + 81 + 100 + 121})) << device;
    EXPECT_EQ(from_one.gradients.at("x").doubles(), (std::vector<double>{0, 0, 4, 6, 8, 10, 0, 0, 16, 18, 20, 22})) << device;
    EXPECT_EQ(one({{"x", x}, {"at", std::vector<int32_t>{0}}}).value.doubles(), (std::vector<double>{0 + 1 + 4 + 9 + 36 + 49 + 64 + 81}));
    EXPECT_EQ(caught([&] { (void)one({{"x", x}, {"at", std::vector<int32_t>{2}}}); }).code, "step.index") << device;
    EXPECT_EQ(caught([&] { (void)one({{"x", x}, {"at", std::vector<int32_t>{-1}}}); }).code, "step.index") << device;

    Function each = function({.inputs = {{"x", f32(2, 3, 2)}, {"at", i32(2)}},
                              .body = [](const Inputs& in) { return narrow(in["x"], 1, in["at"], 1); },
                              .device = device});
    EXPECT_EQ(each({{"x", x}, {"at", std::vector<int32_t>{2, 0}}}).value.doubles(), (std::vector<double>{4, 5, 6, 7})) << device;
  }
  const auto narrowed = [](int64_t axis, TensorType start, int64_t length) {
    return caught([&] {
             (void)function({.inputs = {{"x", f32(2, 3)}, {"at", start}},
                             .body = [&](const Inputs& in) { return narrow(in["x"], axis, in["at"], length); },
                             .device = "reference"});
           })
        .code;
  };
  EXPECT_EQ(narrowed(1, i32(), 4), "narrow.C2");
  EXPECT_EQ(narrowed(1, i32(), 0), "narrow.C2");
  EXPECT_EQ(narrowed(1, i32(3), 1), "narrow.start");
  EXPECT_EQ(narrowed(0, i32(2), 1), "narrow.start");
  EXPECT_EQ(narrowed(1, f32(), 1), "narrow.start");
}

TEST(Function, draws_new_numbers_at_every_call_and_the_same_ones_by_seed) {
  auto make = [] { return function({.inputs = {}, .body = [](const Inputs&) { return normal({4}); }, .device = "reference", .seed = 5}); };
  Function f = make(), again = make();
  const std::vector<double> first = f({}).value.doubles(), second = f({}).value.doubles();
  EXPECT_NE(first, second);
  EXPECT_EQ(again({}).value.doubles(), first);
}

TEST(Function, shows_what_print_was_given) {
  std::vector<std::string> lines;
  Function f = function({.inputs = {{"x", f32(2, 2)}},
                         .body =
                             [](const Inputs& in) {
                               Tensor x = print(in["x"], "x");
                               Tensor y = print(x * 10, "x");
                               return sum(y) + sum(print(arange(12, DType::F32)));
                             },
                         .device = "reference",
                         .print = [&](std::string_view line) { lines.emplace_back(line); }});
  (void)f({{"x", std::vector<float>{1, 2, 3, 4.5f}}});
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_EQ(lines[0], "call 1 x: f32[2,2] [[1, 2], [3, 4.5]]");
  EXPECT_EQ(lines[1], "call 1 x (2): f32[2,2] [[10, 20], [30, 45]]");
  EXPECT_NE(lines[2].find("function_test.cpp:"), std::string::npos);
  EXPECT_NE(lines[2].find("f32[12] [0, 1, 2, ..., 9, 10, 11]"), std::string::npos) << lines[2];
}

TEST(Function, refuses_what_has_no_gradient) {
  FunctionSpec unknown = rosenbrock("reference");
  unknown.gradients = {"y"};
  EXPECT_EQ(caught([&] { (void)function(unknown); }).code, "grad.C3");
  FunctionSpec vector = rosenbrock("reference");
  vector.body = [](const Inputs& in) { return in["x"]; };
  EXPECT_EQ(caught([&] { (void)function(vector); }).code, "compile.loss");
}

TEST(HostTensor, elements_of_a_temporary_outlive_it) {
  const std::array<float, 3> values{1, 2, 3};
  const auto tensor = [&] { return HostTensor("x", f32(3), std::as_bytes(std::span(values))); };
  float sum = 0;
  for (const float value : tensor().floats()) sum += value;
  EXPECT_EQ(sum, 6);
  EXPECT_THROW((void)tensor().ints(), Error);
}

}  // namespace
}  // namespace lockstep
