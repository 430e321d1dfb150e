// SPDX-License-Identifier: Apache-2.0
// docs/ops.md is made from the table of ops.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>

#include "ir/graph/op_def.h"
#include "tests/generated_text.h"

namespace lockstep::graph::testing {
namespace {

std::string_view loweringName(const Lowering& lowering) {
  static constexpr auto kNames = std::to_array<std::string_view>(
      {"element", "view", "reduce", "scan", "scatter", "contract", "template", "decompose", "storage", "kernel", "loop", "region"});
  static_assert(kNames.size() == std::variant_size_v<Lowering>);
  return kNames[lowering.index()];
}

std::string_view attributeKindName(AttributeKind kind) {
  static constexpr std::array<std::string_view, 8> kNames{"integer", "float", "bool", "string", "integers", "dtype", "constant", "graph"};
  return kNames[static_cast<size_t>(kind)];
}

std::string gradientText(const GradientFacet& gradient) {
  const auto* none = std::get_if<NotDifferentiable>(&gradient);
  return none == nullptr ? "yes" : fmt::format("no: {}", none->reason);
}

std::string overviewRow(const OpDef& op) {
  static constexpr auto kAlias = std::to_array<std::string_view>({"no", "view", "update", "parts"});
  static_assert(kAlias.size() == std::variant_size_v<AliasFacet>);
  size_t cases = (*op.cases)().size();
  return fmt::format("| [`{0}`](#{0}) | {1} | {2} | {3} | {4} | {5} | {6} |\n", *op.name, *op.summary, loweringName(*op.lower),
                     gradientText(*op.gradient), kAlias[op.alias->index()], op.constraints->size(),
                     cases == 0 ? "programs" : std::to_string(cases));
}

std::string signature(const OpDef& op) {
  std::string operands, attributes;
  for (std::string_view operand : *op.operands) operands += fmt::format("{}%{}", operands.empty() ? " " : ", ", operand);
  for (const AttributeDef& attribute : *op.attributes) {
    attributes += fmt::format("{}{} = {}", attributes.empty() ? "" : ", ", attribute.name, attributeKindName(attribute.kind));
  }
  return fmt::format("{}{}{}", *op.name, operands, attributes.empty() ? "" : " {" + attributes + "}");
}

std::string section(const OpDef& op) {
  std::string text = fmt::format("\n### {}\n`{}`\n", *op.name, signature(op));
  if (!op.attributes->empty() || !op.constraints->empty()) text += "\n";
  for (const AttributeDef& attribute : *op.attributes) text += fmt::format("- `{}`: {}\n", attribute.name, attribute.text);
  for (const Constraint& constraint : *op.constraints) text += fmt::format("- {}: {}\n", constraint.label, constraint.text);
  return text;
}

TEST(OpsDocument, tables_golden) {
  std::string text = "| op | what it does | lowering | gradient | in place | constraints | cases |\n|---|---|---|---|---|---|---|\n";
  for (const OpDef* op : allOps()) text += overviewRow(*op);
  text += "\n## Operands, attributes and constraints\n";
  for (const OpDef* op : allOps()) text += section(*op);
  ::lockstep::testing::expectGeneratedText(std::filesystem::path(LOCKSTEP_SOURCE_DIR) / "docs/ops.md", text);
}

}  // namespace
}  // namespace lockstep::graph::testing
