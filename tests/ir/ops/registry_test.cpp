// SPDX-License-Identifier: Apache-2.0
// The table of ops itself: every op says everything that docs, texts and tests take from it.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cctype>
#include <filesystem>
#include <set>

#include "tests/ir/ops/op_case.h"

namespace lockstep::graph::testing {
namespace {

AttributeKind kindOf(const Attribute& attribute) {
  return std::array{AttributeKind::Integer,  AttributeKind::Float, AttributeKind::Boolean,  AttributeKind::String,
                    AttributeKind::Integers, AttributeKind::DType, AttributeKind::Constant, AttributeKind::Graph}[attribute.index()];
}

TEST(Registry, Names_AreUniqueAndAreFiles) {
  std::set<std::string_view> names;
  for (const OpDef* op : allOps()) {
    EXPECT_TRUE(names.insert(*op->name).second) << *op->name;
    for (char c : *op->name)
      EXPECT_TRUE(std::islower(static_cast<unsigned char>(c)) != 0 || std::isdigit(static_cast<unsigned char>(c)) != 0 || c == '_')
          << *op->name;
    size_t files = 0;
    for (const auto& family : std::filesystem::directory_iterator(LOCKSTEP_SOURCE_DIR "/ir/ops")) {
      if (family.is_directory()) files += std::filesystem::exists(family.path() / fmt::format("{}.cpp", *op->name)) ? 1 : 0;
    }
    EXPECT_EQ(files, 1u) << *op->name;
    EXPECT_EQ(findOp(*op->name), op);
  }
  EXPECT_EQ(findOp("no_such_op"), nullptr);
  EXPECT_THROW(op("no_such_op"), InternalError);
}

TEST(Registry, Leaves_HaveAKind) {
  for (const OpDef* op : allOps()) {
    const bool is_stored = std::holds_alternative<StorageLowering>(*op->lower) && op->operands->empty();
    const bool is_stated = op->leaf != LeafKind::None;
    EXPECT_EQ(is_stated, is_stored || *op->name == "constant") << *op->name;
  }
}

TEST(Registry, Summaries_AreOneSentence) {
  for (const OpDef* op : allOps()) {
    ASSERT_FALSE(op->summary->empty()) << *op->name;
    EXPECT_EQ(op->summary->back(), '.') << *op->name;
    EXPECT_EQ(op->summary->find(". "), std::string_view::npos) << *op->name;
  }
}

TEST(Registry, Constraints_AreNumberedFromOneAndHaveTexts) {
  for (const OpDef* op : allOps()) {
    size_t number = 0;
    for (const Constraint& constraint : *op->constraints) {
      EXPECT_EQ(constraint.label, fmt::format("C{}", ++number)) << *op->name;
      EXPECT_FALSE(constraint.text.empty()) << *op->name;
    }
  }
}

TEST(Registry, OperandsAndAttributes_AreNamedOnceAndExplained) {
  for (const OpDef* op : allOps()) {
    std::set<std::string_view> names;
    for (std::string_view operand : *op->operands) EXPECT_TRUE(names.insert(operand).second) << *op->name;
    for (const AttributeDef& attribute : *op->attributes) {
      EXPECT_TRUE(names.insert(attribute.name).second) << *op->name;
      EXPECT_FALSE(attribute.text.empty()) << *op->name << "." << attribute.name;
    }
  }
}

TEST(Registry, OpsWithOperands_HaveCases) {
  for (const OpDef* op : allOps()) {
    // A custom gradient is what its user says, so it agrees with no difference: tests/frontend/gradient_test.cpp.
    bool exempt = op->operands->empty() || *op->name == "group" || *op->name == "custom_gradient" || *op->name == "kernel" ||
                  *op->name == "update_rows";  // of states alone: tests/differential/cache_test.cpp
    if (!exempt) {
      EXPECT_GE((*op->cases)().size(), 2U) << *op->name;
    }
  }
}

TEST(Registry, Cases_FitTheirOp) {
  for (const OpDef* op : allOps()) {
    std::set<std::string_view> names;
    for (const OpCase& op_case : (*op->cases)()) {
      EXPECT_TRUE(names.insert(op_case.name).second) << *op->name << "." << op_case.name;
      EXPECT_FALSE(op_case.reason.empty()) << *op->name << "." << op_case.name;
      bool variadic = !op->operands->empty() && op->operands->back().ends_with("...");
      if (!variadic) {
        EXPECT_EQ(op_case.operands.size(), op->operands->size()) << *op->name << "." << op_case.name;
      }
      size_t known = 0;
      for (const AttributeDef& attribute : *op->attributes) {
        const Attribute* value = op_case.attributes.find(attribute.name);
        if (value == nullptr && !attribute.required) continue;
        ASSERT_NE(value, nullptr) << *op->name << "." << op_case.name << "." << attribute.name;
        EXPECT_EQ(kindOf(*value), attribute.kind) << *op->name << "." << op_case.name << "." << attribute.name;
        ++known;
      }
      EXPECT_EQ(op_case.attributes.items().size(), known) << *op->name << "." << op_case.name;
    }
  }
}

TEST(Registry, OpsWithoutGradient_SayWhy) {
  for (const OpDef* op : allOps()) {
    if (const auto* none = std::get_if<NotDifferentiable>(&*op->gradient)) {
      EXPECT_FALSE(none->reason.empty()) << *op->name;
    }
  }
}

}  // namespace
}  // namespace lockstep::graph::testing
