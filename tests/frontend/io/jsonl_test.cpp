// SPDX-License-Identifier: Apache-2.0
#include "frontend/io/jsonl.h"

#include <gtest/gtest.h>

#include <cmath>

#include "frontend/io/file.h"
#include "tests/frontend/io/scratch.h"

namespace lockstep::io {
namespace {

TEST(Json, members_keep_their_order_and_text_is_escaped) {
  const Json json = Json::object().add("z", 1).add("a", "two \"lines\"\n").add("list", Json::array().add(true).add(Json()).add(-2.5));
  EXPECT_EQ(json.text(), R"({"z": 1, "a": "two \"lines\"\n", "list": [true, null, -2.5]})");
  EXPECT_EQ(Json::object().text(), "{}");
  EXPECT_EQ(Json::array().text(), "[]");
}

TEST(Json, numbers_read_back_to_the_same_value) {
  for (const double value : {0.1, 1e-300, 1e300, 3.0, -0.0, 1.0 / 3, 123456789012345680.0}) {
    EXPECT_EQ(std::stod(Json(value).text()), value) << Json(value).text();
  }
  EXPECT_EQ(Json(uint64_t{UINT64_MAX}).text(), "18446744073709551615");
  EXPECT_EQ(Json(NAN).text(), "null");
  EXPECT_EQ(Json(-INFINITY).text(), "null");
}

TEST(Json, broken_utf8_does_not_throw) { EXPECT_EQ(Json("a\xff").text(), "\"a\uFFFD\""); }

TEST(Json, wrong_use_is_our_bug) {
  EXPECT_THROW(Json::array().add("key", 1), InternalError);
  EXPECT_THROW(Json::object().add(1), InternalError);
}

TEST(JsonLines, one_object_a_line) {
  const testing::ScratchDirectory scratch("jsonl");
  JsonLines lines;
  lines.add(Json::object().add("step", 1));
  lines.add(Json::object().add("step", 2));
  ASSERT_TRUE(lines.write(scratch / "losses.jsonl").ok());
  EXPECT_EQ(*readTextFile(scratch / "losses.jsonl"), "{\"step\": 1}\n{\"step\": 2}\n");
}

}  // namespace
}  // namespace lockstep::io
