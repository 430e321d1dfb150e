// SPDX-License-Identifier: Apache-2.0
// Products and reductions of the same rows in one kernel: that small ones are, that it is right for any size and any subgroups, and what
// stays apart.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "frontend/train/graph_runner.h"
#include "frontend/train/templates.h"
#include "ir/graph/builder.h"
#include "tests/passes/gpu_profile.h"
#include "tests/passes/graph_input.h"
#include "tests/passes/profiled_device.h"

namespace lockstep {
namespace {

using namespace graph;

struct Sizes {
  int64_t rows = 1024, columns = 64, hidden = 256, classes = 12;
};

/// A norm, two layers around a residual connection, a norm, and the cross-entropy of a last layer.
Graph network(const Sizes& sizes) {
  Builder b;
  const ValueId x = f32Input(b, "x", {sizes.rows, sizes.columns});
  const auto normed = [&](ValueId value, const std::string& name) {
    return b.make("layer_norm", {value, f32Input(b, name + ".g", {sizes.columns}), f32Input(b, name + ".b", {sizes.columns})},
                  {{"eps", 1e-5}});
  };
  const auto layer = [&](ValueId value, const std::string& name, int64_t from, int64_t to) {
    const ValueId product = b.make("matmul", {value, f32Input(b, name + ".w", {from, to})});
    return b.add(product, b.broadcastTo(f32Input(b, name + ".b", {to}), b.shapeOf(product)));
  };
  const ValueId up = b.make("gelu", {layer(normed(x, "n1"), "up", sizes.columns, sizes.hidden)});
  const ValueId y = b.add(x, layer(up, "down", sizes.hidden, sizes.columns));
  const ValueId logits = layer(normed(y, "n2"), "head", sizes.columns, sizes.classes);
  const ValueId labels =
      b.make("input", {}, {{"name", std::string("labels")}, {"dtype", DType::I32}, {"shape", std::vector<int64_t>{sizes.rows}}});
  b.output(OutputKind::Loss, "loss", b.make("cross_entropy", {logits, labels}, {{"reduction", std::string("mean")}}));
  b.output(OutputKind::Result, "logits", logits);
  return b.take();
}

/// A product whose columns are a gate and what it lets through, a norm of each head, and a product that has its heads in another order.
Graph gates(const Sizes& sizes) {
  Builder b;
  const ValueId x = f32Input(b, "x", {sizes.rows, 3, sizes.columns});
  const int64_t width = sizes.columns * sizes.classes;
  const ValueId both = b.make("matmul", {x, f32Input(b, "w", {sizes.columns, 2 * width})});
  const auto half = [&](int64_t start) { return b.make("narrow", {both}, {{"axis", int64_t{2}}, {"start", start}, {"length", width}}); };
  const ValueId gated = b.mul(half(0), b.make("sigmoid", {half(width)}));
  const ValueId heads = b.reshape(gated, Shape{sizes.rows, 3, sizes.classes, sizes.columns});
  const ValueId turned = b.reshape(b.permute(heads, {0, 1, 3, 2}), Shape{sizes.rows, 3, width});
  const ValueId made = b.make("matmul", {turned, f32Input(b, "v", {width, sizes.hidden})});
  b.output(OutputKind::Loss, "loss", b.sum(b.reshape(b.mul(made, made), Shape{sizes.rows * 3 * sizes.hidden}), 0, false));
  b.output(OutputKind::Result, "made", b.make("softmax", {made}));
  return b.take();
}

/// Products of several operands, which take turns in one place of memory, and the softmax of their sum.
Graph sumOfProducts(const Sizes& sizes) {
  Builder b;
  ValueId sum;
  for (const char* name : {"p", "q", "r"}) {
    const ValueId product = b.make(
        "matmul", {f32Input(b, name, {sizes.rows, sizes.columns}), f32Input(b, std::string(name) + ".w", {sizes.columns, sizes.classes})});
    sum = sum.valid() ? b.add(sum, product) : product;
  }
  b.output(OutputKind::Result, "y", b.make("softmax", {sum}));
  return b.take();
}

constexpr std::array kLeaves{"x", "n1.g", "n1.b", "up.w", "up.b", "down.w", "down.b", "n2.g", "n2.b", "head.w", "head.b"};

passes::CompileOptions optionsFor(const program::DeviceProfile& profile, std::vector<std::string> disabled = {},
                                  std::vector<std::string> wrt = {kLeaves.begin(), kLeaves.end()}) {
  passes::CompileOptions options;
  options.profile = profile;
  options.templates = detail::templateSource();
  options.keep_gradients = true;
  options.wrt = std::move(wrt);
  options.disabled = std::move(disabled);
  return options;
}

program::DeviceProfile profileWith(uint32_t units, uint32_t subgroup_size = 32) {
  program::DeviceProfile profile = gpuProfile();
  profile.parallel_units = units;
  profile.subgroup_size = subgroup_size;
  profile.subgroups = profile.fixed_subgroups = subgroup_size > 1;
  // Within the limits of all devices here.
  profile.max_storage_buffers = 32;
  profile.max_workgroup_bytes = 32768;
  profile.max_loop_iterations = 65535;
  return profile;
}

struct Plan {
  size_t levels = 0, chains = 0;
  friend bool operator==(const Plan&, const Plan&) = default;
  friend void PrintTo(const Plan& plan, std::ostream* out) { *out << plan.levels << " levels, " << plan.chains << " chains"; }
};

Plan planned(const Graph& graph, const passes::CompileOptions& options) {
  const auto program = std::get<program::Program>(passes::compileTo(passes::Stage::Scheduled, graph, options).orThrow());
  Plan plan{program.levelCount(), 0};
  for (const program::Command& command : program.commands) {
    const auto* dispatch = std::get_if<program::Dispatch>(&command.action);
    if (dispatch == nullptr) continue;
    const auto& kernel = std::get<program::SymbolicKernel>(program[dispatch->kernel].code);
    plan.chains += std::holds_alternative<program::RowChainPlan>(kernel.plan) ? 1 : 0;
  }
  return plan;
}

struct Case {
  const char* device;
  Sizes sizes;
  uint32_t units;
  uint32_t subgroup_size;  ///< 0: that of the device
};

class Chained : public ::testing::TestWithParam<Case> {};
INSTANTIATE_TEST_SUITE_P(ChainRows, Chained,
                         ::testing::Values(Case{"reference", {128, 64, 128, 12}, 16, 32}, Case{"reference", {77, 33, 70, 5}, 16, 4},
                                           Case{"reference", {257, 64, 256, 1}, 132, 64}, Case{"reference", {1, 16, 24, 7}, 4, 1},
                                           Case{"reference", {300, 7, 3, 130}, 16, 8}, Case{"reference", {33, 129, 20, 2}, 3, 1},
                                           Case{"reference", {64, 1, 1, 2}, 132, 32},
                                           Case{"sanitizer:race,memory", {77, 33, 70, 5}, 16, 32},
                                           Case{"sanitizer:race,memory", {33, 20, 65, 64}, 2, 8}, Case{"vulkan", {128, 64, 128, 12}, 16, 0},
                                           Case{"vulkan", {77, 33, 70, 5}, 16, 0}, Case{"vulkan", {33, 129, 20, 2}, 3, 0}),
                         [](const auto& info) {
                           const Sizes& sizes = info.param.sizes;
                           const std::string_view device = info.param.device;
                           return fmt::format("{}_{}x{}x{}x{}_{}", device.substr(0, device.find(':')), sizes.rows, sizes.columns,
                                              sizes.hidden, sizes.classes, info.param.subgroup_size);
                         });

/// Results and gradients as the f64 evaluator has them, and the same bits each time.
void expectRight(const Graph& graph, const passes::CompileOptions& options, const detail::Device& device, int64_t classes) {
  EXPECT_GE(planned(graph, options).chains, 1u);
  ValueMap in;
  uint32_t seed = 1;
  for (const NodeId id : graph.body().nodes) {
    if (leafName(graph[id]) == nullptr) continue;
    const std::string& name = *leafName(graph[id]);
    const auto count = static_cast<size_t>(graph.shapeOf(graph[id].results[0]).elementCount());
    std::vector<double>& values = in[name];
    for (size_t i = 0; i < count; ++i) {
      seed = seed * 1664525u + 1013904223u;
      const double unit = static_cast<double>(seed >> 8) / (1 << 24);
      values.push_back(name == "labels" ? std::floor(unit * static_cast<double>(classes)) : unit - 0.5);
    }
  }
  const auto runner = makeDeviceRunner(graph, options, device).orThrow();
  const StepOutputs got = runner->step(in).orThrow(), again = runner->step(in).orThrow();
  const StepOutputs wanted = makeEvaluatingRunner(graph, options).orThrow()->step(in).orThrow();
  EXPECT_EQ(got, again) << "not deterministic";
  for (const Finding& finding : *device.findings) ADD_FAILURE() << toString(finding.diagnostic);
  ASSERT_EQ(got.size(), wanted.size());
  for (const auto& [key, values] : wanted) {
    double scale = 1e-3, worst = 0;
    for (size_t i = 0; i < values.size(); ++i) {
      scale = std::max(scale, std::abs(values[i]));
      worst = std::max(worst, std::abs(values[i] - got.at(key)[i]));
    }
    EXPECT_LE(worst, 2e-5 * scale) << key.second;
  }
}

TEST_P(Chained, are_right) {
  const Case one = GetParam();
  const Result<ChosenDevice> chosen = chooseDevice(one.device);
  if (!chosen.ok()) GTEST_SKIP() << "no usable device " << one.device;
  const program::DeviceProfile own = (*chosen).info.profile;
  const uint32_t subgroup = one.subgroup_size != 0 ? one.subgroup_size : own.fixed_subgroups ? own.subgroup_size : 1;
  const program::DeviceProfile profile = profileWith(one.units, subgroup);
  const detail::Device device = profiledDevice(one.device, profile);
  expectRight(network(one.sizes), optionsFor(profile), device, one.sizes.classes);
}

TEST(ChainRows, columns_of_a_row_in_any_order_are_right) {
  for (const Sizes& sizes : {Sizes{20, 8, 5, 4}, Sizes{7, 5, 17, 3}}) {
    const program::DeviceProfile profile = profileWith(8);
    expectRight(gates(sizes), optionsFor(profile, {}, {"x", "w", "v"}), profiledDevice("sanitizer:race,memory", profile), 1);
  }
}

TEST(ChainRows, operands_that_take_turns_in_memory_are_right) {
  const program::DeviceProfile profile = profileWith(4);
  passes::CompileOptions options = optionsFor(profile);
  options.keep_gradients = false;
  expectRight(sumOfProducts({21, 40, 1, 9}), options, profiledDevice("sanitizer:race,memory", profile), 1);
}

TEST(ChainRows, small_layers_are_one_kernel) {
  const Graph graph = network({});
  const Plan chained = planned(graph, optionsFor(profileWith(132))), apart = planned(graph, optionsFor(profileWith(132), {"chainRows"}));
  EXPECT_EQ(chained.chains, 1u);
  EXPECT_EQ(apart.chains, 0u);
  EXPECT_LE(chained.levels + 8, apart.levels);
}

TEST(ChainRows, large_layers_are_left_apart) {
  for (const Sizes& sizes : {Sizes{16384, 384, 1536, 1000}, Sizes{16, 896, 4864, 32000}}) {
    const Graph graph = network(sizes);
    EXPECT_EQ(planned(graph, optionsFor(profileWith(132))), planned(graph, optionsFor(profileWith(132), {"chainRows"})));
  }
}

TEST(ChainRows, long_rows_are_left_apart) {
  const auto chains = [](int64_t rows, int64_t columns) {
    Builder b;
    const ValueId x = f32Input(b, "x", {rows, columns});
    const ValueId normed = b.make("rms_norm", {x, f32Input(b, "g", {columns})}, {{"eps", 1e-6}});
    b.output(OutputKind::Result, "y", b.make("matmul", {normed, f32Input(b, "w", {columns, 3})}));
    passes::CompileOptions options = optionsFor(profileWith(132));
    options.keep_gradients = false;
    return planned(b.graph(), options).chains;
  };
  EXPECT_EQ(chains(1024, 256), 1u);
  EXPECT_EQ(chains(2048, 2048), 0u);
  EXPECT_EQ(chains(2, 65536), 0u) << "two workgroups";
}

/// Keys and values of grouped heads are small, but the queries would wait for them if they ran with the norm.
TEST(ChainRows, a_large_product_does_not_wait_for_small_ones) {
  Builder b;
  const ValueId small = b.make("matmul", {f32Input(b, "z", {64, 16}), f32Input(b, "z.w", {16, 896})});
  const ValueId x = b.add(f32Input(b, "x", {64, 896}), small);
  const ValueId normed = b.make("rms_norm", {x, f32Input(b, "g", {896})}, {{"eps", 1e-6}});
  for (const auto& [name, columns] : {std::pair("q", 896), std::pair("k", 128), std::pair("v", 128)})
    b.output(OutputKind::Result, name, b.make("matmul", {normed, f32Input(b, std::string(name) + ".w", {896, columns})}));
  passes::CompileOptions options = optionsFor(profileWith(132));
  options.keep_gradients = false;
  EXPECT_EQ(planned(b.graph(), options), (Plan{3, 1})) << "the first product with the norm, then all others, then the sum of parts";
}

TEST(ChainRows, a_text_whose_rows_need_others_is_refused) {
  const std::string text = R"(lockstep.graph 1
graph {
  %x: f32[4,4] = input {dtype = f32, name = "x", shape = [4, 4]}
  %y: f32[4,4] = group %x {kind = "row_chain"} {
    %a: f32[4,4] = matmul %x, %x
    %t: f32[4,4] = permute %a {permutation = [1, 0]}
    %b: f32[4,4] = matmul %t, %x
    yield %b
  }
  output result "y" %y
}
)";
  const auto form = passes::runPasses(passes::parseForm(text, "text").orThrow(), {"schedule"}, optionsFor(profileWith(132)));
  ASSERT_FALSE(form.ok());
  EXPECT_EQ(form.failure().diagnostics.front().code, "schedule.group");
}

TEST(ChainRows, needs_bindings_and_memory) {
  const Graph graph = network({});
  program::DeviceProfile few = profileWith(132);
  few.max_storage_buffers = 8;
  EXPECT_EQ(planned(graph, optionsFor(few)).chains, 0u);
  program::DeviceProfile small = profileWith(132);
  small.max_workgroup_bytes = 4096;
  const Plan plan = planned(graph, optionsFor(small));
  EXPECT_LE(plan.levels, planned(graph, optionsFor(small, {"chainRows"})).levels);
}

}  // namespace
}  // namespace lockstep
