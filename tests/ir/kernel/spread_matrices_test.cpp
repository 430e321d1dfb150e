// SPDX-License-Identifier: Apache-2.0
// Matrices as arrays in each invocation; what such kernels compute is in tests/backends/matrix_suite.cpp.
#include "ir/kernel/spread_matrices.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "ir/kernel/op.h"

namespace lockstep::kernel {
namespace {

/// A product of two matrices from @a, stored to it.
Module product(const std::string& component, const std::string& m, const std::string& n, const std::string& k) {
  return parse("lockstep.kernel 1\n" + std::string(component == "f16" ? "enable f16\n" : "") +
               "enable subgroup_matrices\nvar @a: array<u32> {access = read_write, binding = 0, group = 0, space = storage}\n"
               "fn @main() {workgroup_size = [64, 1, 1]} {\n  %a: subgroup_matrix_left<" +
               component + ", " + k + ", " + m + "> = subgroup_matrix_load @a, 0u, 16u\n  %b: subgroup_matrix_right<" + component + ", " +
               n + ", " + k + "> = subgroup_matrix_load @a, 0u, 16u\n  %c: subgroup_matrix_result<f32, " + n + ", " + m +
               "> = subgroup_matrix_multiply_accumulate %a, %b, zero<subgroup_matrix_result<f32, " + n + ", " + m +
               ">>\n  subgroup_matrix_store @a, 0u, %c, 16u\n}\n")
      .orThrow();
}

bool hasMatrix(const Module& module, Scalar scalar) {
  return std::ranges::any_of(module.values, [&](const Value& value) {
    const Type& type = module.types[value.type];
    return type.kind == TypeKind::SubgroupMatrix && type.scalar == scalar;
  });
}

TEST(SpreadMatrices, leaves_none_for_any_size_of_subgroup) {
  for (const uint32_t size : {4u, 8u, 16u, 32u, 64u}) {
    const Result<InlinedModule> spread = spreadMatrices(inlineAllCalls(product("f16", "16", "8", "16")), size);
    ASSERT_TRUE(spread.ok()) << size;
    EXPECT_FALSE(hasSubgroupMatrices(spread->module));
    EXPECT_FALSE(hasMatrix(spread->module, Scalar::F16));
    EXPECT_EQ(spread->sources.size(), spread->module.instructions.size());
    EXPECT_TRUE(validate(spread->module).ok()) << toString(validate(spread->module).diagnostics());
  }
}

TEST(SpreadMatrices, a_matrix_that_cannot_be_dealt_out_is_an_error) {
  const Result<InlinedModule> spread = spreadMatrices(inlineAllCalls(product("f32", "6", "8", "8")), 32);
  ASSERT_FALSE(spread.ok());
  EXPECT_EQ(spread.diagnostics()[0].code, "kernel.subgroup_matrix");
  EXPECT_TRUE(spreadMatrices(inlineAllCalls(product("f32", "6", "8", "8")), 8).ok()) << "a row per subgroup";
}

TEST(SpreadMatrices, other_components_change_no_memory) {
  const Module brain = withComponents(product("f16", "16", "16", "16"), Scalar::F16, Scalar::BF16);
  EXPECT_TRUE(hasMatrix(brain, Scalar::BF16));
  EXPECT_FALSE(hasMatrix(brain, Scalar::F16));
  EXPECT_TRUE(hasMatrix(brain, Scalar::F32)) << "sums stay";
  EXPECT_TRUE(validate(brain).ok()) << toString(validate(brain).diagnostics());
}

}  // namespace
}  // namespace lockstep::kernel
