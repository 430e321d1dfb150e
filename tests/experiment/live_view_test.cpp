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
          .steps_per_second = 2,
          .device = "vulkan:0",
          .memory_bytes = 1536 * 1024,
          .metrics = "heldout_exact 0.5",
          .lr = 0.005,
          .grad_norm = 0.75,
          .trends = {{"heldout_exact", {0.0, 0.25, 0.5}, 50}, {"psnr_db", {20}, 40}}};
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
  EXPECT_EQ(progressLine(progress()), "step 50/200  loss 0.01235  heldout_exact 0.5  2 steps/s  1 min 15 s left  vulkan:0  1.5 MiB");
  Progress first = progress();
  first.steps_per_second = {};
  EXPECT_EQ(progressLine(first), "step 50/200  loss 0.01235  heldout_exact 0.5  vulkan:0  1.5 MiB");
}

TEST(LiveView, pipe_gets_nothing) { EXPECT_EQ(drawn(false, 3), ""); }

TEST(LiveView, panel_has_bar_curve_numbers_and_sample_and_is_removed) {
  const std::string text = drawn(true, 1);
  EXPECT_TRUE(text.starts_with("sine: a network\n██████░░░░░░░░░░░░░░░░░░  25 %  step 50/200\n       2 │")) << text;
  EXPECT_NE(text.find("\nloss 0.01235  2 steps/s  1 min 15 s left  vulkan:0  1.5 MiB\nlearning rate 0.005  gradient norm 0.75\n"),
            std::string::npos)
      << text;
  // A line for each metric, with its last value and where that was measured.
  EXPECT_NE(text.find("\nheldout_exact  0.5        ▁▅█  step 50\npsnr_db        20         ▁  step 40\n"), std::string::npos) << text;
  // Title, bar, six lines of curve, two lines of numbers, two metrics and two lines of the sample.
  EXPECT_TRUE(text.ends_with("  first\n  second\n\033[14A\r\033[J")) << text;
}

TEST(LiveView, is_drawn_at_most_ten_times_a_second) { EXPECT_LT(drawn(true, 1000).size(), 4000u); }

TEST(LiveView, terminal_that_takes_nothing_is_no_error) {
  std::FILE* full = std::fopen("/dev/full", "w");
  ASSERT_NE(full, nullptr);
  std::setvbuf(full, nullptr, _IONBF, 0);
  {
    LiveView view(full, true, "a run");
    view.update({.step = 1, .steps = 2, .loss = 1, .device = "reference"}, std::vector<float>{1.0f});
    view.clear();
  }
  std::fclose(full);
}

}  // namespace
}  // namespace lockstep::experiment
