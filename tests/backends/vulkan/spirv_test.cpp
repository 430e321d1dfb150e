// SPDX-License-Identifier: Apache-2.0
// The SPIR-V of every op passes spirv-val, and says what WGSL needs where the naive form would be wrong.
#include "backends/vulkan/spirv.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ir/kernel/spread_matrices.h"
#include "tests/backends/vulkan/matrix_words.h"
#include "tests/ir/kernel/samples.h"

namespace lockstep::vulkan {
namespace {

const SpirvOptions kAll{.preserve_signed_zero_inf_nan = true,
                        .round_to_nearest_even = true,
                        .preserve_signed_zero_inf_nan_f16 = true,
                        .round_to_nearest_even_f16 = true,
                        .zero_initialize_workgroup = true,
                        .subgroup_uniform_control_flow = true,
                        .debug_printf = true};

/// With a layout for the matrices of the samples, as a device would tell it.
SpirvOptions withLayout(SpirvOptions options) {
  kernel::TypeTable types;
  const kernel::Type sum = types[types.subgroupMatrix(kernel::MatrixUse::Result, kernel::Scalar::F32, 16, 16)];
  MatrixLayout layout{.type = sum, .lanes = 32};
  layout.lane_bits = {{{0, 2}, {0, 4}, {1, 0}, {2, 0}, {4, 0}}};
  layout.element_bits = {{{0, 1}, {0, 8}, {8, 0}}};
  options.matrix_layouts.push_back(layout);
  layout.type.scalar = kernel::Scalar::F16;
  options.matrix_layouts.push_back(layout);
  return options;
}

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
    const bool matrices = kernel::hasSubgroupMatrices(**valid);
    std::vector<uint32_t> words = emitSpirv(*valid, matrices ? withLayout(options) : options).orThrow();
    if (matrices) {
      EXPECT_EQ(checkMatrixWords(words), "");
    } else {
      EXPECT_EQ(validateSpirv(words), "") << disassemble(words);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Spirv, EveryOp, ::testing::Range(size_t{0}, kernel::kOpCount),
                         [](const auto& info) { return std::string(kernel::info(static_cast<kernel::Op>(info.param)).text); });

TEST(Spirv, places_in_matrices_need_a_layout) {
  const kernel::ValidModule module = kernel::validate(*kernel::testing::moduleUsing(kernel::Op::SubgroupMatrixRow)).orThrow();
  const auto words = emitSpirv(module, {});
  ASSERT_FALSE(words.ok());
  EXPECT_EQ(words.diagnostics()[0].code, "vulkan.matrix_layout");
}

/// The layout that an H100 has for 16 x 16 results, and one that is no sum.
TEST(MatrixLayout, fits_sums_of_places_alone) {
  const MatrixLayout want = withLayout({}).matrix_layouts[0];
  std::vector<uint32_t> numbers;
  for (uint32_t lane = 0; lane < 32; ++lane) {
    for (uint32_t element = 0; element < 8; ++element) {
      const MatrixPlace place = want.at(lane, element);
      numbers.push_back(place.row * 16 + place.column);
    }
  }
  EXPECT_EQ(fitLayout(want.type, 32, numbers), want);
  std::swap(numbers[100], numbers[200]);
  EXPECT_EQ(fitLayout(want.type, 32, numbers), std::nullopt);
  EXPECT_EQ(fitLayout(want.type, 32, std::span(numbers).first(255)), std::nullopt);
}

/// Each row is with four neighbours there. Columns that a lane's bit moves together with a row are in no such set.
TEST(MatrixLayout, rows_are_with_few_lanes) {
  MatrixLayout layout = withLayout({}).matrix_layouts[0];
  EXPECT_EQ(lanesOfRow(layout), (std::vector<uint32_t>{1, 2}));
  MatrixLayout other = layout;
  other.type.use = kernel::MatrixUse::Left;
  EXPECT_TRUE(holdAlike(layout, other));
  std::swap(other.lane_bits[0], other.lane_bits[4]);
  EXPECT_FALSE(holdAlike(layout, other));
  EXPECT_EQ(lanesOfRow(other), (std::vector<uint32_t>{2, 16}));
  layout.lane_bits[0] = {1, 2};
  EXPECT_EQ(lanesOfRow(layout), std::nullopt);
}

/// A row is reduced by its two lane bits and four elements in each half, and every element of a result is converted.
TEST(Spirv, rows_and_conversions_stay_in_registers) {
  const auto words = [](kernel::Op op) {
    return emitSpirv(kernel::validate(*kernel::testing::moduleUsing(op)).orThrow(), withLayout({})).orThrow();
  };
  const auto counted = [](const std::vector<uint32_t>& all, uint32_t op) {
    size_t found = 0;
    for (size_t at = 5; at < all.size(); at += all[at] >> 16) found += (all[at] & 0xffffu) == op ? 1 : 0;
    return found;
  };
  constexpr uint32_t kShuffleXor = 346, kConvert = 115;
  EXPECT_EQ(counted(words(kernel::Op::SubgroupMatrixRowMax), kShuffleXor), 2U * 2 * 2) << "two matrices of two rows per lane";
  EXPECT_EQ(counted(words(kernel::Op::SubgroupMatrixConvert), kConvert), 2U * 8) << "two matrices";
}

TEST(Spirv, wide_module_is_valid) {
  kernel::ValidModule valid = kernel::validate(kernel::testing::wideModule()).orThrow();
  for (const SpirvOptions& options : {SpirvOptions{}, kAll}) {
    EXPECT_EQ(validateSpirv(emitSpirv(valid, options).orThrow()), "");
  }
}

TEST(Spirv, float_modes_of_f16_only_where_it_is_used) {
  const auto modes = [](const std::string& text) {
    return std::pair(count(text, "SignedZeroInfNanPreserve 16") + count(text, "RoundingModeRTE 16"),
                     count(text, "SignedZeroInfNanPreserve 32") + count(text, "RoundingModeRTE 32"));
  };
  EXPECT_EQ(modes(emitText("  %x: f16 = neg 1.0h\n", kAll)), std::pair(size_t{2}, size_t{2}));
  const std::string plain = "lockstep.kernel 1\nfn @main() {workgroup_size = [1, 1, 1]} {\n}\n";
  kernel::ValidModule module = kernel::validate(kernel::parse(plain).orThrow()).orThrow();
  EXPECT_EQ(modes(disassemble(emitSpirv(module, kAll).orThrow())), std::pair(size_t{0}, size_t{2}));
  EXPECT_EQ(modes(emitText("  %x: f16 = neg 1.0h\n")), std::pair(size_t{0}, size_t{0}));
}

TEST(Spirv, print_is_debug_printf_where_the_device_has_it) {
  const std::string line = "  print 1.5f, true, 2.0h, -3i, 4u {location = [\"100% a.wgsl\", 3, 5]}\n";
  const std::string text = emitText(line, kAll);
  EXPECT_EQ(count(text, "OpExtension \"SPV_KHR_non_semantic_info\""), 1u) << text;
  EXPECT_EQ(count(text, "\"100%% a.wgsl:3:5: workgroup (%v3u), local (%v3u): %f, %u, %f, %d, %u\n\""), 1u) << text;
  EXPECT_EQ(count(text, "\"NonSemantic.DebugPrintf\""), 1u) << text;
  EXPECT_EQ(count(text, "OpExtInst %void"), 1u) << text;
  const std::string without = emitText(line);
  EXPECT_EQ(count(without, "DebugPrintf") + count(without, "non_semantic") + count(without, "OpExtInst %"), 0u) << without;
}

TEST(Spirv, print_shows_texts_names_and_parts) {
  const std::string head = "lockstep.kernel 1\nstruct P {\n  at: vec2<f32> {offset = 0}\n  on: array<u32, 2> {offset = 8}\n}\n";
  const std::string body =
      "fn @main(%i: u32 {builtin = local_invocation_index}) {workgroup_size = [1, 1, 1]} {\n"
      "  %v: ptr<function, P> = var\n  %p: P = load %v\n"
      "  print %p, mat2x2<f32>(vec2<f32>(1.0f, 2.0f), vec2<f32>(3.0f, 4.0f)), %i {labels = [\"100%\", \"p\", \"m\", \"\"]}\n"
      "  print {labels = [\"end\"]}\n}\n";
  const auto words = emitSpirv(kernel::validate(kernel::parse(head + body).orThrow()).orThrow(), kAll).orThrow();
  EXPECT_EQ(validateSpirv(words), "");
  const std::string text = disassemble(words);
  EXPECT_EQ(count(text, "local (%v3u): 100%% p = {at: (%v2f), on: [%u, %u]}, m = [(%v2f), (%v2f)], %u\n\""), 1u) << text;
  EXPECT_EQ(count(text, "local (%v3u): end\n\""), 1u) << text;
}

TEST(Spirv, workgroups_with_subgroups_are_rows) {
  const auto sizeOf = [](const std::string& head, const std::string& size, const SpirvOptions& options) {
    const std::string text = "lockstep.kernel 1\n" + head + "fn @main() {workgroup_size = " + size + "} {\n}\n";
    const std::string spirv = disassemble(emitSpirv(kernel::validate(kernel::parse(text).orThrow()).orThrow(), options).orThrow());
    const size_t at = spirv.find("LocalSize ");
    return spirv.substr(at, spirv.find('\n', at) - at);
  };
  EXPECT_EQ(sizeOf("enable subgroups\n", "[8, 4, 4]", {}), "LocalSize 128 1 1");
  EXPECT_EQ(sizeOf("", "[8, 4, 4]", {}), "LocalSize 8 4 4");
  EXPECT_EQ(sizeOf("enable subgroups\n", "[8, 8, 4]", {}), "LocalSize 8 8 4") << "a device need not take a row of 256";
  EXPECT_EQ(sizeOf("enable subgroups\n", "[8, 8, 4]", {.longest_row = 256}), "LocalSize 256 1 1");
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

TEST(Spirv, immediate_data_is_a_push_constant) {
  const auto emitted = [](const std::string& type) {
    const std::string text = "lockstep.kernel 1\nvar @a: vec2<" + type + "> {space = immediate}\nvar @out: vec2<" + type +
                             "> {access = read_write, binding = 0, group = 0, space = storage}\n" +
                             "fn @main() {workgroup_size = [1, 1, 1]} {\n  %x: vec2<" + type + "> = load @a\n  store @out, %x\n}\n";
    kernel::Module module = kernel::parse(text).orThrow();
    if (type == "f16") module.capabilities.push_back(kernel::Capability::F16);
    const std::vector<uint32_t> words = emitSpirv(kernel::validate(std::move(module)).orThrow(), kAll).orThrow();
    EXPECT_EQ(validateSpirv(words), "");
    return disassemble(words);
  };
  const std::string plain = emitted("u32");
  EXPECT_EQ(count(plain, "OpVariable %_ptr_PushConstant"), 1u) << plain;
  EXPECT_EQ(count(plain, "DescriptorSet"), 1u) << plain;
  EXPECT_EQ(count(plain, "StoragePushConstant16"), 0u);
  EXPECT_EQ(count(emitted("f16"), "OpCapability StoragePushConstant16"), 1u);
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

TEST(Spirv, subgroup_capabilities_are_those_that_are_used) {
  const auto textOf = [](const std::string& operation) {
    const std::string text =
        "lockstep.kernel 1\nenable subgroups\nfn @main(%i: u32 {builtin = local_invocation_index}) "
        "{workgroup_size = [64, 1, 1]} {\n" +
        operation + "}\n";
    const std::vector<uint32_t> words = emitSpirv(kernel::validate(kernel::parse(text).orThrow()).orThrow(), kAll).orThrow();
    EXPECT_EQ(validateSpirv(words), "");
    return disassemble(words);
  };
  const std::string none = textOf("");
  EXPECT_EQ(count(none, "OpCapability GroupNonUniform"), 0u);
  const std::string sum = textOf("  %0: u32 = subgroup_add %i\n");
  EXPECT_EQ(count(sum, "OpCapability GroupNonUniform"), 2u);
  EXPECT_EQ(count(sum, "OpCapability GroupNonUniformArithmetic"), 1u);
  EXPECT_EQ(count(sum, "OpExecutionMode %main SubgroupUniformControlFlowKHR"), 1u);
  const std::string quad = textOf("  %0: u32 = quad_swap_y %i\n  %1: u32 = subgroup_shuffle_down %i, 1u\n");
  EXPECT_EQ(count(quad, "OpCapability GroupNonUniform"), 3u);
  EXPECT_EQ(count(quad, "OpCapability GroupNonUniformQuad"), 1u);
  EXPECT_EQ(count(quad, "OpCapability GroupNonUniformShuffleRelative"), 1u);
  EXPECT_EQ(count(emitText("", kAll), "SubgroupUniformControlFlowKHR"), 0u);
}

// What a shuffle gives where it reaches beyond the subgroup is chosen by an OpSelect.
TEST(Spirv, shuffles_by_a_mask_that_stays_inside_need_no_choice) {
  const auto choices = [](const std::string& attributes, const std::string& mask) {
    const std::string text =
        "lockstep.kernel 1\nenable subgroups\nfn @main(%i: u32 {builtin = local_invocation_index}) "
        "{workgroup_size = [64, 1, 1]" +
        attributes + "} {\n  %0: u32 = subgroup_shuffle_xor %i, " + mask + "\n}\n";
    return count(disassemble(emitSpirv(kernel::validate(kernel::parse(text).orThrow()).orThrow(), kAll).orThrow()), "OpSelect");
  };
  EXPECT_EQ(choices("", "1u"), 1u) << "subgroups of any size";
  EXPECT_EQ(choices(", subgroup_size = 32", "16u"), 0u);
  EXPECT_EQ(choices(", subgroup_size = 32", "32u"), 1u);
  EXPECT_EQ(choices(", subgroup_size = 32", "%i"), 1u);
}

TEST(Spirv, workgroup_memory_is_zeroed_by_an_initializer_or_a_loop) {
  std::string body = "  %x: u32 = atomic_load @counter\n";
  EXPECT_EQ(count(emitText(body, kAll), "OpControlBarrier"), 0u);
  EXPECT_EQ(count(emitText(body, {}), "OpControlBarrier"), 1u);
}

/// A loop over %k from `begin` that breaks when `test` (which defines %stop) says so and steps by `step` (which defines %next).
std::string loopOver(const std::string& begin, const std::string& test, const std::string& step, const std::string& body = "") {
  return emitText("  %k: ptr<function, u32> = var " + begin + "\n  loop {\n    %k0: u32 = load %k\n" + test +
                  "    if %stop {\n      break\n    }\n" + body + "  } continuing {\n    %k1: u32 = load %k\n" + step +
                  "    store %k, %next\n  }\n");
}

TEST(Spirv, equal_names_are_few) {
  std::string text = "lockstep.kernel 1\nvar @out: array<u32> {access = read_write, binding = 0, group = 0, space = storage}\n";
  text += "fn @f(%x: u32) -> u32 {\n  %twice: u32 = add %x, %x\n  return %twice\n}\n";
  text += "fn @main(%i: u32 {builtin = local_invocation_index}) {workgroup_size = [1, 1, 1]} {\n";
  text += "  %p: ptr<storage, u32, read_write> = access @out, %i\n";
  for (int k = 0; k < 300; ++k) text += fmt::format("  %{0}: u32 = call @f({0}u)\n  store %p, %{0}\n", k);
  const auto words = emitSpirv(kernel::validate(kernel::parse(text + "}\n").orThrow()).orThrow(), {}).orThrow();
  EXPECT_EQ(count(disassemble(words), "\"twice\""), 100u);
}

bool countsDown(const std::string& text) { return count(text, "%rounds = OpVariable") == 1; }

TEST(Loops, sure_to_end_have_no_countdown) {
  const std::string one = "    %next: u32 = add %k1, 1u\n", many = "    %next: u32 = add %k1, 16u\n";
  EXPECT_FALSE(countsDown(loopOver("0u", "    %stop: bool = ge %k0, %i\n", one)));
  EXPECT_FALSE(countsDown(loopOver("0u", "    %go: bool = lt %k0, %i\n    %stop: bool = not %go\n", one)));
  EXPECT_FALSE(countsDown(loopOver("0u", "    %stop: bool = ge %k0, 4294967280u\n", many)));
  EXPECT_FALSE(countsDown(loopOver("0u", "    %n: u32 = array_length @in\n    %stop: bool = ge %k0, %n\n", many)));
  EXPECT_FALSE(countsDown(loopOver("64u", "    %stop: bool = eq %k0, 0u\n", "    %next: u32 = shr %k1, 1u\n")));
  EXPECT_FALSE(countsDown(loopOver("64u", "    %go: bool = gt %k0, 0u\n    %stop: bool = not %go\n", "    %next: u32 = div %k1, 2u\n")));
  EXPECT_FALSE(
      countsDown(emitText("  %k: ptr<function, u32> = var\n  loop {\n  } continuing {\n    %k1: u32 = load %k\n    %next: u32 = add %k1, "
                          "1u\n    store %k, %next\n"
                          "    %end: bool = ge %next, %i\n    break_if %end\n  }\n")));
}

TEST(Loops, that_may_not_end_have_a_countdown) {
  const std::string up = "    %next: u32 = add %k1, 16u\n", ge = "    %stop: bool = ge %k0, %i\n";
  EXPECT_TRUE(countsDown(loopOver("0u", ge, "    %next: u32 = add %k1, 0u\n")));
  // Steps of 16 may pass over the last numbers that there are.
  EXPECT_TRUE(countsDown(loopOver("0u", ge, up)));
  // Away from the numbers that leave, which the counter reaches after it has wrapped.
  EXPECT_TRUE(countsDown(loopOver("9u", "    %stop: bool = gt %k0, 100u\n", "    %next: u32 = sub %k1, 2u\n")));
  EXPECT_TRUE(countsDown(loopOver("0u", "    %stop: bool = ge %k0, 4294967281u\n", up)));
  EXPECT_TRUE(countsDown(loopOver("0u", ge, "    %next: u32 = mul %k1, 2u\n")));
  EXPECT_TRUE(countsDown(loopOver("0u", "    %stop: bool = eq %k0, %i\n", up)));
  EXPECT_TRUE(countsDown(loopOver("0u", ge, up, "    store %k, 0u\n")));
  EXPECT_TRUE(countsDown(loopOver("64u", "    %stop: bool = eq %k0, 1u\n", "    %next: u32 = shr %k1, 1u\n")));
  EXPECT_TRUE(countsDown(emitText("  loop {\n    %t: bool = eq %i, 3u\n    if %t {\n      break\n    }\n  }\n")));
  // The bound moves along.
  EXPECT_TRUE(countsDown(loopOver("0u", "    %n: u32 = add %k0, 1u\n    %stop: bool = ge %k0, %n\n", up)));
}

// Drivers divide by a constant step while they compile, and some die of it.
TEST(Loops, strange_steps_are_hidden) {
  const auto hides = [](const std::string& text) { return count(text, "%num_workgroups = OpVariable") == 1; };
  const std::string ge = "    %stop: bool = ge %k0, %i\n";
  for (const char* step : {"sub %k1, 1u", "add %k1, 4294967295u", "sub %k1, 1073741824u", "add 2147483648u, %k1", "add %k1, %i"}) {
    EXPECT_TRUE(hides(loopOver("0u", ge, fmt::format("    %next: u32 = {}\n", step)))) << step;
  }
  const auto over = [&](const char* test, const char* step) {
    return loopOver("0u", fmt::format("    %stop: bool = {}\n", test), fmt::format("    %next: u32 = {}\n", step));
  };
  EXPECT_FALSE(hides(over("ge %k0, %i", "add %k1, 1u")));
  EXPECT_FALSE(hides(over("ge %k0, 100u", "add %k1, 16777216u")));
  EXPECT_FALSE(hides(over("lt %k0, 2u", "sub %k1, 2u")));
  // Only after it has wrapped, or perhaps never.
  EXPECT_TRUE(hides(over("gt %k0, 100u", "sub %k1, 2u")));
  EXPECT_TRUE(hides(over("lt %k0, 1u", "sub %k1, 2u")));
  EXPECT_TRUE(hides(over("eq %k0, %i", "add %k1, 1u")));
  EXPECT_FALSE(hides(loopOver("0u", ge, "    %next: u32 = shr %k1, 1u\n"))) << "no sum";
  // What another variable holds may be known, what a buffer holds is not.
  EXPECT_TRUE(hides(loopOver("0u", ge, "    %next: u32 = add %k1, %by\n", "    %v: ptr<function, u32> = var\n    %by: u32 = load %v\n")));
  EXPECT_FALSE(hides(loopOver("0u", ge, "    %next: u32 = add %k1, %by\n",
                              "    %p: ptr<storage, f32> = access @in, %k0\n    %x: f32 = load %p\n    %by: u32 = bitcast %x\n")));
  // Not a counter, and not in a loop.
  EXPECT_FALSE(hides(loopOver("0u", ge, "    %less: u32 = sub %k1, 1u\n    %next: u32 = add %k1, 1u\n")));
  EXPECT_FALSE(hides(emitText("  %k: ptr<function, u32> = var\n  %k0: u32 = load %k\n  %less: u32 = sub %k0, 1u\n  store %k, %less\n")));
}

}  // namespace
}  // namespace lockstep::vulkan
