// SPDX-License-Identifier: Apache-2.0
#include "tools/verify/golden_compare.h"

#include <gtest/gtest.h>

#include <cmath>

namespace lockstep::tools {
namespace {

io::Array doubles(const std::vector<double>& values) { return io::Array::fromDoubles({static_cast<int64_t>(values.size())}, values); }

GoldenCase sumCase() { return {.name = "sum.1", .op = "sum", .outputs = {{"y", doubles({3, 4})}}, .gradients = {{"x", doubles({1, 0})}}}; }
OpOutcome outcome(std::vector<double> y, std::vector<double> x) {
  return {.outputs = {{"y", std::move(y)}}, .gradients = {{"x", std::move(x)}}};
}

TEST(Distance, is_relative_to_the_norm) {
  const Distance one = distance({3, 4.5}, {3, 4}, 1e-2);
  EXPECT_DOUBLE_EQ(one.rel_l2, 0.1);
  EXPECT_DOUBLE_EQ(one.error, 10);
  EXPECT_FALSE(one.within(0.09));
  EXPECT_TRUE(one.within(0.11));
}

TEST(Distance, all_zero_is_compared_absolutely) {
  EXPECT_DOUBLE_EQ(distance({1e-7, 0}, {0, 0}, 1e-5).rel_l2, 1e-7);
  EXPECT_DOUBLE_EQ(distance({1e-7, 0}, {0, 0}, 1e-5).error, 1e-2);
}

TEST(Distance, not_a_number_never_passes_unless_expected) {
  EXPECT_FALSE(distance({NAN}, {1}, 1).within(1e9));
  EXPECT_FALSE(distance({INFINITY}, {1}, 1).within(1e9));
  EXPECT_FALSE(distance({1}, {INFINITY}, 1).within(1e9));
  EXPECT_FALSE(distance({-INFINITY}, {INFINITY}, 1).within(1e9));
  EXPECT_TRUE(distance({INFINITY, NAN, 2}, {INFINITY, NAN, 2}, 1).within(0));
  EXPECT_FALSE(distance({1}, {1, 2}, 1).within(1e9));
}

/// Of values that are exactly as computed.
RoundingBounds bounded(std::vector<double> values, std::vector<float> bounds) {
  return {.values = std::move(values), .bounds = std::move(bounds), .origins = {}};
}

TEST(CompareCase, elements_of_a_device_are_judged_by_their_bounds) {
  OpOutcome near = outcome({3, 4 + 1e-6}, {1, 0});
  near.output_bounds = {{"y", bounded({3, 4}, {0, 1.1e-6f})}};
  near.gradient_bounds = {{"x", bounded({1, 0}, {0, 0})}};
  const CaseReport report = compareCase(sumCase(), near, false);
  EXPECT_EQ(report.status, CaseStatus::Pass) << report.why;
  EXPECT_NEAR(report.output_error, 1 / 1.1, 1e-5);
  EXPECT_EQ(report.gradient_error, 0);
  EXPECT_EQ(report.elements, 4u);
  EXPECT_EQ(report.unbounded, 0u);
  ASSERT_TRUE(report.worst);
  EXPECT_EQ(report.worst->array + report.worst->index, "output 'y'[1]");

  near.output_bounds = {{"y", bounded({3, 4}, {0, 0.9e-6f})}};
  const CaseReport beyond = compareCase(sumCase(), near, false);
  EXPECT_EQ(beyond.status, CaseStatus::Fail);
  EXPECT_EQ(beyond.why, "output 'y'[1] is 4.000001 instead of 4 (2 ulp, allowed 9e-07); 1 of 2 elements is beyond its bound");
}

TEST(CompareCase, a_program_that_computes_something_else_is_told_from_a_device_that_rounds) {
  OpOutcome other = outcome({3, 4.5}, {1, 0});
  other.output_bounds = {{"y", bounded({3, 4.5}, {1, 1})}};
  const CaseReport report = compareCase(sumCase(), other, false);
  EXPECT_EQ(report.status, CaseStatus::Fail);
  EXPECT_NE(report.why.find("the program is wrong: in exact arithmetic it gives 4.5"), std::string::npos) << report.why;
}

TEST(CompareCase, elements_without_a_bound_are_counted_and_named) {
  OpOutcome unknown = outcome({3, 4 + 1e-6}, {1, 1e-8});
  unknown.output_bounds = {{"y", bounded({NAN, 4}, {0, INFINITY})}};
  const CaseReport report = compareCase(sumCase(), unknown, false);
  EXPECT_EQ(report.status, CaseStatus::Pass) << report.why;
  // Equal elements need no bound.
  EXPECT_EQ(report.unbounded, 2u);
  EXPECT_EQ(report.unbounded_at, "output 'y'[1]");
  EXPECT_NE(reportText(report).find("2 of 4 elements have no known bound, the first is output 'y'[1]"), std::string::npos);
  unknown.outputs["y"] = {3, 4 + 1e-4};
  const CaseReport beyond = compareCase(sumCase(), unknown, false);
  EXPECT_EQ(beyond.status, CaseStatus::Fail);
  EXPECT_NE(beyond.why.find("no bound of this element is known"), std::string::npos) << beyond.why;
}

TEST(CompareCase, integers_infinities_and_nans_of_a_device_are_right_or_wrong) {
  GoldenCase golden = sumCase();
  golden.gradients.clear();
  golden.outputs = {{"y", io::Array::fromInts({2}, std::vector<int32_t>{1000000, 2})}};
  EXPECT_EQ(compareCase(golden, outcome({1000000, 2}, {}), false).status, CaseStatus::Pass);
  EXPECT_EQ(compareCase(golden, outcome({1000001, 2}, {}), false).status, CaseStatus::Fail);
  golden.outputs = {{"y", doubles({INFINITY, NAN})}};
  EXPECT_EQ(compareCase(golden, outcome({INFINITY, NAN}, {}), false).status, CaseStatus::Pass);
  EXPECT_EQ(compareCase(golden, outcome({-INFINITY, NAN}, {}), false).status, CaseStatus::Fail);
  EXPECT_EQ(compareCase(golden, outcome({INFINITY, 1}, {}), false).status, CaseStatus::Fail);
  golden.outputs = {{"y", doubles({1, 2})}};
  OpOutcome lost = outcome({1, NAN}, {});
  lost.output_bounds = {{"y", bounded({1, 2}, {1, 1})}};
  EXPECT_EQ(compareCase(golden, lost, false).status, CaseStatus::Fail);
}

TEST(CompareCase, the_evaluator_has_one_tolerance) {
  EXPECT_EQ(compareCase(sumCase(), outcome({3, 4}, {1, 0}), true).status, CaseStatus::Pass);
  const OpOutcome off = outcome({3, 4 + 1e-6}, {1, 0});
  const CaseReport exact = compareCase(sumCase(), off, true);
  EXPECT_EQ(exact.status, CaseStatus::Fail);
  EXPECT_NE(exact.why.find("output 'y'"), std::string::npos);
  EXPECT_NEAR(exact.output_rel_l2, 2e-7, 1e-10);
}

TEST(CompareCase, gradients_count_too) {
  for (const bool exact : {true, false}) {
    const CaseReport report = compareCase(sumCase(), outcome({3, 4}, {1, 1e-3}), exact);
    EXPECT_EQ(report.status, CaseStatus::Fail);
    EXPECT_EQ(report.output_rel_l2, 0);
    EXPECT_DOUBLE_EQ(report.gradient_rel_l2, 1e-3);
    EXPECT_GT(report.gradient_error, 100);
  }
}

TEST(CompareCase, missing_results_fail) {
  EXPECT_EQ(compareCase(sumCase(), {}, false).status, CaseStatus::Fail);
  EXPECT_EQ(compareCase(sumCase(), outcome({3}, {1, 0}), false).status, CaseStatus::Fail);
}

GoldenTraining training() {
  GoldenTraining golden;
  golden.model = "mlp";
  golden.losses = std::vector<double>(7, 2.0);
  golden.first_gradients.emplace("w", doubles({1, 1}));
  golden.final.emplace("w", doubles({3, 4}));
  return golden;
}
TrainingOutcome trained(std::vector<double> losses) {
  return {.losses = std::move(losses), .first_gradients = {{"w", {1, 1}}}, .final = {{"w", {3, 4}}}};
}

TEST(CompareTraining, early_losses_are_compared_more_closely) {
  EXPECT_EQ(compareTraining(training(), trained({2, 2, 2, 2, 2, 2.01, 2}), false).status, CaseStatus::Pass);
  EXPECT_EQ(compareTraining(training(), trained({2, 2, 2, 2, 2, 2.03, 2}), false).status, CaseStatus::Fail);
  const CaseReport early = compareTraining(training(), trained({2, 2, 2, 2.01, 2, 2, 2}), false);
  EXPECT_EQ(early.status, CaseStatus::Fail);
  EXPECT_NE(early.why.find("step 4"), std::string::npos) << early.why;
}

TEST(CompareTraining, every_part_can_fail) {
  const std::vector<double> losses(7, 2.0);
  TrainingOutcome outcome = trained(losses);
  EXPECT_EQ(compareTraining(training(), outcome, true).status, CaseStatus::Pass);
  outcome.first_gradients["w"] = {1, 1.001};
  EXPECT_EQ(compareTraining(training(), outcome, false).status, CaseStatus::Fail);
  outcome = trained(losses);
  outcome.final["w"] = {3, 4.5};
  EXPECT_EQ(compareTraining(training(), outcome, false).status, CaseStatus::Fail);
  outcome.final["w"] = {3, 4.1};
  EXPECT_EQ(compareTraining(training(), outcome, false).status, CaseStatus::Pass);
  EXPECT_EQ(compareTraining(training(), outcome, true).status, CaseStatus::Fail);
  outcome.final.clear();
  EXPECT_EQ(compareTraining(training(), outcome, false).status, CaseStatus::Fail);
  EXPECT_EQ(compareTraining(training(), trained({2, 2}), false).status, CaseStatus::Fail);
}

TEST(CompareTraining, sensitivity_widens_only_what_it_names) {
  TrainingSensitivity sensitivity{.first_gradients = {{"w", 1e-2}}, .losses = {0, 0, 0, 0, 0, 5e-2, 0}, .final = 0.2};
  TrainingOutcome outcome = trained({2, 2, 2, 2, 2, 2.1, 2});
  outcome.first_gradients["w"] = {1, 1.01};
  outcome.final["w"] = {3, 5};
  EXPECT_EQ(compareTraining(training(), outcome, false, sensitivity).status, CaseStatus::Pass);
  outcome.losses[6] = 2.1;
  EXPECT_EQ(compareTraining(training(), outcome, false, sensitivity).status, CaseStatus::Fail);
  outcome.losses[6] = 2;
  outcome.first_gradients["w"] = {1, 1.02};
  EXPECT_EQ(compareTraining(training(), outcome, false, sensitivity).status, CaseStatus::Fail);
  outcome.first_gradients["w"] = {1, 1.01};
  outcome.final["w"] = {3, 5.5};
  EXPECT_EQ(compareTraining(training(), outcome, false, sensitivity).status, CaseStatus::Fail);
}

TEST(CompareTraining, f32_recording_is_not_compared_exactly) {
  GoldenTraining golden = training();
  golden.recorded_in_f32 = true;
  EXPECT_EQ(compareTraining(golden, trained({2.00001, 2, 2, 2, 2, 2, 2}), true).status, CaseStatus::Pass);
}

TEST(Report, object_has_the_stable_keys) {
  CaseReport failed = compareCase(sumCase(), {}, false);
  CaseReport unsupported{.name = "fft", .op = "fft", .status = CaseStatus::Unsupported, .why = "op 'fft' is not implemented"};
  const std::string device = reportJson("reference", {compareCase(sumCase(), outcome({3, 4}, {1, 0}), false)}).text();
  EXPECT_NE(device.find(R"("elements": 4, "unbounded": 0, "worst": {"element": 0, )"), std::string::npos) << device;
  const std::string text = reportJson("reference", {compareCase(sumCase(), outcome({3, 4}, {1, 0}), true), failed, unsupported}).text();
  EXPECT_TRUE(text.starts_with(R"({"device": "reference", "cases": [{"name": "sum.1", "op": "sum", "status": "pass", "output_error": 0,)"))
      << text;
  EXPECT_TRUE(text.ends_with(R"("passed": 1, "failed": 1, "unsupported": 1})")) << text;
  const std::string one = reportJson("reference", {compareTraining(training(), trained({2, 2, 2, 2, 2, 2, 2}), true)}).text();
  EXPECT_NE(one.find("\"loss_rel\": 0"), std::string::npos) << one;
  EXPECT_NE(one.find("\"final_rel_l2\": 0"), std::string::npos) << one;
}

}  // namespace
}  // namespace lockstep::tools
