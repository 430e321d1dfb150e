// SPDX-License-Identifier: Apache-2.0
#include "conformance/values.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>

namespace lockstep::conformance {
namespace {

using nlohmann::json;
using Scalar = ValueType::Scalar;

ValueType type(std::string_view text) {
  const std::optional<ValueType> parsed = parseValueType(text);
  EXPECT_TRUE(parsed) << text;
  return parsed.value_or(ValueType{});
}

template <class T>
std::array<std::byte, 64> bytesOf(const std::vector<T>& values) {
  std::array<std::byte, 64> bytes{};
  std::memcpy(bytes.data(), values.data(), values.size() * sizeof(T));
  return bytes;
}

/// The list that has one case of these texts.
CaseList listOf(const std::string& type_text, const std::string& input, const std::string& expected) {
  return parseCaseList(R"({"params": [")" + type_text + R"("], "ret": ")" + type_text + R"(", "cases": [[[)" + input + "], " + expected +
                       "]]}");
}

bool matches(const std::string& expected, const std::string& type_text, const auto& values) {
  const CaseList list = parseCaseList(R"({"params": [], "ret": ")" + type_text + R"(", "cases": [[[], )" + expected + "]]}");
  return conformance::matches(list.cases[0].expected, list.result, bytesOf(values).data());
}

std::vector<uint32_t> encoded(const std::string& value, const std::string& type_text) {
  const CaseList list = listOf(type_text, value, R"({"skip": 1})");
  std::vector<uint32_t> words((sizeOf(list.parameters[0]) + 3) / 4);
  encode(list.cases[0].inputs[0], list.parameters[0], reinterpret_cast<std::byte*>(words.data()));
  return words;
}

TEST(Values, TypesHaveTheLayoutOfWgsl) {
  struct Row {
    std::string_view text;
    uint64_t size, stride;
  };
  constexpr Row kRows[] = {{"vec2<f32>", 8, 4},
                           {"vec3<f16>", 6, 2},
                           {"mat2x3<f32>", 32, 16},
                           {"mat3x2<f16>", 12, 4},
                           {"mat4x3<f16>", 32, 8},
                           {"array<vec3<u32>, 2>", 32, 16},
                           {"array<mat2x2<f32>, 3>", 48, 16},
                           {"array<f16, 3>", 6, 2},
                           {"vec3<abstract-float>", 24, 8},
                           {"mat2x3<abstract-float>", 64, 32}};
  for (const Row& row : kRows) {
    EXPECT_EQ(sizeOf(type(row.text)), row.size) << row.text;
    EXPECT_EQ(elementStride(type(row.text)), row.stride) << row.text;
  }
  EXPECT_EQ(sizeOf(type("abstract-int")), 8u);
  EXPECT_EQ(type("mat4x2<f16>"), (ValueType{.scalar = Scalar::F16, .rows = 2, .columns = 4}));
}

TEST(Values, OtherTextsAreNoTypes) {
  for (const char* text : {"", "f64", "vec5<f32>", "vec2", "vec2<f64>", "mat2<f32>", "mat2x9<f32>", "array<f32>", "array<f32, 0>",
                           "array<array<f32, 2>, 2>", "vec2<f32> "}) {
    EXPECT_FALSE(parseValueType(text)) << text;
  }
}

TEST(Values, ValuesBecomeBytes) {
  EXPECT_EQ(encoded("true", "bool"), (std::vector<uint32_t>{1}));
  EXPECT_EQ(encoded("-2", "i32"), (std::vector<uint32_t>{0xfffffffe}));
  EXPECT_EQ(encoded("4294967295", "u32"), (std::vector<uint32_t>{0xffffffff}));
  EXPECT_EQ(encoded(R"("fff7fffff")", "f32"), (std::vector<uint32_t>{0xff7fffff}));
  EXPECT_EQ(encoded(R"(["h3c00", "hbc00", "h0001"])", "vec3<f16>"), (std::vector<uint32_t>{0xbc003c00, 0x0001}));
  EXPECT_EQ(encoded(R"("-9223372036854775808")", "abstract-int"), (std::vector<uint32_t>{0, 0x80000000}));
  EXPECT_EQ(encoded(R"("d3ff0000000000001")", "abstract-float"), (std::vector<uint32_t>{1, 0x3ff00000}));
  EXPECT_EQ(encoded("[[1, 2, 3], [4, 5, 6]]", "array<vec3<u32>, 2>"), (std::vector<uint32_t>{1, 2, 3, 0, 4, 5, 6, 0}));
}

TEST(Values, WrongValuesAreRefused) {
  EXPECT_THROW(encoded(R"("h3c00")", "f32"), json::exception);
  EXPECT_THROW(encoded(R"("f3f8000")", "f32"), json::exception);
  EXPECT_THROW(encoded("[1]", "vec2<u32>"), json::exception);
  EXPECT_THROW(encoded(R"("12x")", "abstract-int"), json::exception);
  EXPECT_THROW(matches(R"({"almost": 1})", "u32", std::vector<uint32_t>{1}), json::exception);
  EXPECT_THROW(matches(R"({"i": ["low", 1]})", "u32", std::vector<uint32_t>{1}), json::exception);
  EXPECT_THROW(matches(R"({"a": [{"skip": 1}]})", "vec2<u32>", std::vector<uint32_t>{1, 2}), json::exception);
}

TEST(Values, EqualMeansEqualNumbers) {
  EXPECT_TRUE(matches(R"({"v": "f80000000"})", "f32", std::vector{0.0f}));
  EXPECT_FALSE(matches(R"({"v": "f00000001"})", "f32", std::vector{0.0f}));
  EXPECT_FALSE(matches(R"({"v": "f7fc00000"})", "f32", std::vector{std::numeric_limits<float>::quiet_NaN()}));
  EXPECT_TRUE(matches(R"({"v": [1, -1]})", "vec2<i32>", std::vector{1, -1}));
  EXPECT_FALSE(matches(R"({"v": [1, -1]})", "vec2<i32>", std::vector{1, 1}));
  EXPECT_FALSE(matches(R"({"v": true})", "bool", std::vector<uint32_t>{2}));
}

TEST(Values, IntervalsAreClosed) {
  const char* interval = R"({"i": [-1.5, 2]})";
  for (const float inside : {-1.5f, 0.0f, 2.0f}) EXPECT_TRUE(matches(interval, "f32", std::vector{inside})) << inside;
  for (const float outside : {-1.5000001f, 2.0000002f, std::numeric_limits<float>::quiet_NaN()}) {
    EXPECT_FALSE(matches(interval, "f32", std::vector{outside})) << outside;
  }
  EXPECT_TRUE(matches(interval, "f16", std::vector<uint16_t>{0x3c00}));
  EXPECT_FALSE(matches(interval, "f16", std::vector<uint16_t>{0x4001}));
}

TEST(Values, OnlyTheWholeLineAdmitsNaN) {
  const std::vector nan{std::numeric_limits<float>::quiet_NaN()}, infinite{std::numeric_limits<float>::infinity()};
  EXPECT_TRUE(matches(R"({"i": ["-Infinity", "Infinity"]})", "f32", nan));
  EXPECT_TRUE(matches(R"({"i": ["-Infinity", "Infinity"]})", "f32", infinite));
  EXPECT_FALSE(matches(R"({"i": [0, "Infinity"]})", "f32", nan));
  EXPECT_TRUE(matches(R"({"i": [0, "Infinity"]})", "f32", infinite));
  EXPECT_TRUE(matches(R"({"skip": 1})", "f32", nan));
}

TEST(Values, AlternativesAndElements) {
  const char* either = R"({"any": [{"a": [{"v": 1}, {"skip": 1}]}, {"a": [{"skip": 1}, {"v": 2}]}]})";
  EXPECT_TRUE(matches(either, "vec2<u32>", std::vector<uint32_t>{1, 7}));
  EXPECT_TRUE(matches(either, "vec2<u32>", std::vector<uint32_t>{7, 2}));
  EXPECT_FALSE(matches(either, "vec2<u32>", std::vector<uint32_t>{7, 7}));
  // Columns of a mat2x3 are 16 bytes apart.
  const std::vector matrix{1.0f, 2.0f, 3.0f, 99.0f, 4.0f, 5.0f, 6.0f, 99.0f};
  EXPECT_TRUE(matches(R"({"a": [{"skip": 1}, {"a": [{"i": [4, 4]}, {"i": [5, 5]}, {"i": [6, 6]}]}]})", "mat2x3<f32>", matrix));
  EXPECT_FALSE(matches(R"({"a": [{"skip": 1}, {"a": [{"i": [4, 4]}, {"i": [5, 5]}, {"i": [7, 7]}]}]})", "mat2x3<f32>", matrix));
}

TEST(Values, AreDescribedForPeople) {
  EXPECT_EQ(describe(type("vec2<i32>"), bytesOf(std::vector{1, -1}).data()), "[1, -1]");
  EXPECT_EQ(describe(type("f16"), bytesOf(std::vector<uint16_t>{0x3e00}).data()), "1.5 (0x3e00)");
  EXPECT_EQ(describe(type("abstract-int"), bytesOf(std::vector<int64_t>{-3}).data()), "-3");
  const CaseList list = listOf("vec2<i32>", "[1, 2]", R"({"any": [{"v": [3, 4]}, {"a": [{"skip": 1}, {"i": [5, "Infinity"]}]}]})");
  EXPECT_EQ(describe(list.result, list.cases[0].expected), "[3, 4] or [anything, 5 .. inf]");
}

}  // namespace
}  // namespace lockstep::conformance
