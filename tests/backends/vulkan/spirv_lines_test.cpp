// SPDX-License-Identifier: Apache-2.0
// With SpirvOptions::source_lines every instruction of the SPIR-V says which line of the WGSL it is from, and the text itself is in it.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <map>

#include "backends/vulkan/spirv.h"
#include "frontend/wgsl/wgsl.h"
#include "tests/ir/kernel/samples.h"

namespace lockstep::vulkan {
namespace {

// Of the SPIR-V specification.
constexpr uint32_t kSource = 3, kSourceContinued = 2, kString = 7, kLine = 8, kLabel = 248, kNoLine = 317;
constexpr uint32_t kStore = 62, kFMul = 133, kFunctionEnd = 56;
constexpr SpirvOptions kLines{.source_lines = true};

std::vector<uint32_t> emit(const std::string& source, const SpirvOptions& options = kLines) {
  kernel::Module module = wgsl::read(source, {.file_name = "k.wgsl", .overrides = {}}).orThrow();
  module.source = source;
  std::vector<uint32_t> words = emitSpirv(kernel::validate(std::move(module)).orThrow(), options).orThrow();
  EXPECT_EQ(validateSpirv(words), "") << disassemble(words);
  return words;
}

std::string textAt(const std::vector<uint32_t>& words, size_t begin, size_t end) {
  std::string text(reinterpret_cast<const char*>(words.data() + begin), (end - begin) * 4);
  return text.substr(0, text.find('\0'));
}

/// "k.wgsl:5" for each instruction with this opcode, in order; "" where no line holds.
std::vector<std::string> linesOf(const std::vector<uint32_t>& words, uint32_t opcode) {
  std::map<uint32_t, std::string> files;
  std::string here;
  std::vector<std::string> found;
  for (size_t at = 5; at < words.size(); at += words[at] >> 16) {
    const uint32_t op = words[at] & 0xFFFF;
    if (op == kString) files[words[at + 1]] = textAt(words, at + 2, at + (words[at] >> 16));
    if (op == kLine) here = fmt::format("{}:{}", files.at(words[at + 1]), words[at + 2]);
    if (op == kNoLine || op == kLabel || op == kFunctionEnd) here.clear();
    if (op == opcode) found.push_back(here);
  }
  return found;
}

std::string sourceOf(const std::vector<uint32_t>& words) {
  std::string text;
  for (size_t at = 5; at < words.size(); at += words[at] >> 16) {
    const uint32_t op = words[at] & 0xFFFF;
    if (op == kSource && (words[at] >> 16) > 4) text += textAt(words, at + 4, at + (words[at] >> 16));
    if (op == kSourceContinued) text += textAt(words, at + 1, at + (words[at] >> 16));
  }
  return text;
}

const std::string kScale =
    "@group(0) @binding(0) var<storage, read_write> y: array<f32>;\n"  // 1
    "fn twice(x: f32) -> f32 {\n"                                      // 2
    "  return x * 2.0;\n"                                              // 3
    "}\n"                                                              // 4
    "@compute @workgroup_size(4)\n"                                    // 5
    "fn main(@builtin(global_invocation_id) id: vec3u) {\n"            // 6
    "  if id.x > 2u {\n"                                               // 7
    "    y[id.x] = twice(y[id.x]);\n"                                  // 8
    "  } else {\n"                                                     // 9
    "    y[id.x] = 1.0;\n"                                             // 10
    "  }\n"                                                            // 11
    "  for (var k = 0u; k < id.x; k++) {\n"                            // 12
    "    y[k] =\n"                                                     // 13
    "      y[k] * 3.0;\n"                                              // 14
    "  }\n"                                                            // 15
    "}\n";

TEST(SpirvLines, stores_and_products_have_the_line_of_the_text) {
  const std::vector<uint32_t> words = emit(kScale);
  EXPECT_EQ(fmt::format("{}", fmt::join(linesOf(words, kStore), " ")), "k.wgsl:8 k.wgsl:10 k.wgsl:12 k.wgsl:13 k.wgsl:12")
      << disassemble(words);
  EXPECT_EQ(fmt::format("{}", fmt::join(linesOf(words, kFMul), " ")), "k.wgsl:3 k.wgsl:14");
  EXPECT_EQ(sourceOf(words), kScale);
}

TEST(SpirvLines, come_on_request_only) {
  const std::vector<uint32_t> plain = emit(kScale, {}), lined = emit(kScale);
  EXPECT_EQ(linesOf(plain, kLine).size() + linesOf(plain, kNoLine).size() + linesOf(plain, kString).size(), 0u);
  EXPECT_EQ(sourceOf(plain), "");
  // The lines are all that is new.
  std::vector<uint32_t> without(lined.begin(), lined.begin() + 5);
  for (size_t at = 5; at < lined.size(); at += lined[at] >> 16) {
    const uint32_t op = lined[at] & 0xFFFF;
    const bool debug = op == kSource || op == kString || op == kLine || op == kNoLine;
    if (!debug) without.insert(without.end(), lined.begin() + at, lined.begin() + at + (lined[at] >> 16));
  }
  EXPECT_EQ(without.size(), plain.size());
}

TEST(SpirvLines, hold_in_the_blocks_that_one_instruction_makes) {
  // A large array is zeroed by a loop of our own, and a loop that may not end has a countdown.
  const std::vector<uint32_t> words = emit(
      "@group(0) @binding(0) var<storage, read_write> y: array<f32>;\n"
      "@compute @workgroup_size(1) fn main(@builtin(global_invocation_id) id: vec3u) {\n"
      "  var a: array<f32, 4000>;\n"
      "  loop {\n"
      "    if y[a_index(id.x)] > 1.0 { break; }\n"
      "    y[1] = a[id.x];\n"
      "  }\n"
      "}\n"
      "fn a_index(x: u32) -> u32 { return x + 1u; }\n");
  const std::vector<std::string> stores = linesOf(words, kStore);
  EXPECT_FALSE(stores.empty());
  for (const std::string& line : stores) EXPECT_NE(line, "") << disassemble(words);
}

TEST(SpirvLines, long_texts_and_foreign_letters_stay) {
  std::string source = kScale;
  while (source.size() < 600'000) source += "// größer als ein Wort → 😀\n";
  const std::vector<uint32_t> words = emit(source);
  EXPECT_EQ(sourceOf(words), source);
}

TEST(SpirvLines, instructions_without_a_place_have_none) {
  const std::string text =
      "lockstep.kernel 1\nvar @out: array<u32> {access = read_write, binding = 0, group = 0, space = storage}\n"
      "fn @main(%i: u32 {builtin = local_invocation_index}) {workgroup_size = [1, 1, 1]} {\n"
      "  %p: ptr<storage, u32, read_write> = access @out, %i\n"
      "  store %p, 1u {location = [\"ä.wgsl\", 7, 3]}\n"
      "  store %p, 2u\n}\n";
  const auto words = emitSpirv(kernel::validate(kernel::parse(text).orThrow()).orThrow(), kLines).orThrow();
  EXPECT_EQ(validateSpirv(words), "");
  EXPECT_EQ(linesOf(words, kStore), (std::vector<std::string>{"ä.wgsl:7", ""})) << disassemble(words);
}

class EveryOpWithLines : public ::testing::TestWithParam<size_t> {};

TEST_P(EveryOpWithLines, spirv_is_valid) {
  std::optional<kernel::Module> module = kernel::testing::moduleUsing(static_cast<kernel::Op>(GetParam()));
  ASSERT_TRUE(module);
  for (uint32_t i = 0; i < module->instructions.size(); ++i) {
    module->locations.push_back({.file = "k.wgsl", .line = i + 1, .column = 1});
    module->instructions[i].location = static_cast<uint32_t>(module->locations.size());
  }
  // The validator does not know matrices, and where their elements are only a device tells (spirv_test.cpp).
  if (kernel::info(static_cast<kernel::Op>(GetParam())).group == kernel::OpGroup::SubgroupMatrix) GTEST_SKIP();
  const auto words = emitSpirv(kernel::validate(std::move(*module)).orThrow(), kLines).orThrow();
  EXPECT_EQ(validateSpirv(words), "") << disassemble(words);
}

INSTANTIATE_TEST_SUITE_P(SpirvLines, EveryOpWithLines, ::testing::Range(size_t{0}, kernel::kOpCount),
                         [](const auto& info) { return std::string(kernel::info(static_cast<kernel::Op>(info.param)).text); });

}  // namespace
}  // namespace lockstep::vulkan
