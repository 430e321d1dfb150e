// SPDX-License-Identifier: Apache-2.0
#include "experiment/live_view.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <vector>

namespace lockstep::experiment {
namespace {

Progress progress() {
  return {.step = 50,
          .steps = 200,
          .loss = 0.0123456,
          .steps_per_second = 412.3,
          .eta_seconds = 75,
          .device = "vulkan:0",
          .memory_bytes = 1536 * 1024,
          .metrics = "heldout_exact 0.5"};
}

/// What `updates` updates and the end of the view write.
std::string drawn(bool live, int updates) {
  char* data = nullptr;
  size_t size = 0;
  std::FILE* stream = ::open_memstream(&data, &size);
  {
    LiveView view(stream, live, "sine: a network");
    view.sample("first\nsecond\n");
    const std::vector<float> losses{2, 1};
    for (int i = 0; i < updates; ++i) view.update(progress(), losses);
  }
  std::fclose(stream);
  std::string text(data, size);
  std::free(data);
  return text;
}

TEST(ProgressLine, says_everything) {
  EXPECT_EQ(progressLine(progress()), "step 50/200  loss 0.01235  heldout_exact 0.5  412 steps/s  1 min 15 s left  vulkan:0  1.5 MiB");
}

TEST(LiveView, pipe_gets_nothing) { EXPECT_EQ(drawn(false, 3), ""); }

TEST(LiveView, panel_has_bar_curve_numbers_and_sample_and_is_removed) {
  const std::string text = drawn(true, 1);
  EXPECT_TRUE(text.starts_with("sine: a network\n██████░░░░░░░░░░░░░░░░░░  25 %  step 50/200\n       2 │")) << text;
  EXPECT_NE(text.find("loss 0.01235  heldout_exact 0.5"), std::string::npos);
  // Title, bar, six lines of curve, numbers and two lines of the sample.
  EXPECT_TRUE(text.ends_with("  first\n  second\n\033[11A\r\033[J")) << text;
}

TEST(LiveView, is_drawn_at_most_ten_times_a_second) { EXPECT_LT(drawn(true, 1000).size(), 4000u); }

}  // namespace
}  // namespace lockstep::experiment
