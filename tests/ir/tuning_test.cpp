// SPDX-License-Identifier: Apache-2.0
// Tables of measured plans: their text, and what is no table.
#include "ir/program/tuning.h"

#include <gtest/gtest.h>

namespace lockstep::program {
namespace {

constexpr const char* kProduct = "contract f32>f32 1x64x64x64";
constexpr const char* kRows = "rows f32 64x256";

TuningTable twoPlans() {
  TuningTable table{.device = "Toy GPU", .plans = {}};
  table.plans.emplace(kProduct, TemplatePlan{.name = "shared_tiled", .overrides = {{"tile_m", 16}, {"slices", 2}}, .unrolled_stores = 8});
  table.plans.emplace(kRows, RowsPlan{.lanes = 4, .rows_per_group = 16});
  return table;
}

TEST(Tuning, table_has_one_line_for_each_work) {
  EXPECT_EQ(print(twoPlans()),
            "lockstep.tuning 1\n"
            "device \"Toy GPU\"\n"
            "\"contract f32>f32 1x64x64x64\" = template \"shared_tiled\" {slices = 2, tile_m = 16, unrolled_stores = 8}\n"
            "\"rows f32 64x256\" = rows {lanes = 4, rows_per_group = 16}\n"
            "end\n");
}

TEST(Tuning, text_reads_back_to_an_equal_table) {
  // Names of devices come from drivers, so they may hold anything.
  for (const char* device : {"Toy GPU", "", "a \"quoted\" \\ name", "two\nlines\tand \x01", "R\u00e4der 3000"}) {
    TuningTable table = twoPlans();
    table.device = device;
    EXPECT_EQ(parseTuning(print(table)).orThrow(), table) << print(table);
  }
  const TuningTable empty{.device = "Toy GPU", .plans = {}};
  EXPECT_EQ(parseTuning(print(empty)).orThrow(), empty);
}

TEST(Tuning, comments_and_blank_lines_are_passed_over) {
  const TuningTable table = parseTuning("# by hand\nlockstep.tuning 1\n\ndevice \"d\"  # mine\nend\n").orThrow();
  EXPECT_EQ(table.device, "d");
  EXPECT_TRUE(table.plans.empty());
}

struct WrongTable {
  const char* name;
  const char* text;
  const char* code;
  uint32_t line;
};
void PrintTo(const WrongTable& wrong, std::ostream* out) { *out << wrong.name; }

class WrongTables : public ::testing::TestWithParam<WrongTable> {};

TEST_P(WrongTables, are_refused_at_their_line) {
  const Result<TuningTable> table = parseTuning(GetParam().text, "my.tuning");
  ASSERT_FALSE(table.ok());
  const Diagnostic& diagnostic = table.failure().diagnostics.front();
  EXPECT_EQ(diagnostic.code, GetParam().code) << diagnostic.message;
  EXPECT_EQ(diagnostic.where.file, "my.tuning");
  EXPECT_EQ(diagnostic.where.line, GetParam().line) << diagnostic.message;
}

#define HEAD "lockstep.tuning 1\ndevice \"d\"\n"
INSTANTIATE_TEST_SUITE_P(
    All, WrongTables,
    ::testing::Values(WrongTable{"nothing", "", "text.syntax", 1}, WrongTable{"another_text", "lockstep.graph 1\n", "text.syntax", 1},
                      WrongTable{"later_version", "lockstep.tuning 2\ndevice \"d\"\nend\n", "text.version", 1},
                      WrongTable{"no_device", "lockstep.tuning 1\nend\n", "text.syntax", 2},
                      WrongTable{"device_without_quotes", "lockstep.tuning 1\ndevice d\nend\n", "text.syntax", 2},
                      WrongTable{"open_string", "lockstep.tuning 1\ndevice \"d\nend\n", "text.string", 2},
                      WrongTable{"no_end", HEAD "\"w\" = map {lanes = 64}", "text.syntax", 3},
                      WrongTable{"text_after_the_end", HEAD "end\n\"w\" = map {lanes = 64}\n", "text.syntax", 4},
                      WrongTable{"work_without_quotes", HEAD "w = map {lanes = 64}\nend\n", "text.syntax", 3},
                      WrongTable{"no_plan", HEAD "\"w\" =\nend\n", "text.syntax", 5},
                      WrongTable{"unknown_plan", HEAD "\"w\" = nonsense {lanes = 64}\nend\n", "program.plan", 3},
                      WrongTable{"impossible_number", HEAD "\"w\" = map {lanes = 0}\nend\n", "program.plan", 3},
                      WrongTable{"work_twice", HEAD "\"w\" = map {lanes = 64}\n\"w\" = map {lanes = 32}\nend\n", "tuning.twice", 4}),
    [](const auto& info) { return std::string(info.param.name); });
#undef HEAD

TEST(Tuning, merge_keeps_the_plans_of_the_first_table) {
  TuningTable second{.device = "another", .plans = {}};
  second.plans.emplace(kProduct, NaiveContractPlan{.lanes = 64});
  second.plans.emplace("contract f32>f32 1x128x128x128", NaiveContractPlan{.lanes = 32});
  const TuningTable merged = merge(twoPlans(), second);
  EXPECT_EQ(merged.device, "Toy GPU");
  EXPECT_EQ(merged.plans.size(), 3u);
  EXPECT_EQ(merged.plans.at(kProduct), twoPlans().plans.at(kProduct));
  EXPECT_EQ(merged.plans.at(kRows), twoPlans().plans.at(kRows));
  EXPECT_EQ(merged.plans.at("contract f32>f32 1x128x128x128"), Plan(NaiveContractPlan{.lanes = 32}));
}

TEST(Tuning, merge_with_an_empty_table_changes_nothing) {
  EXPECT_EQ(merge(twoPlans(), {}), twoPlans());
  EXPECT_EQ(merge(TuningTable{.device = "Toy GPU", .plans = {}}, twoPlans()), twoPlans());
}

}  // namespace
}  // namespace lockstep::program
