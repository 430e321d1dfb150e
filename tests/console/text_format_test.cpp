// SPDX-License-Identifier: Apache-2.0
#include "console/text_format.h"

#include <gtest/gtest.h>

namespace lockstep::console {
namespace {

TEST(TextFormat, numbers_for_people) {
  EXPECT_EQ(formatBytes(0), "0 B");
  EXPECT_EQ(formatBytes(1023), "1023 B");
  EXPECT_EQ(formatBytes(1024), "1 KiB");
  EXPECT_EQ(formatBytes(15938355), "15.2 MiB");
  EXPECT_EQ(formatBytes(UINT64_MAX), "16777216 TiB");
  EXPECT_EQ(formatDuration(0.00085), "850 µs");
  EXPECT_EQ(formatDuration(0.0123), "12.3 ms");
  EXPECT_EQ(formatDuration(4.06), "4.1 s");
  EXPECT_EQ(formatDuration(125), "2 min 5 s");
  EXPECT_EQ(formatDuration(11520), "3 h 12 min");
  EXPECT_EQ(formatDuration(-1), "-");
}

}  // namespace
}  // namespace lockstep::console
