// SPDX-License-Identifier: Apache-2.0
#include "tools/progress.h"

#include <gtest/gtest.h>

#include <memory>

#include "tools/text_format.h"

namespace lockstep::tools {
namespace {

ProgressState state() {
  return {.step = 50,
          .steps = 200,
          .loss = 0.0123456,
          .steps_per_second = 412.3,
          .eta_seconds = 75,
          .device = "vulkan:0",
          .memory_bytes = 1536 * 1024,
          .metrics = "heldout_exact 0.5"};
}

std::string drawn(bool live, int updates) {
  char* data = nullptr;
  size_t size = 0;
  std::FILE* stream = ::open_memstream(&data, &size);
  {
    Progress progress(stream, live);
    for (int i = 0; i < updates; ++i) progress.update(state());
    progress.report(state());
  }
  std::fclose(stream);
  std::string text(data, size);
  std::free(data);
  return text;
}

TEST(ProgressLine, says_everything) {
  EXPECT_EQ(progressLine(state(), 0), "step 50/200  loss 0.01235  heldout_exact 0.5  412 steps/s  1 min 15 s left  vulkan:0  1.5 MiB");
}

TEST(ProgressLine, fits_the_terminal) {
  EXPECT_EQ(progressLine(state(), 12), "step 50/200 ");
  const std::string wide = progressLine(state(), 200);
  EXPECT_TRUE(wide.starts_with("[######..................] step")) << wide;
}

TEST(Progress, pipe_gets_plain_lines_only) { EXPECT_EQ(drawn(false, 3), progressLine(state(), 0) + "\n"); }

TEST(Progress, terminal_line_is_drawn_at_most_ten_times_a_second_and_cleared) {
  const std::string text = drawn(true, 1000);
  EXPECT_TRUE(text.starts_with("\r\033[K"));
  EXPECT_TRUE(text.ends_with(progressLine(state(), 0) + "\n"));
  EXPECT_LT(text.size(), 2000u);
}

TEST(Format, numbers_for_people) {
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
}  // namespace lockstep::tools
