// SPDX-License-Identifier: Apache-2.0
// docs/ir.md: its examples are valid and print as they stand there, they show every kind of statement, and its tables are made here.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <array>
#include <map>
#include <set>

#include "ir/graph/op_def.h"
#include "ir/program/profile.h"
#include "ir/program/program.h"
#include "tests/docs/page.h"
#include "tests/generated_text.h"

namespace lockstep {
namespace {

using testing::blocksOf;
using testing::readPage;

constexpr const char* kPage = LOCKSTEP_SOURCE_DIR "/docs/ir.md";

/// The examples of a form, by their first line.
std::vector<std::string> examples(std::string_view form) {
  std::vector<std::string> found;
  for (std::string& block : blocksOf(readPage("ir.md"), "")) {
    if (block.starts_with(form)) found.push_back(std::move(block));
  }
  EXPECT_FALSE(found.empty()) << form;
  return found;
}

TEST(IrPage, graphs_read_back_and_show_everything) {
  std::set<graph::OutputKind> outputs;
  bool location = false, region = false, symbol = false, constant = false;
  for (const std::string& text : examples("lockstep.graph 1\n")) {
    const graph::Graph graph = graph::parse(text).orThrow();
    const Status valid = graph::validate(graph);
    EXPECT_TRUE(valid.ok()) << toString(valid.diagnostics());
    EXPECT_EQ(graph::print(graph, true), text);
    for (const graph::Output& output : graph.outputs) outputs.insert(output.kind);
    location = location || text.find(" @ \"") != std::string::npos;
    region = region || text.find("yield") != std::string::npos;
    symbol = symbol || !graph.symbols.empty();
    constant = constant || !graph.constants.empty();
  }
  EXPECT_EQ(outputs.size(), 6u);
  EXPECT_TRUE(location && region && symbol && constant);
}

TEST(IrPage, programs_read_back_and_show_everything) {
  std::set<size_t> actions, codes;
  std::set<program::ArenaRole> roles;
  for (const std::string& text : examples("lockstep.program 1\n")) {
    const program::Program program = program::parse(text).orThrow();
    const Status valid = program::validateStructure(program);
    EXPECT_TRUE(valid.ok()) << toString(valid.diagnostics());
    EXPECT_EQ(program::print(program), text);
    for (const program::Command& command : program.commands) actions.insert(command.action.index());
    for (const program::Kernel& kernel : program.kernels) codes.insert(kernel.code.index());
    for (const program::Arena& arena : program.arenas) roles.insert(arena.role);
    if (program.arenas.empty()) continue;  // not planned yet
    const auto complete = program::validate(program);
    EXPECT_TRUE(complete.ok()) << toString(complete.diagnostics());
  }
  EXPECT_EQ(actions.size(), std::variant_size_v<decltype(program::Command::action)>);
  EXPECT_EQ(codes.size(), std::variant_size_v<decltype(program::Kernel::code)>);
  EXPECT_EQ(roles.size(), 5u);
}

TEST(IrPage, kernels_read_back_and_show_everything) {
  std::set<kernel::Op> used;
  for (const std::string& text : examples("lockstep.kernel 1\n")) {
    kernel::Module module = kernel::parse(text).orThrow();
    EXPECT_EQ(kernel::print(module, true), text);
    for (const kernel::Instruction& instruction : module.instructions) used.insert(instruction.op);
    const auto valid = kernel::validate(std::move(module));
    EXPECT_TRUE(valid.ok()) << toString(valid.diagnostics());
  }
  for (size_t i = 0; i < kernel::kOpCount; ++i) {
    const auto op = static_cast<kernel::Op>(i);
    const kernel::OpGroup group = kernel::info(op).group;
    const bool statement = group == kernel::OpGroup::Composite || group == kernel::OpGroup::Memory || group == kernel::OpGroup::Control ||
                           group == kernel::OpGroup::Call;
    EXPECT_TRUE(!statement || used.contains(op)) << "no example has '" << kernel::info(op).text << "'";
  }
}

TEST(IrPage, profile_reads_back) {
  const std::string text = examples("lockstep.profile 1\n").front();
  EXPECT_EQ(program::print(program::parseProfile(text).orThrow()), text);
}

TEST(IrPage, dtypes_golden) {
  static constexpr std::array<std::string_view, graph::kDTypes.size()> kHolds{"IEEE 754 single precision",
                                                                              "32 bits, two's complement; arithmetic wraps",
                                                                              "32 bits; arithmetic wraps",
                                                                              "a u32 of 0 or 1",
                                                                              "in memory only: IEEE 754 half precision, two per word",
                                                                              "in memory only: the high half of an f32, two per word",
                                                                              "in memory only: 8 bits, two's complement, four per word",
                                                                              "in memory only: 8 bits, four per word",
                                                                              "in memory only: 16 bits, two per word"};
  std::string text = "| dtype | element |\n|---|---|\n";
  for (size_t i = 0; i < kHolds.size(); ++i) {
    const auto dtype = static_cast<graph::DType>(i);
    ASSERT_EQ(graph::findDType(graph::toString(dtype)), dtype);
    ASSERT_EQ(graph::isPacked(dtype), kHolds[i].starts_with("in memory only"));
    text += fmt::format("| `{}` | {} |\n", graph::toString(dtype), kHolds[i]);
  }
  testing::expectGeneratedText(kPage, text, "dtypes");
}

TEST(IrPage, outputs_golden) {
  // A row for each kind; the switch of graph::toString() ends after the last one.
  static constexpr std::array<std::string_view, 7> kMeans{"the scalar that is minimised; one at most",
                                                          "a value that a forward program returns",
                                                          "a value that the user asked to see",
                                                          "a value that is printed when a step has ended",
                                                          "whether an index was outside of its range",
                                                          "the gradient by a leaf, named like it",
                                                          "the next version of a state"};
  std::string text = "| output | is |\n|---|---|\n";
  for (size_t i = 0; i < kMeans.size(); ++i) {
    text += fmt::format("| `{}` | {} |\n", graph::toString(static_cast<graph::OutputKind>(i)), kMeans[i]);
  }
  testing::expectGeneratedText(kPage, text, "outputs");
}

TEST(IrPage, lowerings_golden) {
  static constexpr auto kKinds = std::to_array<std::string_view>(
      {"element", "view", "reduce", "scan", "scatter", "contract", "template", "decompose", "storage", "kernel", "loop", "region"});
  static_assert(kKinds.size() == std::variant_size_v<graph::Lowering>);
  std::array<std::vector<std::string>, kKinds.size()> ops;
  for (const graph::OpDef* op : graph::allOps()) ops[op->lower->index()].push_back(fmt::format("`{}`", *op->name));
  std::string text = "| kind | ops |\n|---|---|\n";
  for (size_t i = 0; i < kKinds.size(); ++i) text += fmt::format("| {} | {} |\n", kKinds[i], fmt::join(ops[i], ", "));
  testing::expectGeneratedText(kPage, text, "lowerings");
}

TEST(IrPage, profiles_golden) {
  std::string text;
  for (const program::DeviceProfile& profile : program::namedProfiles()) {
    text += fmt::format("{}`{}`", text.empty() ? "" : ", ", profile.name);
  }
  text += ". The first one is:\n\n```\n" + program::print(program::namedProfiles().front()) + "```\n";
  testing::expectGeneratedText(kPage, text, "profiles");
}

TEST(IrPage, spaces_golden) {
  static constexpr std::array<std::string_view, 6> kHolds{
      "`var` of a function; one for each time that it is reached",
      "one for each invocation",
      "one for each workgroup",
      "what the host wrote, read only",
      "buffers",
      "what a dispatch carries itself, read only; one variable of an entry point, without arrays"};
  std::string text = "| space | holds | access where none is stated |\n|---|---|---|\n";
  for (size_t i = 0; i < kHolds.size(); ++i) {
    const auto space = static_cast<kernel::AddressSpace>(i);
    ASSERT_EQ(kernel::findAddressSpace(kernel::toString(space)), space);
    text += fmt::format("| `{}` | {} | `{}` |\n", kernel::toString(space), kHolds[i], kernel::toString(kernel::defaultAccess(space)));
  }
  testing::expectGeneratedText(kPage, text, "spaces");
}

TEST(IrPage, operations_golden) {
  static constexpr std::array<std::string_view, 11> kGroups{"arithmetic", "math",     "composite",       "memory",  "atomic", "barrier",
                                                            "debug",      "subgroup", "subgroup matrix", "control", "call"};
  static constexpr std::array<std::string_view, 12> kRules{"stated",       "operand, float", "operand, number", "operand, integer",
                                                           "operand, any", "bool",           "first operand",   "operand, bool",
                                                           "scalar",       "values",         "value of a lane", "none"};
  using Key = std::tuple<kernel::OpGroup, kernel::TypeRule, int>;
  std::map<Key, std::vector<std::string>> rows;
  for (size_t i = 0; i < kernel::kOpCount; ++i) {
    const kernel::OpInfo& info = kernel::info(static_cast<kernel::Op>(i));
    rows[{info.group, info.rule, info.operands}].push_back(fmt::format("`{}`", info.text));
  }
  std::string text = "| group | operands | result | operations |\n|---|---|---|---|\n";
  for (const auto& [key, names] : rows) {
    const auto& [group, rule, operands] = key;
    text += fmt::format("| {} | {} | {} | {} |\n", kGroups[static_cast<size_t>(group)], operands < 0 ? "any" : std::to_string(operands),
                        kRules[static_cast<size_t>(rule)], fmt::join(names, ", "));
  }
  testing::expectGeneratedText(kPage, text, "operations");
}

}  // namespace
}  // namespace lockstep
