// SPDX-License-Identifier: Apache-2.0
// Which products go to matrix units, with which tile, and that their kernels assume no size of a subgroup.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "frontend/train/templates.h"
#include "ir/graph/builder.h"
#include "ir/graph/op_def.h"
#include "ir/kernel/spread_matrices.h"
#include "passes/pipeline.h"
#include "tests/passes/gpu_profile.h"

namespace lockstep {
namespace {

using graph::DType;
using graph::ValueId;

program::DeviceProfile unitsProfile(program::MatrixShape shape = {.m = 16, .n = 16, .k = 16}, uint32_t subgroup_size = 32) {
  program::DeviceProfile profile = gpuProfile();
  profile.parallel_units = 132;
  profile.subgroup_size = subgroup_size;
  profile.f16 = true;
  profile.matrix_f16 = profile.matrix_bf16 = shape;
  return profile;
}

/// The kernel that multiplies, and its workgroups.
struct Chosen {
  kernel::Module module;
  uint32_t groups = 0;
};

Chosen product(int64_t m, int64_t n, int64_t k, const program::DeviceProfile& profile, DType stored = DType::F32) {
  graph::Builder b;
  const auto operand = [&](std::string name, int64_t rows, int64_t columns) {
    const ValueId made =
        b.make("input", {}, {{"name", std::move(name)}, {"shape", std::vector<int64_t>{rows, columns}}, {"dtype", stored}});
    return stored == DType::F32 ? made : b.make("cast", {made}, {{"dtype", DType::F32}});
  };
  const ValueId a = operand("a", m, k), right = operand("b", k, n);
  b.output(graph::OutputKind::Result, "out", b.make("matmul", {a, right}));
  passes::CompileOptions options;
  options.profile = profile;
  options.templates = detail::templateSource();
  const passes::Compiled compiled = passes::compile(b.take(), options).orThrow();
  for (const program::Command& command : compiled.program.commands) {
    const auto* dispatch = std::get_if<program::Dispatch>(&command.action);
    if (dispatch == nullptr) continue;
    const auto& module = std::get<kernel::Module>(compiled.program.kernels[dispatch->kernel.index()].code);
    if (module.name.ends_with("_tiled")) return {module, dispatch->groups[0] * dispatch->groups[1]};
  }
  return {};
}

bool hasComponent(const kernel::Module& module, kernel::Scalar scalar) {
  for (size_t i = 0; i < module.types.size(); ++i) {
    const kernel::Type& type = module.types[kernel::TypeId(i)];
    if (type.kind == kernel::TypeKind::SubgroupMatrix && type.use == kernel::MatrixUse::Left && type.scalar == scalar) return true;
  }
  return false;
}

/// A module that is too large for inlineCalls keeps its calls: it is right, but what the passes see of it is not fast.
TEST(MatrixProducts, no_call_is_left) {
  for (const DType stored : {DType::F32, DType::BF16}) {
    for (const int64_t extent : {1024, 4095, 4096}) {
      EXPECT_EQ(product(extent, extent, extent, unitsProfile(), stored).module.functions.size(), 1u) << toString(stored) << ' ' << extent;
    }
  }
}

/// Gradients of a convolution's weights: few results, and an inner axis of all pixels.
TEST(MatrixProducts, parts_of_a_long_inner_axis_fill_the_units) {
  EXPECT_EQ(product(64, 576, 65536, unitsProfile()).groups, 576u) << "9 tiles, 64 parts";
  EXPECT_EQ(product(256, 2304, 4096, unitsProfile()).groups, 144u) << "36 tiles of 128 x 128, 4 parts";
}

TEST(MatrixProducts, tiles_fill_the_units) {
  const program::DeviceProfile profile = unitsProfile();
  EXPECT_EQ(product(4096, 4096, 4096, profile).groups, 1024u) << "tiles of 128 x 128";
  EXPECT_EQ(product(1024, 1024, 1024, profile).groups, 128u) << "of 128 x 64";
  EXPECT_EQ(product(768, 768, 1024, profile).groups, 144u) << "of 64 x 64";
  EXPECT_EQ(product(4096, 4096, 4096, profile, DType::BF16).groups, 512u) << "of 128 x 256";
  EXPECT_EQ(product(4096, 4096, 4096, profile).module.name, "matrix_tiled");
  EXPECT_EQ(product(50176, 32, 288, profile).groups, 392u) << "of 128 x 32";
  EXPECT_EQ(product(32, 16384, 288, profile).groups, 128u) << "of 32 x 128";
  EXPECT_NE(product(50176, 8, 288, profile).module.name, "matrix_tiled") << "a quarter of such a tile";
}

TEST(MatrixProducts, plain_f32_stays_where_it_is_faster_or_wanted) {
  const program::DeviceProfile profile = unitsProfile();
  EXPECT_EQ(product(512, 512, 512, profile).module.name, "quad_tiled") << "too few results for tiles of 64 x 64";
  EXPECT_EQ(product(4095, 4095, 4095, profile).module.name, "matrix_tiled") << "after a copy in rows of quads";
  EXPECT_EQ(product(4096, 4096, 64, profile).module.name, "quad_tiled") << "a short inner axis";
  program::DeviceProfile strict = profile;
  strict.matrix_f16 = {};
  EXPECT_EQ(product(4096, 4096, 4096, strict).module.name, "quad_tiled");
  EXPECT_EQ(product(4096, 4096, 4096, strict, DType::BF16).module.name, "matrix_tiled") << "strict_f32 is about f32";
}

TEST(MatrixProducts, operands_of_16_bits_have_one_part) {
  const program::DeviceProfile profile = unitsProfile();
  EXPECT_TRUE(hasComponent(product(4096, 4096, 4096, profile).module, kernel::Scalar::F16));
  const kernel::Module brain = product(4096, 4096, 4096, profile, DType::BF16).module;
  EXPECT_TRUE(hasComponent(brain, kernel::Scalar::BF16));
  EXPECT_FALSE(hasComponent(brain, kernel::Scalar::F16));
  const auto products = [](const kernel::Module& module) {
    return std::ranges::count(module.instructions, kernel::Op::SubgroupMatrixMultiplyAccumulate, &kernel::Instruction::op);
  };
  // A subgroup of 64 x 32 or 64 x 64 results has 8 or 16 units, each with two along the inner axis.
  EXPECT_EQ(products(product(4096, 4096, 4096, profile).module), 8 * 2 * 3) << "three products per pair of parts";
  EXPECT_EQ(products(brain), 16 * 2);
}

TEST(MatrixProducts, kernels_assume_no_size_of_a_subgroup) {
  struct Card {
    std::string_view name;
    program::MatrixShape shape;
    uint32_t subgroup_size;
  };
  const std::vector<Card> cards{{"as Intel's", {8, 8, 16}, 8},
                                {"as Intel's", {8, 16, 16}, 16},
                                {"as AMD's", {16, 16, 16}, 32},
                                {"as AMD's", {16, 16, 16}, 64},
                                {"as NVIDIA's", {16, 8, 16}, 32}};
  for (const Card& card : cards) {
    SCOPED_TRACE(fmt::format("{} {}x{}x{} in {}", card.name, card.shape.m, card.shape.n, card.shape.k, card.subgroup_size));
    for (const DType stored : {DType::F32, DType::BF16}) {
      const Chosen chosen = product(4096, 4096, 4096, unitsProfile(card.shape, card.subgroup_size), stored);
      ASSERT_EQ(chosen.module.name, "matrix_tiled");
      const kernel::Function& entry = *chosen.module.entryPoint();
      EXPECT_EQ(entry.subgroup_size, card.subgroup_size);
      fmt::print("{} {}x{}x{} in subgroups of {}, {}: {} workgroups of {} invocations\n", card.name, card.shape.m, card.shape.n,
                 card.shape.k, card.subgroup_size, toString(stored), chosen.groups, (*entry.workgroup_size)[0]);
      EXPECT_TRUE(kernel::spreadMatrices(kernel::inlineAllCalls(chosen.module), card.subgroup_size).ok());
    }
  }
}

}  // namespace
}  // namespace lockstep
