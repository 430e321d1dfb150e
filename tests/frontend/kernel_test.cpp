// SPDX-License-Identifier: Apache-2.0
// A kernel that the user wrote, as an op: values, gradients, shapes, and what is refused.
#include "frontend/ops/kernel.h"

#include <fmt/format.h>

#include <filesystem>

#include "frontend/io/file.h"
#include "frontend/trace/module.h"
#include "frontend/train/function.h"
#include "frontend/train/graph_runner.h"
#include "frontend/train/trainer.h"
#include "tests/differential/compare.h"
#include "tests/frontend/tracing.h"

namespace lockstep {
namespace {

using graph::OutputKind;

/// Its print changes nothing.
constexpr const char* kCube = R"(
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u) {
  if (id.x < arrayLength(&y)) {
    y[id.x] = x[id.x] * x[id.x] * x[id.x];
    print(id.x, y[id.x]);
  }
})";
constexpr const char* kCubeGradient = R"(
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read> dy: array<f32>;
@group(0) @binding(2) var<storage, read_write> dx: array<f32>;
@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u) {
  if (id.x < arrayLength(&dx)) { dx[id.x] = 3 * x[id.x] * x[id.x] * dy[id.x]; }
})";

/// x³ with a gradient kernel of its own.
Tensor cube(Tensor x) {
  static const Kernel gradient{{.name = "cube_gradient", .source = kCubeGradient}};
  static const Kernel forward{{.name = "cube", .source = kCube, .gradient = [](const BackwardCall& call) {
                                 return gradient({call.inputs[0], call.cotangents[0]});
                               }}};
  return forward({x})[0];
}

graph::KernelFunctions cubeFunctions() {
  return {{"cube",
           [](std::span<const graph::Tensor* const> in) {
             std::vector<double> y = in[0]->data;
             for (double& v : y) v = v * v * v;
             return std::vector<std::vector<double>>{y};
           }},
          {"cube_gradient", [](std::span<const graph::Tensor* const> in) {
             std::vector<double> dx = in[1]->data;
             for (size_t i = 0; i < dx.size(); ++i) dx[i] *= 3 * in[0]->data[i] * in[0]->data[i];
             return std::vector<std::vector<double>>{dx};
           }}};
}

graph::LeafValues counting(const graph::Graph& graph) {
  graph::LeafValues leaves;
  for (graph::NodeId id : graph.body().nodes) {
    const graph::Attribute* name = graph[id].attributes.find("name");
    if (name == nullptr) continue;
    graph::Tensor value{graph.typeOf(graph[id].results[0]), {}};
    for (int64_t i = 0; i < value.type.shape.elementCount(); ++i) value.data.push_back(0.25 * static_cast<double>(i % 13 - 6));
    leaves.emplace(std::get<std::string>(*name), std::move(value));
  }
  return leaves;
}

TEST(UserKernel, values_and_gradients_agree_with_the_evaluator) {
  detail::Trace trace;
  Tensor x = trace.addInput("x", f32(7, 30)), w = trace.addInput("w", f32(30, 7));
  Tensor y = cube(matmul(x, w));
  trace.output(OutputKind::Result, "y", y);
  // Through a view, and with ordinary ops before and after.
  trace.output(OutputKind::Loss, "loss", mean(cube(swap_axes(x, 0, 1)) + sin(w)) + mean(square(y)));
  graph::Graph graph = trace.take();
  graph::LeafValues leaves = counting(graph);
  GraphRunOptions options{.gradients = true, .wrt = {"x", "w"}, .kernels = cubeFunctions()};
  std::vector<graph::Tensor> want = runGraph(graph, leaves, options);
  for (const std::string& device : devicesUnderTest()) {
    options.device = device;
    expectClose(runGraph(graph, leaves, options), want, 2e-6, device);
  }
}

TEST(UserKernel, has_its_own_shapes_groups_and_overrides) {
  // Row sums: one workgroup per row.
  const Kernel row_sum{
      {.name = "row_sum",
       .source = R"(
override columns: u32;
@group(0) @binding(0) var<storage, read> x: array<i32>;
@group(0) @binding(1) var<storage, read_write> y: array<i32>;
@compute @workgroup_size(1) fn main(@builtin(workgroup_id) row: vec3u) {
  var sum = 0;
  for (var i = 0u; i < columns; i++) { sum += x[row.x * columns + i]; }
  y[row.x] = sum;
})",
       .infer = [](Types in) { return std::vector{TensorType{DType::I32, Shape{in[0].shape[0]}}}; },
       .groups = [](Types, Types out) { return std::array{static_cast<uint32_t>(out[0].shape.extent(0)), 1u, 1u}; },
       .overrides = [](Types in,
                       Types) { return std::map<std::string, double>{{"columns", static_cast<double>(in[0].shape.extent(1))}}; }}};
  graph::Graph graph = traced({i32(3, 5)}, [&](const auto& in) { return row_sum({in[0]})[0]; });
  graph::LeafValues leaves{{"a", {i32(3, 5), {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}}}};
  for (const std::string& device : devicesUnderTest()) {
    EXPECT_EQ(runGraph(graph, leaves, {.device = device}).front().data, (std::vector<double>{15, 40, 65})) << device;
  }
}

TEST(UserKernel, without_a_gradient_is_an_error_where_one_is_asked_for) {
  const Kernel plain{{.name = "cube", .source = kCube}};
  EXPECT_EQ(caught([&] { traced({f32(3)}, [&](const auto& in) { return grad(sum(plain({in[0]})[0] + in[0]), {in[0]})[0]; }); }).code,
            "grad.C5");
  graph::Graph graph = traced({f32(3)}, [&](const auto& in) { return grad(sum(plain({stop_gradient(in[0])})[0] + in[0]), {in[0]})[0]; });
  EXPECT_EQ(runGraph(graph, {{"a", {f32(3), {1, 2, 3}}}}, {.device = "reference"}).front().data, (std::vector<double>{1, 1, 1}));
}

TEST(UserKernel, is_refused_where_it_does_not_fit) {
  EXPECT_EQ(caught([] { Kernel{{.name = "broken", .source = "fn main() { let a = ; }"}}; }).code.substr(0, 5), "wgsl.");
  EXPECT_EQ(caught([] { Kernel{{.name = "none", .source = "fn f() {}"}}; }).code, "kernel.C2");
  const Kernel one{{.name = "cube", .source = kCube}};
  EXPECT_EQ(caught([&] { traced({f32(3), f32(3)}, [&](const auto& in) { return one({in[0], in[1]})[0]; }); }).code, "kernel.C3");
}

/// Reads one element too far; the literal's line 4.
constexpr const char* kShift = R"(@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@compute @workgroup_size(4) fn main(@builtin(global_invocation_id) id: vec3u) {
  y[id.x] = x[id.x + 1u];
})";

std::string messageOf(const std::function<void()>& function) { return toString(caught(function)); }

TEST(UserKernel, mistake_in_a_literal_has_its_line_and_the_line_of_the_kernel) {
  const uint32_t line = __LINE__ + 1;
  const std::string text = messageOf([] { const Kernel broken{{.name = "broken", .source = "\nfn f() -> f32 {\n\treturn 1i;\n}\n"}}; });
  const std::string head = fmt::format("kernel 'broken' at {}:{}, line 3 of its WGSL: error: wgsl.type: ", __FILE__, line);
  EXPECT_EQ(text.substr(0, head.size()), head);
  EXPECT_NE(text.find("\n    \treturn 1i;\n    \t       ^"), std::string::npos) << text;
  // With values of overrides the text is read again at the call.
  const Kernel zero{{.name = "zero",
                     .source = "override n: u32;\nvar<workgroup> a: array<f32, n>;\n@compute @workgroup_size(1) fn main() { a[0] = 1; }",
                     .overrides = [](Types, Types) { return std::map<std::string, double>{{"n", 0.0}}; }}};
  const std::string at_call = messageOf([&] { traced({f32(3)}, [&](const auto& in) { return zero({in[0]})[0]; }); });
  EXPECT_NE(at_call.find(", line 2 of its WGSL: error: wgsl."), std::string::npos) << at_call;
  EXPECT_NE(at_call.find("\n    var<workgroup> a: array<f32, n>;\n"), std::string::npos) << at_call;
}

TEST(UserKernel, mistake_in_a_file_has_the_place_in_the_file) {
  const std::string path = testing::TempDir() + "user_kernel_test.wgsl";
  ASSERT_TRUE(io::writeFileAtomically(path, std::string_view("fn f() -> f32 {\n  return 1i;\n}\n")).ok());
  const std::string text = messageOf([&] { const Kernel broken{{.name = "broken", .source = {}, .file = path}}; });
  EXPECT_TRUE(text.starts_with(path + ":2:")) << text;
  EXPECT_NE(text.find("\n      return 1i;\n"), std::string::npos) << text;
  std::filesystem::remove(path);
  const Diagnostic gone = caught([&] { const Kernel missing{{.name = "missing", .source = {}, .file = path}}; });
  EXPECT_EQ(gone.code, "file.read");
  EXPECT_TRUE(gone.where.file.ends_with("kernel_test.cpp"));
  EXPECT_EQ(caught([] { const Kernel empty{{.name = "empty", .source = {}}}; }).code, "kernel.source");
}

TEST(UserKernel, fault_has_the_line_of_its_text) {
  const auto failure = [](const Kernel& kernel) {
    Function function = lockstep::function(
        {.inputs = {{"x", f32(4)}}, .body = [&](const Inputs& in) { return kernel({in["x"]})[0]; }, .device = "reference"});
    return caught([&] { (void)function({{"x", std::vector<float>(4)}}); });
  };
  const Kernel literal{{.name = "shift", .source = kShift}};
  const uint32_t line = __LINE__ - 1;
  const Diagnostic in_literal = failure(literal);
  EXPECT_EQ(in_literal.code, "reference.out_of_bounds");
  EXPECT_EQ(toString(in_literal.where), fmt::format("kernel 'shift' at {}:{}, line 4 of its WGSL", __FILE__, line));
  EXPECT_EQ(in_literal.excerpt, "  y[id.x] = x[id.x + 1u];\n            ^\n");
  const Diagnostic in_file = failure(Kernel{{.name = "shift", .source = kShift, .file = "shaders/shift.wgsl"}});
  EXPECT_EQ(toString(in_file.where), "shaders/shift.wgsl:4:13");
  EXPECT_EQ(in_file.excerpt, in_literal.excerpt);
}

TEST(UserKernel, fault_in_a_step_is_the_users_and_no_bug_of_ours) {
  struct Scale : Module {
    Parameter scale{*this, "scale", {4}};
  };
  const Kernel shift{
      {.name = "shift", .source = kShift, .gradient = [](const BackwardCall& call) { return std::vector{call.cotangents[0]}; }}};
  auto trainer = compile<Scale>({.inputs = {{"x", f32(4)}},
                                 .loss = [&](const Scale& model, const Inputs& in) { return sum(shift({in["x"] * model.scale})[0]); },
                                 .optimizer = sgd(),
                                 .device = "reference"});
  const StepResult result = trainer.step({{"x", std::vector<float>(4)}});
  ASSERT_TRUE(result.failure);
  EXPECT_EQ(result.failure->kind, FailureKind::Device);
  try {
    (void)result.or_throw();
    ADD_FAILURE() << "no error was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.exitCode(), ExitCode::BadInput);
    EXPECT_TRUE(error.diagnostics().front().where.embedded);
  }
}

TEST(UserKernel, beyond_what_a_device_allows_is_an_error_at_the_call) {
  const auto caughtFrom = [](const std::string& source) {
    const Kernel kernel{{.name = "large", .source = source}};
    return caught([&] {
      (void)lockstep::function(
          {.inputs = {{"x", f32(64)}}, .body = [&](const Inputs& in) { return kernel({in["x"]})[0]; }, .device = "reference"});
    });
  };
  const std::string bindings =
      "@group(0) @binding(0) var<storage, read> x: array<f32>;\n@group(0) @binding(1) var<storage, read_write> y: array<f32>;\n";
  const Diagnostic wide = caughtFrom(bindings + "@compute @workgroup_size(4096) fn main() { y[0] = x[0]; }");
  EXPECT_EQ(wide.code, "kernel.limit");
  EXPECT_EQ(wide.message, "kernel 'large' has 4096 invocations in a workgroup, but 'cpu' allows 1024");
  EXPECT_TRUE(wide.where.file.ends_with("kernel_test.cpp"));
  const Diagnostic much =
      caughtFrom(bindings + "var<workgroup> w: array<f32, 60000>;\n@compute @workgroup_size(1) fn main() { w[0] = x[0]; y[0] = w[0]; }");
  EXPECT_EQ(much.message, "kernel 'large' has 240000 bytes of workgroup memory, but 'cpu' allows 32768");
  const Diagnostic sized = caughtFrom(
      "@group(0) @binding(0) var<storage, read> x: array<f32, 100>;\n@group(0) @binding(1) var<storage, read_write> y: array<f32>;\n"
      "@compute @workgroup_size(1) fn main() { y[0] = x[0]; }");
  EXPECT_EQ(sized.code, "kernel.C5");
  EXPECT_EQ(sized.message, "operand 0 is f32[64] with 256 bytes, but 'x' at binding 0 takes at least 400");
}

TEST(UserKernel, places_are_in_texts_of_graphs_only_when_asked_for) {
  const Kernel kernel{{.name = "shift", .source = kShift}};
  const graph::Graph graph = traced({f32(4)}, [&](const auto& in) { return kernel({in[0]})[0]; });
  const std::string plain = print(graph), located = print(graph, true);
  EXPECT_EQ(plain.find("kernel_test.cpp"), std::string::npos);
  EXPECT_NE(located.find("embedded"), std::string::npos);
  EXPECT_EQ(graph::parse(plain).orThrow(), graph::withoutLocations(graph::canonical(graph)));
  EXPECT_EQ(graph::parse(located).orThrow(), graph::canonical(graph));
}

TEST(UserKernel, profile_names_the_call_and_not_the_lines_of_the_text) {
  struct Scale : Module {
    Parameter scale{*this, "scale", {4}};
  };
  const Kernel kernel{{.name = "cube", .source = kCube}};
  uint32_t call = 0;
  auto trainer = compile<Scale>({.inputs = {{"x", f32(4)}},
                                 .loss =
                                     [&](const Scale& model, const Inputs& in) {
                                       call = __LINE__ + 1;
                                       Tensor cubes = kernel({in["x"]})[0];
                                       return sum(cubes * model.scale);
                                     },
                                 .optimizer = sgd(),
                                 .device = "reference"});
  const StepProfile profile = trainer.profile({{"x", std::vector<float>(4)}});
  const auto command = std::ranges::find(profile.commands, "cube", &ProfiledCommand::label);
  ASSERT_NE(command, profile.commands.end());
  ASSERT_EQ(command->lines.size(), 1u);
  EXPECT_TRUE(command->lines[0].file.ends_with("kernel_test.cpp"));
  EXPECT_EQ(command->lines[0].line, call);
}

TEST(UserKernel, has_no_value_on_the_evaluator_without_a_function) {
  const Kernel one{{.name = "cube", .source = kCube}};
  graph::Graph graph = traced({f32(3)}, [&](const auto& in) { return one({in[0]})[0]; });
  EXPECT_EQ(caught([&] { runGraph(graph, {{"a", {f32(3), {1, 2, 3}}}}); }).code, "evaluate.kernel");
}

}  // namespace
}  // namespace lockstep
