// SPDX-License-Identifier: Apache-2.0
// Products by quads: which tile a product gets, and that operands are loaded by four wherever four lie side by side.
#include <gtest/gtest.h>

#include "frontend/train/templates.h"
#include "ir/graph/builder.h"
#include "ir/graph/op_def.h"
#include "ir/kernel/module.h"
#include "passes/pipeline.h"
#include "tests/passes/gpu_profile.h"

namespace lockstep {
namespace {

using graph::ValueId;

passes::Compiled product(int64_t m, int64_t n, int64_t k, std::string_view order = "nn") {
  graph::Builder b;
  const auto operand = [&](std::string name, int64_t rows, int64_t columns, bool turned) {
    if (turned) std::swap(rows, columns);
    const ValueId made =
        b.make("input", {}, {{"name", std::move(name)}, {"shape", std::vector<int64_t>{rows, columns}}, {"dtype", graph::DType::F32}});
    return turned ? b.make("permute", {made}, {{"permutation", std::vector<int64_t>{1, 0}}}) : made;
  };
  const ValueId a = operand("a", m, k, order[0] == 't'), right = operand("b", k, n, order[1] == 't');
  b.output(graph::OutputKind::Result, "out", b.make("matmul", {a, right}));
  passes::CompileOptions options;
  options.profile = gpuProfile();
  options.profile.parallel_units = 132;
  options.templates = detail::templateSource();
  return passes::compile(b.take(), options).orThrow();
}

struct Product {
  uint32_t groups = 0;
  size_t quad_bindings = 0;  ///< of vectors
};

/// What the kernel is that makes the products, before their parts are added up.
Product chosen(const passes::Compiled& compiled) {
  Product product;
  for (const program::Command& command : compiled.program.commands) {
    const auto* dispatch = std::get_if<program::Dispatch>(&command.action);
    if (dispatch == nullptr) continue;
    const auto& module = std::get<kernel::Module>(compiled.program.kernels[dispatch->kernel.index()].code);
    if (module.name != "quad_tiled") continue;
    product.groups = dispatch->groups[0] * dispatch->groups[1];
    for (const kernel::GlobalVariable& global : module.globals) {
      const kernel::Type& type = module.types[global.type];
      if (global.space == kernel::AddressSpace::Storage && module.types[type.element].kind == kernel::TypeKind::Vector)
        ++product.quad_bindings;
    }
  }
  return product;
}

TEST(QuadProducts, tiles_fill_the_units) {
  EXPECT_EQ(chosen(product(4096, 4096, 4096)).groups, 1024u) << "tiles of 128 x 128";
  EXPECT_EQ(chosen(product(1024, 1024, 1024)).groups, 128u) << "of 128 x 64: nearly 132";
  EXPECT_EQ(chosen(product(512, 512, 512)).groups, 128u) << "of 32 x 64";
  EXPECT_EQ(chosen(product(256, 256, 256)).groups, 128u) << "of 16 x 32";
  EXPECT_EQ(chosen(product(5000, 3001, 777)).groups, 40u * 24u);
  EXPECT_EQ(chosen(product(128, 128, 128)).groups, 0u) << "too small for it";
}

TEST(QuadProducts, a_long_inner_axis_is_cut_for_idle_units) {
  EXPECT_EQ(chosen(product(384, 1536, 16384, "tn")).groups, 16u * 3 * 12) << "eight parts would leave most units idle in the third round";
  EXPECT_EQ(chosen(product(384, 1536, 2048, "tn")).groups, 2u * 3 * 24) << "parts are 1024 long at least";
  EXPECT_EQ(chosen(product(2048, 2048, 2048)).groups, 16u * 16) << "none is idle";
}

TEST(QuadProducts, quads_are_loaded_and_stored_where_there_are_any) {
  for (const char* order : {"nn", "tn", "nt", "tt"}) EXPECT_EQ(chosen(product(516, 1028, 260, order)).quad_bindings, 3u) << order;
  EXPECT_EQ(chosen(product(515, 1028, 260)).quad_bindings, 3u) << "rows may be odd in number";
  EXPECT_EQ(chosen(product(515, 1028, 260, "tn")).quad_bindings, 2u) << "but not where they lie side by side";
  EXPECT_EQ(chosen(product(516, 1028, 261)).quad_bindings, 2u);
  EXPECT_EQ(chosen(product(516, 1027, 260)).quad_bindings, 1u);
}

}  // namespace
}  // namespace lockstep
