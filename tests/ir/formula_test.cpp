// SPDX-License-Identifier: Apache-2.0
#include "ir/program/formula.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>

namespace lockstep::program {
namespace {

constexpr std::array<std::string_view, 2> kNames{"step", "lr"};

double valueOf(std::string_view text, double step = 3, double lr = 0.5) {
  return Formula::parse(text, kNames).orThrow()(std::array{step, lr});
}

TEST(Formula, is_arithmetic) {
  EXPECT_EQ(valueOf("1 + 2 * 3"), 7);
  EXPECT_EQ(valueOf("(1 + 2) * 3"), 9);
  EXPECT_EQ(valueOf("7 - 2 - 1"), 4) << "from left to right";
  EXPECT_EQ(valueOf("8 / 4 / 2"), 1);
  EXPECT_EQ(valueOf("-step * -2"), 6);
  EXPECT_EQ(valueOf("2 - -lr"), 2.5);
  EXPECT_EQ(valueOf(" 1e-3*step "), 1e-3 * 3);
  EXPECT_EQ(valueOf("lr"), 0.5);
}

TEST(Formula, has_functions) {
  EXPECT_EQ(valueOf("min(step, 2)"), 2);
  EXPECT_EQ(valueOf("max(step, 2)"), 3);
  EXPECT_EQ(valueOf("floor(step / 2)"), 1);
  EXPECT_EQ(valueOf("floor(-lr)"), -1);
  EXPECT_EQ(valueOf("sqrt(step)"), std::sqrt(3.0));
  EXPECT_EQ(valueOf("cos(step)"), std::cos(3.0));
  EXPECT_EQ(valueOf("pow(step, lr)"), std::pow(3.0, 0.5));
  EXPECT_EQ(valueOf("at_least(step, 3) + at_least(step, 4)"), 1);
  EXPECT_EQ(valueOf("select(at_least(step, 3), 10, 20)"), 10);
  EXPECT_EQ(valueOf("select(0, 10, 20)"), 20);
}

TEST(Formula, that_is_none_is_an_error_with_its_place) {
  for (const char* text : {"",      " ",   "1 +", "1 2",     "(1",        "1)",    "min(1)",   "min(1, 2, 3)", "weather", "step(1)",
                           "1e999", "nan", "inf", "0x1p3 2", "step step", "cos 1", "pow(1 2)", "1,",           "*",       "STEP"}) {
    const Result<Formula> parsed = Formula::parse(text, kNames);
    ASSERT_FALSE(parsed.ok()) << text;
    EXPECT_EQ(parsed.diagnostics().front().code, "program.formula") << text;
    EXPECT_NE(parsed.diagnostics().front().message.find("at character"), std::string::npos);
  }
  EXPECT_FALSE(Formula::parse("lr", std::span(kNames).first(1)).ok()) << "a name of others";
}

TEST(Formula, does_not_end_the_stack) {
  EXPECT_FALSE(Formula::parse(std::string(100000, '('), kNames).ok());
  EXPECT_FALSE(Formula::parse(std::string(100000, '-'), kNames).ok());
  std::string sum = "1";
  for (int i = 0; i < 10000; ++i) sum += " + 1";
  EXPECT_EQ(valueOf(sum), 10001);
}

}  // namespace
}  // namespace lockstep::program
