// SPDX-License-Identifier: Apache-2.0
#include "frontend/text/stop_strings.h"

#include <gtest/gtest.h>

namespace lockstep::text {
namespace {

TEST(StopStrings, what_may_begin_one_waits) {
  StopStrings stops({"###", "\n\nQ:", ""});
  EXPECT_EQ(stops.push("one #"), "one ");
  EXPECT_EQ(stops.push("#"), "");
  EXPECT_EQ(stops.push(" two\n"), "## two");
  EXPECT_EQ(stops.push("\n\n"), "\n");
  EXPECT_FALSE(stops.ended());
  EXPECT_EQ(stops.push("Q: three"), "");
  EXPECT_TRUE(stops.ended());
  EXPECT_EQ(stops.push("four"), "");
  EXPECT_EQ(stops.finish(), "");
}

TEST(StopStrings, the_first_place_counts) {
  StopStrings stops({"cd", "bcde"});
  EXPECT_EQ(stops.push("abcdef"), "a");
  EXPECT_TRUE(stops.ended());
  // The longer one would begin earlier, but the shorter is there first.
  StopStrings pieces({"cd", "bcdx"});
  EXPECT_EQ(pieces.push("abc"), "a");
  EXPECT_EQ(pieces.push("d"), "b");
  EXPECT_TRUE(pieces.ended());
}

TEST(StopStrings, a_beginning_at_the_end_is_text) {
  StopStrings stops({"stop"});
  EXPECT_EQ(stops.push("a sto"), "a ");
  EXPECT_EQ(stops.finish(), "sto");
  StopStrings none({});
  EXPECT_EQ(none.push("all"), "all");
}

}  // namespace
}  // namespace lockstep::text
