// SPDX-License-Identifier: Apache-2.0
// The SPIR-V of every op passes spirv-val, and says what WGSL needs where the naive form would be wrong.
#include "backends/vulkan/spirv.h"

#include <gtest/gtest.h>

#include "tests/kernel/samples.h"

namespace lockstep::vulkan {
namespace {

const SpirvOptions kAll{.preserve_signed_zero_inf_nan = true, .round_to_nearest_even = true, .zero_initialize_workgroup = true};

std::string emitText(const std::string& lines, const SpirvOptions& options = {}) {
  kernel::Module module = kernel::parse(kernel::testing::inEntryPoint(lines)).orThrow();
  std::vector<uint32_t> words = emitSpirv(kernel::validate(std::move(module)).orThrow(), options).orThrow();
  EXPECT_EQ(validateSpirv(words), "");
  return disassemble(words);
}

size_t count(const std::string& text, const std::string& part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size())) ++found;
  return found;
}

class EveryOp : public ::testing::TestWithParam<size_t> {};

TEST_P(EveryOp, spirv_is_valid) {
  auto op = static_cast<kernel::Op>(GetParam());
  std::optional<kernel::Module> module = kernel::testing::moduleUsing(op);
  ASSERT_TRUE(module) << "no sample for " << kernel::info(op).text;
  Result<kernel::ValidModule> valid = kernel::validate(std::move(*module));
  ASSERT_TRUE(valid.ok()) << toString(valid.diagnostics());
  for (const SpirvOptions& options : {SpirvOptions{}, kAll}) {
    std::vector<uint32_t> words = emitSpirv(*valid, options).orThrow();
    EXPECT_EQ(validateSpirv(words), "") << disassemble(words);
  }
}

INSTANTIATE_TEST_SUITE_P(Spirv, EveryOp, ::testing::Range(size_t{0}, kernel::kOpCount),
                         [](const auto& info) { return std::string(kernel::info(static_cast<kernel::Op>(info.param)).text); });

TEST(Spirv, wide_module_is_valid) {
  kernel::ValidModule valid = kernel::validate(kernel::testing::wideModule()).orThrow();
  for (const SpirvOptions& options : {SpirvOptions{}, kAll}) {
    EXPECT_EQ(validateSpirv(emitSpirv(valid, options).orThrow()), "");
  }
}

TEST(Spirv, module_without_entry_point_is_refused) {
  kernel::Module module = kernel::parse("lockstep.kernel 1\nfn @f() {\n}\n").orThrow();
  auto words = emitSpirv(kernel::validate(std::move(module)).orThrow(), {});
  ASSERT_FALSE(words.ok());
  EXPECT_EQ(words.diagnostics()[0].code, "vulkan.entry_point");
}

TEST(Spirv, integer_remainder_never_uses_the_undefined_ops) {
  std::string text = emitText("  %x: ptr<function, i32> = var -7i\n  %a: i32 = load %x\n  %r: i32 = rem %a, %a\n  %q: i32 = div %a, %a\n");
  EXPECT_EQ(count(text, "OpSRem") + count(text, "OpSMod"), 0u);
  EXPECT_EQ(count(text, "OpSDiv"), 2u);
}

TEST(Spirv, division_by_a_harmless_constant_is_bare) {
  std::string text = emitText("  %q: u32 = div %i, 3u\n");
  EXPECT_EQ(count(text, "OpUDiv"), 1u);
  EXPECT_EQ(count(text, "OpSelect "), 0u);
}

TEST(Spirv, strict_operations_are_not_contracted) {
  std::string body = "  %x: ptr<function, f32> = var 2.0f\n  %a: f32 = load %x\n  %m: f32 = strict mul %a, %a\n";
  EXPECT_EQ(count(emitText(body + "  %s: f32 = strict add %m, %a\n"), "NoContraction"), 2u);
  EXPECT_EQ(count(emitText(body + "  %s: f32 = add %m, %a\n"), "NoContraction"), 1u);
}

TEST(Spirv, float_rules_are_those_of_wgsl) {
  std::string text = emitText(
      "  %x: ptr<function, f32> = var 2.0f\n  %a: f32 = load %x\n  %n: bool = ne %a, %a\n  %m: f32 = min %a, %a\n  %r: f32 = round %a\n"
      "  %c: i32 = convert %a\n");
  EXPECT_EQ(count(text, "OpFUnordNotEqual"), 1u);
  EXPECT_EQ(count(text, "NMin"), 1u);
  EXPECT_EQ(count(text, "RoundEven"), 1u);
  EXPECT_EQ(count(text, "NClamp"), 1u);
}

TEST(Spirv, access_is_clamped_unless_proven_in_bounds) {
  std::string guarded = emitText("  %p: ptr<storage, f32> = access @in, %i\n  %x: f32 = load %p\n");
  EXPECT_EQ(count(guarded, "UMin"), 1u);
  EXPECT_EQ(count(guarded, "OpArrayLength"), 1u);
  std::string bare = emitText("  %p: ptr<storage, f32> = access @in, %i {in_bounds = true}\n  %x: f32 = load %p\n");
  EXPECT_EQ(count(bare, "UMin") + count(bare, "OpArrayLength"), 0u);
}

TEST(Spirv, read_bindings_are_not_writable_and_unused_ones_are_left_out) {
  std::string text = emitText("  %p: ptr<storage, f32> = access @in, 0u\n  %x: f32 = load %p\n");
  EXPECT_EQ(count(text, "NonWritable"), 1u);
  EXPECT_EQ(count(text, "OpDecorate %out"), 0u);
  EXPECT_EQ(count(text, "Coherent"), 0u);
}

TEST(Spirv, storage_barrier_makes_written_buffers_coherent) {
  std::string text = emitText("  %p: ptr<storage, f32, read_write> = access @out, 0u\n  store %p, 1.0f\n  storage_barrier\n");
  EXPECT_EQ(count(text, "OpDecorate %out Coherent"), 1u);
}

TEST(Spirv, float_controls_follow_the_device) {
  EXPECT_EQ(count(emitText("", {}), "SignedZeroInfNanPreserve"), 0u);
  std::string text = emitText("", kAll);
  EXPECT_EQ(count(text, "OpExecutionMode %main SignedZeroInfNanPreserve 32"), 1u);
  EXPECT_EQ(count(text, "OpExecutionMode %main RoundingModeRTE 32"), 1u);
}

TEST(Spirv, workgroup_memory_is_zeroed_by_an_initializer_or_a_loop) {
  std::string body = "  %x: u32 = atomic_load @counter\n";
  EXPECT_EQ(count(emitText(body, kAll), "OpControlBarrier"), 0u);
  EXPECT_EQ(count(emitText(body, {}), "OpControlBarrier"), 1u);
}

}  // namespace
}  // namespace lockstep::vulkan
