// SPDX-License-Identifier: Apache-2.0
// Which attention goes to matrix units, with which tile, and that its kernels assume no size of a subgroup.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "frontend/train/templates.h"
#include "ir/graph/builder.h"
#include "ir/graph/op_def.h"
#include "ir/kernel/inline_calls.h"
#include "ir/kernel/queries.h"
#include "ir/kernel/spread_matrices.h"
#include "passes/pipeline.h"
#include "tests/passes/gpu_profile.h"

namespace lockstep {
namespace {

using graph::DType;
using graph::ValueId;

struct Heads {
  int64_t batch = 8, heads = 8, queries = 256, keys = 256, width = 64, value_width = 0;  ///< 0: as wide as keys
};

/// The kernels with subgroup matrices of causal attention and its gradients.
std::vector<kernel::Module> kernels(const Heads& h, const program::DeviceProfile& profile, DType low = DType::F32) {
  graph::Builder b;
  const auto operand = [&](std::string name, int64_t rows, int64_t width) {
    const ValueId made =
        b.make("input", {}, {{"name", std::move(name)}, {"shape", std::vector<int64_t>{h.batch, h.heads, rows, width}}, {"dtype", low}});
    return low == DType::F32 ? made : b.make("cast", {made}, {{"dtype", DType::F32}});
  };
  const std::vector<ValueId> operands{operand("q", h.queries, h.width), operand("k", h.keys, h.width),
                                      operand("v", h.keys, h.value_width == 0 ? h.width : h.value_width)};
  graph::Attributes attributes{{"causal", true}, {"offset", int64_t{0}}, {"scale", 0.125}};
  if (low != DType::F32) attributes.set(std::string(graph::kLowAttribute), low);
  const ValueId out = b.makeAll("scaled_dot_product_attention", operands, attributes)[0];
  b.output(graph::OutputKind::Loss, "loss", b.sum(b.reshape(out, graph::Shape{b.shapeOf(out).elementCount()}), 0, false));
  passes::CompileOptions options;
  options.profile = profile;
  options.keep_gradients = true;
  options.wrt = {"q", "k", "v"};
  options.templates = detail::templateSource();
  options.preferred_templates = {"attention"};
  options.disabled = {"mergeDispatches"};  // one kernel per op
  const passes::Compiled compiled = passes::compile(b.take(), options).orThrow();
  std::vector<kernel::Module> made;
  for (const program::Command& command : compiled.program.commands) {
    const auto* dispatch = std::get_if<program::Dispatch>(&command.action);
    if (dispatch == nullptr) continue;
    auto module = std::get<kernel::Module>(compiled.program.kernels[dispatch->kernel.index()].code);
    if (kernel::hasSubgroupMatrices(module)) made.push_back(std::move(module));
  }
  return made;
}

program::DeviceProfile unitsProfile(program::MatrixShape shape = {.m = 16, .n = 16, .k = 16}, uint32_t subgroup_size = 32) {
  program::DeviceProfile profile = gpuProfile();
  profile.parallel_units = 132;
  profile.subgroup_size = subgroup_size;
  profile.f16 = true;
  profile.matrix_f16 = profile.matrix_bf16 = shape;
  profile.matrix_rows = true;
  return profile;
}

TEST(MatrixAttention, goes_to_the_units_forward_and_backward) {
  EXPECT_EQ(kernels({}, unitsProfile()).size(), 3u);
  EXPECT_EQ(kernels({}, unitsProfile(), DType::BF16).size(), 3u);
  EXPECT_EQ(kernels({.queries = 1000, .keys = 1000}, unitsProfile()).size(), 3u) << "no multiple of a tile";
  EXPECT_EQ(kernels({.width = 128}, unitsProfile(), DType::BF16).size(), 3u);
  EXPECT_EQ(kernels({.width = 128}, unitsProfile()).size(), 1u) << "gradients in two parts do not fit into registers";
  EXPECT_EQ(kernels({.width = 64, .value_width = 128}, unitsProfile()).size(), 1u);
}

size_t productsOf(const kernel::Module& module) {
  size_t products = 0;
  kernel::forEachInstruction(module, module.entryPoint()->body, [&](kernel::InstructionId, const kernel::Instruction& in) {
    products += in.op == kernel::Op::SubgroupMatrixMultiplyAccumulate ? 1 : 0;
  });
  return products;
}

TEST(MatrixAttention, few_workgroups_take_twice_as_many_keys_at_a_time) {
  const auto forward = [](int64_t batch, int64_t length, DType low) {
    return productsOf(kernels({.batch = batch, .queries = length, .keys = length}, unitsProfile(), low).front());
  };
  const size_t of_many = forward(8, 2048, DType::BF16);
  EXPECT_EQ(forward(1, 2048, DType::BF16), 2 * of_many);
  EXPECT_EQ(forward(1, 256, DType::BF16), of_many) << "short rows";
  EXPECT_EQ(forward(1, 2048, DType::F32), forward(8, 2048, DType::F32));
}

TEST(MatrixAttention, chunks_of_a_prompt_go_to_the_units) {
  const auto kernelsOf = [](int64_t queries, int64_t window) {
    graph::Builder b;
    const auto operand = [&](std::string name, std::vector<int64_t> shape, DType dtype) {
      return b.make("input", {}, {{"name", std::move(name)}, {"shape", std::move(shape)}, {"dtype", dtype}});
    };
    const std::vector<ValueId> operands{operand("q", {8, queries, 64}, DType::F32), operand("k", {8, 1024, 64}, DType::F32),
                                        operand("v", {8, 1024, 64}, DType::F32), operand("length", {}, DType::I32)};
    b.output(graph::OutputKind::Result, "y", b.make("cached_attention", operands, {{"scale", 0.125}, {"window", window}}));
    passes::CompileOptions options;
    options.profile = unitsProfile();
    options.templates = detail::templateSource();
    const passes::Compiled compiled = passes::compile(b.take(), options).orThrow();
    return std::ranges::count_if(compiled.program.kernels, [](const program::Kernel& kernel) {
      return kernel::hasSubgroupMatrices(std::get<kernel::Module>(kernel.code));
    });
  };
  EXPECT_EQ(kernelsOf(512, 0), 1);
  EXPECT_EQ(kernelsOf(64, 0), 0) << "8 workgroups";
  EXPECT_EQ(kernelsOf(512, 100), 0);
}

TEST(MatrixAttention, other_templates_stay_where_units_have_too_little_to_do) {
  EXPECT_TRUE(kernels({.queries = 8, .keys = 8}, unitsProfile()).empty());
  program::DeviceProfile strict = unitsProfile();
  strict.matrix_f16 = {};
  EXPECT_TRUE(kernels({}, strict).empty());
  program::DeviceProfile apart = unitsProfile();
  apart.matrix_rows = false;
  EXPECT_TRUE(kernels({}, apart).empty()) << "rows would be put together through memory";
  EXPECT_TRUE(kernels({}, unitsProfile({.m = 16, .n = 8, .k = 16})).empty()) << "a result cannot become a left operand";
  EXPECT_TRUE(kernels({.width = 256}, unitsProfile()).empty()) << "more than registers hold";
}

TEST(MatrixAttention, kernels_assume_no_size_of_a_subgroup) {
  struct Card {
    std::string_view name;
    program::MatrixShape shape;
    uint32_t subgroup_size;
  };
  const std::vector<Card> cards{
      {"as Intel's", {8, 8, 8}, 8}, {"as Intel's", {8, 16, 16}, 16}, {"as AMD's", {16, 16, 16}, 32}, {"as AMD's", {16, 16, 16}, 64}};
  for (const Card& card : cards) {
    SCOPED_TRACE(fmt::format("{} {}x{}x{} in {}", card.name, card.shape.m, card.shape.n, card.shape.k, card.subgroup_size));
    for (const DType low : {DType::F32, DType::BF16}) {
      const std::vector<kernel::Module> made = kernels({}, unitsProfile(card.shape, card.subgroup_size), low);
      ASSERT_EQ(made.size(), 3u);
      for (const kernel::Module& module : made) {
        EXPECT_EQ(module.functions.size(), 1u) << "no call is left";
        const kernel::Function& entry = *module.entryPoint();
        EXPECT_EQ(entry.subgroup_size, card.subgroup_size);
        fmt::print("{} {}x{}x{} in subgroups of {}, {}: {} of {} invocations\n", card.name, card.shape.m, card.shape.n, card.shape.k,
                   card.subgroup_size, toString(low), module.name, (*entry.workgroup_size)[0]);
        EXPECT_TRUE(kernel::spreadMatrices(kernel::inlineAllCalls(module), card.subgroup_size).ok());
      }
    }
  }
}

}  // namespace
}  // namespace lockstep
