// SPDX-License-Identifier: Apache-2.0
// How an optimizer's filters become settings of parameters.
#include "frontend/optim/settings.h"

#include "tests/frontend/tracing.h"

namespace lockstep {
namespace {

std::vector<graph::ParameterInfo> model() { return {{"body.W", f32(2, 2), true}, {"body.b", f32(2), false}, {"head.W", f32(2, 2), true}}; }
NameFilter startsWith(const std::string& prefix) {
  return [prefix](const std::string& name) { return name.starts_with(prefix); };
}

passes::ParameterSetting settingOf(const OptimizerSpec& spec, size_t parameter) {
  return passes::settingOf(detail::optimizerConfig(spec, model()), model()[parameter]);
}

TEST(OptimizerSettings, decay_is_that_of_the_group_then_of_the_flag) {
  OptimizerSpec plain = adamw({.weight_decay = 0.5});
  EXPECT_EQ(settingOf(plain, 0).weight_decay, 0.5);
  EXPECT_EQ(settingOf(plain, 1).weight_decay, 0);
  OptimizerSpec grouped = adamw({.weight_decay = 0.5}, {.groups = {{.filter = startsWith("body"), .weight_decay = 0.1}}});
  EXPECT_EQ(settingOf(grouped, 0).weight_decay, 0.1);
  EXPECT_EQ(settingOf(grouped, 1).weight_decay, 0.1);
  EXPECT_EQ(settingOf(grouped, 2).weight_decay, 0.5);
  OptimizerSpec without = adamw({.weight_decay = 0.5}, {.groups = {{.filter = startsWith("body"), .lr_factor = 2}}});
  EXPECT_EQ(settingOf(without, 0).weight_decay, 0.5);
  EXPECT_EQ(settingOf(without, 0).lr_factor, 2);
  EXPECT_EQ(settingOf(without, 1).weight_decay, 0);
}

TEST(OptimizerSettings, first_group_that_matches_applies) {
  OptimizerSpec spec =
      sgd({}, {.groups = {{.filter = startsWith("body.W"), .lr_factor = 3}, {.filter = startsWith("body"), .frozen = true}}});
  EXPECT_EQ(settingOf(spec, 0).lr_factor, 3);
  EXPECT_FALSE(settingOf(spec, 0).frozen);
  EXPECT_EQ(settingOf(spec, 1).lr_factor, 1);
  EXPECT_TRUE(settingOf(spec, 1).frozen);
  EXPECT_FALSE(settingOf(spec, 2).frozen);
}

TEST(OptimizerSettings, normalization_is_apart_from_groups) {
  OptimizerSpec spec = adam({}, {.normalize_grads = startsWith("head"), .groups = {{.filter = startsWith("head"), .lr_factor = 2}}});
  EXPECT_TRUE(settingOf(spec, 2).normalize);
  EXPECT_EQ(settingOf(spec, 2).lr_factor, 2);
  EXPECT_FALSE(settingOf(spec, 0).normalize);
}

TEST(OptimizerSettings, rows_are_those_of_the_parameter) {
  const auto rows = [](RowRange range, const char* prefix = "body.W", bool frozen = false) {
    return adamw({}, {.groups = {{.filter = startsWith(prefix), .frozen = frozen, .rows = {range}}}});
  };
  EXPECT_EQ(settingOf(rows({.first = 1, .count = 1, .axis = 1}), 0).rows,
            (std::vector<passes::RowRange>{{.first = 1, .count = 1, .axis = 1}}));
  EXPECT_TRUE(settingOf(rows({.first = 1, .count = 1, .axis = 1}), 2).rows.empty());
  for (const RowRange& wrong : std::vector<RowRange>{{.first = 2, .count = 1},
                                                     {.first = -1, .count = 1},
                                                     {.first = 0, .count = 0},
                                                     {.first = 1, .count = 2},
                                                     {.first = 1, .count = INT64_MAX},
                                                     {.first = 0, .count = 1, .axis = 2},
                                                     {.first = 0, .count = 1, .axis = -1}}) {
    const Diagnostic error = caught([&] { settingOf(rows(wrong), 0); });
    EXPECT_EQ(error.code, "optimizer.rows");
    EXPECT_NE(error.message.find("'body.W' is f32[2,2]"), std::string::npos) << error.message;
  }
  // The group has body.b too, which has one axis.
  EXPECT_EQ(caught([&] { settingOf(rows({.first = 0, .count = 1, .axis = 1}, "body"), 0); }).code, "optimizer.rows");
  EXPECT_EQ(caught([&] { settingOf(rows({.first = 0, .count = 1}, "body.W", true), 0); }).code, "optimizer.rows");
}

TEST(OptimizerSettings, filter_that_matches_nothing_is_an_error) {
  Diagnostic error = caught([] { settingOf(adam({}, {.normalize_grads = startsWith("tail")}), 0); });
  EXPECT_EQ(error.code, "optimizer.filter");
  EXPECT_NE(error.remedy.find("head.W"), std::string::npos);
  error = caught([] { settingOf(adam({}, {.groups = {{.filter = startsWith("body")}, {.filter = startsWith("tail")}}}), 0); });
  EXPECT_EQ(error.code, "optimizer.filter");
  EXPECT_NE(error.message.find("group 2"), std::string::npos);
}

}  // namespace
}  // namespace lockstep
