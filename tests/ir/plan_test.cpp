// SPDX-License-Identifier: Apache-2.0
// Plans of kernels: each number is part of the text, and a text that makes no kernel is refused.
#include "ir/program/plan.h"

#include <gtest/gtest.h>

#include "ir/program/program.h"

namespace lockstep::program {
namespace {

Result<Plan> parsed(const std::string& text) {
  Result<TokenCursor> cursor = TokenCursor::create(text, "plan");
  if (!cursor) return cursor.failure();
  return parsePlan(*cursor);
}

std::vector<Plan> plans() {
  return {
      MapPlan{.lanes = 64},
      StripsPlan{.lanes = 256, .per_lane = 4},
      VectorPlan{.lanes = 64, .width = 4},
      RowsPlan{.lanes = 4, .rows_per_group = 16},
      HeldRowsPlan{.lanes = 32, .rows_per_group = 2, .width = 4, .per_lane = 3, .subgroup = 8, .rows_per_lane = 2},
      ColumnsPlan{.width = 3, .lanes = 2, .unroll = 8, .vector = 4},
      ScanPlan{.lanes = 64, .lanes_per_line = 16},
      ScatterPlan{.lanes = 64, .columns = 8, .parts = 2, .unroll = 4},
      NaiveContractPlan{.lanes = 64, .unroll = 2},
      TemplatePlan{.name = "a \"name\"", .overrides = {{"tile_m", 16}, {"slices", 1}}, .unrolled_stores = 8},
      StreamPlan{.lanes = 64, .block = 3, .vector = 4},
      TiledPlan{.lanes = 128, .across = 4, .thread_rows = 2, .shares = 4, .tile = 16, .block = 8, .vector = 4, .subgroup = 32},
      SplitPlan{.lanes = 64, .across = 8, .block = 2, .vector = 4, .subgroup = 16},
      DigitsPlan{.lanes = 32, .lane_pieces = 2, .rounds = 3, .sub_rows = 4, .subgroups = 8, .turns = 7, .vector = 4},
      MatrixPlan{.brain = 2, .lanes = 32, .parts = 2, .sub_rows = 16, .subgroups = 4, .tile = 32, .unit = 16, .unit_m = 16, .vector = 4},
      WholePlan{.lanes = 64, .vector = 4},
      RowChainPlan{.lanes = 256, .rows_per_group = 8, .subgroup = 32, .tile_k = 64, .tile_n = 32}};
}

TEST(Plan, texts_read_back_to_equal_plans) {
  EXPECT_EQ(plans().size(), std::variant_size_v<Plan>);
  for (size_t i = 0; i < plans().size(); ++i) {
    EXPECT_EQ(plans()[i].index(), i);
    EXPECT_EQ(parsed(print(plans()[i])).orThrow(), plans()[i]) << print(plans()[i]);
  }
}

// Kernels are found equal by these texts.
TEST(Plan, every_number_is_in_the_text) {
  for (Plan plan : plans()) {
    const std::string before = print(plan);
    std::visit(
        [&](auto& kind) {
          if constexpr (requires { kind.overrides; }) {
            ++kind.overrides.begin()->second;
            EXPECT_NE(print(Plan(kind)), before);
            --kind.overrides.begin()->second;
            ++kind.unrolled_stores;
            EXPECT_NE(print(Plan(kind)), before);
          } else {
            size_t numbers = 0;
            std::remove_reference_t<decltype(kind)>::each(kind, [&](std::string_view name, int64_t& number, PlanNumber) {
              ++numbers;
              ++number;
              EXPECT_NE(print(Plan(kind)), before) << name;
              --number;
            });
            EXPECT_EQ(numbers * sizeof(int64_t), sizeof kind) << "each() leaves out a member of " << nameOf(plan);
          }
        },
        plan);
  }
}

TEST(Plan, wrong_texts_are_refused) {
  for (const char* text : {"columsn {lanes = 1, width = 32}",
                           "map {}",
                           "map {lanes = 0}",
                           "map {lanes = -1}",
                           "map {lanes = 64, lanes = 64}",
                           "map {lanes = 64, width = 1}",
                           "map {lanes = 1048577}",
                           "map {lanes = 64",
                           "rows {lanes = 3, rows_per_group = 1}",
                           "columns {lanes = 1, unroll = 0, width = 1}",
                           "scan {lanes = 24, lanes_per_line = 16}",
                           "scatter {columns = 8, lanes = 64, parts = 16}",
                           "scatter {columns = 1, lanes = 1, parts = 1}",
                           "digits {lane_pieces = 2, lanes = 32, rounds = 17, sub_rows = 2, subgroups = 8, turns = 1}",
                           "template {lanes = 64}",
                           "matrix {lanes = 32, sub_rows = 8, subgroups = 4, tile = 32, unit = 16, unit_m = 16}",
                           "matrix {lanes = 32, parts = 3, sub_rows = 16, subgroups = 4, tile = 32, unit = 16, unit_m = 16}",
                           "tiled {across = 1, block = 3, lanes = 64, thread_rows = 1, tile = 16}",
                           "tiled {across = 1, block = 1, lanes = 64, shares = 3, thread_rows = 1, tile = 64}",
                           "tiled {across = 1, block = 1, lanes = 64, shares = 2, thread_rows = 1, tile = 16}",
                           "tiled {across = 2, block = 1, lanes = 64, shares = 4, subgroup = 32, thread_rows = 1, tile = 64}",
                           "row_chain {lanes = 8, rows_per_group = 16, tile_k = 16, tile_n = 8}",
                           "row_chain {lanes = 8, rows_per_group = 2, tile_k = 16, tile_n = 16}",
                           "row_chain {lanes = 8, rows_per_group = 2, tile_k = 6, tile_n = 8}",
                           "row_chain {lanes = 8, rows_per_group = 2, subgroup = 32, tile_k = 16, tile_n = 8}"}) {
    const Result<Plan> plan = parsed(text);
    ASSERT_FALSE(plan.ok()) << text;
    const std::string& code = plan.failure().diagnostics.front().code;
    EXPECT_TRUE(code == "program.plan" || code == "text.syntax") << text << ": " << code;
  }
}

struct BodyCase {
  const char* name;
  const char* plan;
  const char* body;
  bool fits;
};
void PrintTo(const BodyCase& one, std::ostream* out) { *out << one.name; }

class PlanOfBody : public ::testing::TestWithParam<BodyCase> {};

TEST_P(PlanOfBody, is_checked) {
  const std::string text = std::string("lockstep.program 1\nprofile portable\nkernel @k symbolic ") + GetParam().plan +
                           " {\n  lockstep.graph 1\n  graph {\n    %a: f32[4,4] = input {dtype = f32, name = \"a\", shape = [4, 4]}\n" +
                           GetParam().body + "    output result \"r\" %r\n  }\n}\nend\n";
  const Status status = validateStructure(parse(text).orThrow());
  EXPECT_EQ(status.ok(), GetParam().fits) << (status.ok() ? "" : toString(status.diagnostics()));
  if (!status.ok()) {
    EXPECT_EQ(status.diagnostics().front().code, "program.plan");
  }
}

constexpr const char
    *kExp = "    %r: f32[4,4] = exp %a\n",
    *kSum = "    %r: f32[4] = sum %a {axes = [1], keep_dims = false}\n", *kProduct = "    %r: f32[4,4] = matmul %a, %a\n",
    *kSoftmax = "    %r: f32[4,4] = softmax %a\n",
    *kTwoSums = "    %s: f32[4] = sum %a {axes = [1], keep_dims = false}\n    %r: f32[] = sum %s {axes = [0], keep_dims = false}\n",
    *kTwoProducts = "    %p: f32[4,4] = matmul %a, %a\n    %r: f32[4,4] = matmul %p, %a\n";
INSTANTIATE_TEST_SUITE_P(
    All, PlanOfBody,
    ::testing::Values(BodyCase{"map", "map {lanes = 64}", kExp, true}, BodyCase{"map_of_a_sum", "map {lanes = 64}", kSum, false},
                      BodyCase{"rows", "rows {lanes = 1, rows_per_group = 1}", kSum, true},
                      BodyCase{"rows_without_a_sum", "rows {lanes = 1, rows_per_group = 1}", kExp, false},
                      BodyCase{"rows_of_two_sizes", "rows {lanes = 1, rows_per_group = 1}", kTwoSums, false},
                      BodyCase{"columns_of_a_product", "columns {lanes = 1, width = 1}", kProduct, false},
                      BodyCase{"scan_without_a_scan", "scan {lanes = 64, lanes_per_line = 1}", kExp, false},
                      BodyCase{"scatter_without_a_scatter", "scatter {columns = 1, lanes = 64, parts = 1}", kExp, false},
                      BodyCase{"product", "naive_contract {lanes = 64}", kProduct, true},
                      BodyCase{"two_products", "naive_contract {lanes = 64}", kTwoProducts, false},
                      BodyCase{"template_without_a_product", "template \"shared_tiled\" {slices = 1}", kExp, false},
                      BodyCase{"chain", "row_chain {lanes = 8, rows_per_group = 2, tile_k = 4, tile_n = 4}", kTwoProducts, true},
                      BodyCase{"chain_without_a_product", "row_chain {lanes = 8, rows_per_group = 2, tile_k = 4, tile_n = 4}", kSum, false},
                      BodyCase{"op_to_decompose", "map {lanes = 64}", kSoftmax, false}),
    [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace lockstep::program
