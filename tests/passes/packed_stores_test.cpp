// SPDX-License-Identifier: Apache-2.0
// Who stores packed results: how many dispatches a product or a row kernel takes whose result is rounded.
#include <gtest/gtest.h>

#include <algorithm>

#include "frontend/train/templates.h"
#include "ir/graph/builder.h"
#include "ir/program/profile.h"
#include "passes/pipeline.h"

namespace lockstep::passes {
namespace {

using graph::DType;
using graph::ValueId;

class Leaves : public graph::Builder {
 public:
  ValueId input(const std::string& name, DType dtype, std::vector<int64_t> shape) {
    return make("input", {}, {{"name", name}, {"dtype", dtype}, {"shape", std::move(shape)}});
  }
  ValueId cast(ValueId value, DType dtype) { return make("cast", {value}, {{"dtype", dtype}}); }
};

size_t dispatchesOf(Leaves& leaves, ValueId result, std::string_view profile) {
  leaves.output(graph::OutputKind::Result, "y", result);
  CompileOptions options;
  options.profile = program::findProfile(profile).orThrow();
  options.templates = detail::templateSource();
  const program::Program program = compile(leaves.take(), options).orThrow().program;
  return static_cast<size_t>(std::ranges::count_if(
      program.commands, [](const program::Command& command) { return std::holds_alternative<program::Dispatch>(command.action); }));
}

size_t dispatchesOfProduct(int64_t columns, DType dtype, std::string_view profile) {
  Leaves b;
  const ValueId left = b.cast(b.input("a", DType::BF16, {33, 40}), DType::F32), right = b.input("b", DType::F32, {40, columns});
  return dispatchesOf(b, b.cast(b.make("relu", {b.make("matmul", {left, right})}), dtype), profile);
}

size_t dispatchesOfRows(int64_t columns, DType dtype, std::string_view profile) {
  Leaves b;
  return dispatchesOf(b, b.cast(b.make("softmax", {b.input("x", DType::F32, {9, columns})}), dtype), profile);
}

TEST(PackedStores, products_of_an_even_number_of_columns_store_words) {
  for (const std::string_view profile : {"portable", "cpu"}) {
    for (const DType dtype : {DType::BF16, DType::F16}) {
      EXPECT_EQ(dispatchesOfProduct(66, dtype, profile), 1u) << profile;
      EXPECT_EQ(dispatchesOfProduct(65, dtype, profile), 2u) << profile << ": words cross the ends of rows";
      EXPECT_EQ(dispatchesOfProduct(2, dtype, profile), 1u) << profile;
    }
    EXPECT_EQ(dispatchesOfProduct(64, DType::I8, profile), 2u) << profile << ": an invocation has pairs, not four neighbours";
  }
}

TEST(PackedStores, rows_of_whole_words_store_them) {
  for (const std::string_view profile : {"portable", "cpu"}) {
    EXPECT_EQ(dispatchesOfRows(34, DType::BF16, profile), 1u) << profile;
    EXPECT_EQ(dispatchesOfRows(33, DType::BF16, profile), 2u) << profile;
    EXPECT_EQ(dispatchesOfRows(36, DType::U8, profile), 1u) << profile;
    EXPECT_EQ(dispatchesOfRows(34, DType::U8, profile), 2u) << profile;
  }
}

}  // namespace
}  // namespace lockstep::passes
