// SPDX-License-Identifier: Apache-2.0
// The bounds of rounding errors: whatever a device is allowed to compute lies within them.
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string>

#include "backends/reference/sanitize/accuracy.h"
#include "ir/support/splitmix.h"

namespace lockstep::reference {
namespace {

struct Row {
  std::string name;
  Opcode op;
  double low, high;  ///< of the operands
};
void PrintTo(const Row& row, std::ostream* out) { *out << row.name; }

const Row kRows[] = {{"add", Opcode::AddF, -100, 100},
                     {"sub", Opcode::SubF, -100, 100},
                     {"mul", Opcode::MulF, -100, 100},
                     {"div", Opcode::DivF, 0.1, 100},
                     {"mul_add", Opcode::MulAddF, -9, 9},
                     {"fma", Opcode::Fma, -9, 9},
                     {"min", Opcode::MinF, -9, 9},
                     {"max", Opcode::MaxF, -9, 9},
                     {"sqrt", Opcode::Sqrt, 1e-3, 100},
                     {"exp", Opcode::Exp, -20, 20},
                     {"exp2", Opcode::Exp2, -20, 20},
                     {"log", Opcode::Log, 1e-2, 100},
                     {"log2", Opcode::Log2, 1e-2, 100},
                     {"sin", Opcode::Sin, -3, 3},
                     {"cos", Opcode::Cos, -3, 3},
                     {"tan", Opcode::Tan, -1.4, 1.4},
                     {"asin", Opcode::Asin, -0.9, 0.9},
                     {"acos", Opcode::Acos, -0.9, 0.9},
                     {"atan", Opcode::Atan, -50, 50},
                     {"atan2", Opcode::Atan2, 0.1, 9},
                     {"sinh", Opcode::Sinh, -9, 9},
                     {"cosh", Opcode::Cosh, -9, 9},
                     {"tanh", Opcode::Tanh, -9, 9},
                     {"asinh", Opcode::Asinh, -9, 9},
                     {"acosh", Opcode::Acosh, 1.1, 9},
                     {"atanh", Opcode::Atanh, -0.9, 0.9},
                     {"pow", Opcode::Pow, 0.1, 9},
                     {"fract", Opcode::Fract, 0.1, 0.9},
                     {"neg", Opcode::NegF, -9, 9},
                     {"abs", Opcode::AbsF, -9, 9},
                     {"neg_mul_add", Opcode::NegMulAddF, -9, 9},
                     {"inverse_sqrt", Opcode::InverseSqrt, 1e-3, 100}};

class Accuracy : public ::testing::TestWithParam<Row> {};

/// Operands anywhere in their ranges.
TEST_P(Accuracy, bounds_hold_for_all_operands_in_range) {
  const Row& row = GetParam();
  std::mt19937_64 random(7);
  std::uniform_real_distribution<double> value(row.low, row.high), part(-1, 1);
  for (int round = 0; round < 2000; ++round) {
    BoundedOperands operands;
    std::array<double, 3> moved{};
    for (size_t k = 0; k < 3; ++k) {
      operands[k].value = static_cast<double>(static_cast<float>(value(random)));
      operands[k].bound = round % 4 == 0 ? 0 : std::ldexp(std::abs(operands[k].value), -(round % 20) - 8);
      moved[k] = operands[k].value + operands[k].bound * part(random);
    }
    const double exact = exactly(row.op, operands[0].value, operands[1].value, operands[2].value);
    const ErrorParts parts = errorParts(row.op, operands, exact);
    const double other = exactly(row.op, moved[0], moved[1], moved[2]);
    ASSERT_LE(std::abs(other - exact), parts.together * (1 + 1e-9) + 1e-15 * std::abs(exact))
        << operands[0].value << " " << operands[1].value;
    if (parts.rounding == 0) continue;
    // The float next to the result is always allowed.
    ASSERT_LE(std::abs(static_cast<double>(static_cast<float>(other)) - exact), parts.total() * (1 + 1e-9) + 1e-15 * std::abs(exact));
  }
}
INSTANTIATE_TEST_SUITE_P(Operations, Accuracy, ::testing::ValuesIn(kRows), [](const auto& info) { return info.param.name; });

TEST(Ulp, is_the_distance_to_the_next_float) {
  for (const float x : {1.0f, -1.5f, 3e38f, 0x1p-126f, 0x1p-140f})
    EXPECT_EQ(ulpOf(x), static_cast<double>(std::nextafter(std::abs(x), HUGE_VALF)) - static_cast<double>(std::abs(x))) << x;
  EXPECT_EQ(ulpOf(0), 0x1p-149);
  EXPECT_TRUE(std::isinf(ulpOf(-HUGE_VAL)));
}

TEST(Splitmix, gives_the_published_numbers) {
  uint64_t state = 1234567;
  EXPECT_EQ(splitmix64(state), 6457827717110365317u);
  EXPECT_EQ(splitmix64(state), 3203168211198807973u);
}

TEST(AccuracyTable, is_that_of_wgsl) {
  const auto rounding = [](Opcode op, double a, double b = 0) {
    const BoundedOperands operands{Bounded{a, 0}, Bounded{b, 0}, Bounded{}};
    const double value = exactly(op, a, b, 0);
    return errorParts(op, operands, value).rounding / ulpOf(value);
  };
  EXPECT_DOUBLE_EQ(rounding(Opcode::AddF, 1, 0x1p-30), 1);  // either neighbour
  EXPECT_DOUBLE_EQ(rounding(Opcode::AddF, 1, 2), 0);        // exact
  EXPECT_DOUBLE_EQ(rounding(Opcode::DivF, 1, 3), 2.5);
  EXPECT_DOUBLE_EQ(rounding(Opcode::Exp, 2), 7);   // 3 + 2 |x|
  EXPECT_EQ(rounding(Opcode::Exp, -INFINITY), 0);  // what a mask makes of a score
  EXPECT_EQ(rounding(Opcode::Exp2, -INFINITY), 0);
  EXPECT_DOUBLE_EQ(rounding(Opcode::Log, 10), 3);
  EXPECT_DOUBLE_EQ(rounding(Opcode::InverseSqrt, 2), 2);
  EXPECT_DOUBLE_EQ(rounding(Opcode::Sin, 1) * ulpOf(std::sin(1.0)), 0x1p-11);
  EXPECT_TRUE(std::isinf(rounding(Opcode::Sin, 4)));
  EXPECT_TRUE(std::isinf(rounding(Opcode::DivF, 1, 0x1p-127)));
}

TEST(AccuracyTable, subnormals_may_become_zero) {
  const BoundedOperands operands{Bounded{0x1p-130, 0}, Bounded{0x1p10, 0}, Bounded{}};
  EXPECT_GE(errorParts(Opcode::MulF, operands, 0x1p-120).flushed, 0x1p-120);
  const BoundedOperands normal{Bounded{0x1p-100, 0}, Bounded{0x1p-30, 0}, Bounded{}};
  EXPECT_GE(errorParts(Opcode::MulF, normal, 0x1p-130).flushed, 0x1p-130);
  EXPECT_EQ(errorParts(Opcode::MulF, {Bounded{2, 0}, Bounded{3, 0}, Bounded{}}, 6).total(), 0);
}

TEST(AccuracyTable, what_another_float_in_range_would_choose_is_unstable) {
  EXPECT_TRUE(isUnstable(Opcode::Floor, {Bounded{2.9999, 1e-3}, Bounded{}, Bounded{}}));
  EXPECT_FALSE(isUnstable(Opcode::Floor, {Bounded{2.5, 1e-3}, Bounded{}, Bounded{}}));
  EXPECT_TRUE(isUnstable(Opcode::LtF, {Bounded{1, 1e-7}, Bounded{1, 0}, Bounded{}}));
  EXPECT_FALSE(isUnstable(Opcode::LtF, {Bounded{1, 0}, Bounded{1, 0}, Bounded{}}));
  EXPECT_TRUE(isUnstable(Opcode::FloatToI, {Bounded{7, 1e-5}, Bounded{}, Bounded{}}));
  EXPECT_TRUE(isUnstable(Opcode::FloatToBool, {Bounded{1e-9, 1e-8}, Bounded{}, Bounded{}}));
  EXPECT_FALSE(isUnstable(Opcode::FloatToBool, {Bounded{0.5, 1e-8}, Bounded{}, Bounded{}}));
  EXPECT_FALSE(isUnstable(Opcode::FloatToBool, {Bounded{0, 0}, Bounded{}, Bounded{}}));
}

}  // namespace
}  // namespace lockstep::reference
