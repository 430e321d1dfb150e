// SPDX-License-Identifier: Apache-2.0
// Matrices as arrays in each invocation; what such kernels compute is in tests/backends/matrix_suite.cpp.
#include "ir/kernel/spread_matrices.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>

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

/// The largest and the sum of each row of @a, and those as a factor of a product.
Module rows(const std::string& sum_component) {
  const std::string sum = "subgroup_matrix_result<" + sum_component + ", 32, 16> = ";
  return parse("lockstep.kernel 1\nenable f16\nenable subgroup_matrices\nvar @a: array<" + sum_component +
               "> {access = read_write, binding = 0, group = 0, space = storage}\nfn @main() {workgroup_size = [64, 1, 1]} {\n  %m: " +
               sum + "subgroup_matrix_load @a, 0u, 32u\n  %largest: " + sum + "subgroup_matrix_row_max %m\n  %total: " + sum +
               "subgroup_matrix_row_sum %largest\n  subgroup_matrix_store @a, 0u, %total, 32u\n"
               "  %factor: subgroup_matrix_left<f16, 16, 16> = subgroup_matrix_convert zero<subgroup_matrix_result<f32, 16, 16>>\n"
               "  %c: subgroup_matrix_result<f32, 16, 16> = subgroup_matrix_multiply_accumulate %factor, "
               "zero<subgroup_matrix_right<f16, 16, 16>>, zero<subgroup_matrix_result<f32, 16, 16>>\n}\n")
      .orThrow();
}

TEST(SpreadMatrices, rows_are_reduced_and_factors_rounded_for_any_size_of_subgroup) {
  const auto count = [](const Module& module, Op op) { return std::ranges::count(module.instructions, op, &Instruction::op); };
  for (const uint32_t size : {4u, 8u, 16u, 32u, 64u}) {
    const uint32_t width = std::min(size, 16u), held = 16 * width / size;
    for (const std::string component : {"f32", "f16"}) {
      for (const Scalar factor : {Scalar::F16, Scalar::BF16}) {
        // A result has no components of bf16.
        if (factor == Scalar::BF16 && component == "f16") continue;
        const Module module = withComponents(rows(component), Scalar::F16, factor);
        ASSERT_TRUE(validate(module).ok()) << toString(validate(module).diagnostics());
        const Result<InlinedModule> spread = spreadMatrices(inlineAllCalls(module), size);
        ASSERT_TRUE(spread.ok()) << size;
        EXPECT_TRUE(validate(spread->module).ok()) << toString(validate(spread->module).diagnostics());
        // For both reductions, of each row that the invocation has a part of.
        EXPECT_EQ(count(spread->module, Op::SubgroupShuffleXor), 2 * held * std::countr_zero(width)) << size;
        EXPECT_EQ(count(spread->module, Op::Max), held * (32 / width - 1 + std::countr_zero(width))) << size;
        // bf16 has no conversion.
        EXPECT_EQ(count(spread->module, Op::Select), factor == Scalar::BF16 ? 256 / size : 0) << size;
      }
    }
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
