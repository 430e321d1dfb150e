// SPDX-License-Identifier: Apache-2.0
#include "tools/profile/profile_text.h"

#include <gtest/gtest.h>

#include <sstream>

#include "tests/tools/profile/sample_profile.h"

namespace lockstep::tools {
namespace {

std::vector<std::string> linesOf(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

size_t columns(const std::string& line) {
  return static_cast<size_t>(std::ranges::count_if(line, [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

TEST(ProfileText, is_a_table_of_kernels_by_time) {
  EXPECT_EQ(profileText(sampleProfile(), {}), R"(toy on vulkan:0, medians of 5 steps
Toy GPU, toy 1.2
peaks: 100 GB/s, 500 GFLOP/s; an empty dispatch 2.00 µs, a barrier 1.00 µs, a timed dispatch 6.00 µs

kernel                            calls       µs  share  bytes   GB/s   FLOP GFLOP/s  peak   bound
matmul+add                            2     60.0    60%   200K   3.33  16.0M     267   53% compute
  k0_tiled  toy.cpp:12
own kernel                            1     29.9    30%   2.0M   66.9      -       -   67%  memory
  k2_own
sum                                   1     10.0    10%   4.1K   0.41   1.0K    0.10  0.4%  launch
  k1_rows
copy params                           1     0.10   0.1%    512   5.12      0    0.00  5.1%  launch
total                                 5      100   100%   2.2M   22.0      -       -     -       -

critical path      89.9 µs   the longest dispatch of each of 3 levels
plain step         90.0 µs   batch 3.00, submit 7.00, wait 80.0
timed step          117 µs   batch 3.00, submit 7.00, wait 107 (+30 %)
transfers     2 KiB in, 256 B out
)");
}

TEST(ProfileText, all_has_a_line_for_each_dispatch_with_its_level) {
  const std::string text = profileText(sampleProfile(), {.all = true});
  EXPECT_NE(text.find("  level 0  k0_tiled  toy.cpp:12\n"), std::string::npos) << text;
  EXPECT_NE(text.find("  level 1  k0_tiled  toy.cpp:12\n"), std::string::npos) << text;
  EXPECT_EQ(text.find("other ("), std::string::npos) << text;
}

TEST(ProfileText, alternatives_follow_their_kernel) {
  Profile profile = sampleProfile();
  profile.alternatives["k0_tiled"] = {{"map {lanes = 64}", 20e-6, "Register Count 40"}, {"map {lanes = 128}", 15e-6}};
  const std::string text = profileText(profile, {});
  EXPECT_NE(text.find("  k0_tiled  toy.cpp:12\n"
                      "  plan  map {lanes = 64}  20.0 µs alone\n"
                      "        Register Count 40\n"
                      "  or    map {lanes = 128}  0.75 of that\n"
                      "own kernel"),
            std::string::npos)
      << text;
}

TEST(ProfileText, folds_many_small_kernels_and_loses_none) {
  Profile profile = sampleProfile();
  for (int i = 0; i < 40; ++i) {
    profile.commands.push_back({.label = fmt::format("small{}", i),
                                .kernel = fmt::format("k{}_map", 10 + i),
                                .groups = {1, 1, 1},
                                .level = 3,
                                .seconds = 1e-6,
                                .bytes = 1024,
                                .operations = 10});
  }
  const std::string text = profileText(profile, {});
  // Three rows are large and twelve small ones fill the table; 28 are left, and the copy.
  EXPECT_NE(text.find("other (29)                           29     28.1    20%  29.2K   1.04    280    0.01     -       -\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("total                                45"), std::string::npos) << text;
  double shares = 0;
  for (const ProfileRow& row : rowsOf(profile, false)) shares += row.share;
  EXPECT_NEAR(shares, 1, 1e-12);
}

TEST(ProfileText, fits_100_columns_whatever_the_label_is) {
  Profile profile = sampleProfile();
  profile.commands[0].label = std::string(300, 'x');
  profile.commands[0].kernel = std::string(300, 'k');
  profile.commands[0].seconds = 12.5;
  profile.commands[0].bytes = 123'456'789'012;
  profile.commands[0].operations = 98'765'432'109'876;
  for (const bool all : {false, true}) {
    for (const std::string& line : linesOf(profileText(profile, {.all = all}))) EXPECT_LE(columns(line), 100u) << line;
  }
}

TEST(ProfileText, colours_only_when_it_is_asked_to) {
  const std::string plain = profileText(sampleProfile(), {}), coloured = profileText(sampleProfile(), {.colour = true});
  EXPECT_EQ(plain.find('\x1b'), std::string::npos);
  std::string stripped;
  for (size_t i = 0; i < coloured.size(); ++i) {
    if (coloured[i] == '\x1b') {
      i = coloured.find('m', i);
    } else {
      stripped += coloured[i];
    }
  }
  EXPECT_NE(coloured, plain);
  EXPECT_EQ(stripped, plain);
}

TEST(ProfileText, without_peaks_says_nothing_about_them) {
  Profile profile = sampleProfile();
  profile.peaks.reset();
  const std::string text = profileText(profile, {});
  EXPECT_EQ(text.find("peaks:"), std::string::npos);
  for (const ProfileRow& row : rowsOf(profile, false)) EXPECT_EQ(row.bound, Bound::Unknown);
}

/// One command of 10 us on a device with 100 GB/s and 500 GFLOP/s.
ProfileRow judged(uint64_t bytes, std::optional<uint64_t> operations, double timed_dispatch = 1e-6) {
  Profile profile = sampleProfile();
  profile.peaks->timed_dispatch_seconds = timed_dispatch;
  profile.commands = {{.label = "x", .kernel = "k", .seconds = 10e-6, .bytes = bytes, .operations = operations}};
  return rowsOf(profile, false).front();
}

TEST(ProfileBound, is_what_comes_nearest_to_a_peak) {
  EXPECT_EQ(judged(600'000, 1'000'000).bound, Bound::Memory);   // 60 % and 20 %
  EXPECT_EQ(judged(100'000, 4'000'000).bound, Bound::Compute);  // 10 % and 80 %
  EXPECT_EQ(judged(100'000, 500'000).bound, Bound::Latency);    // 10 % and 10 %
  EXPECT_EQ(judged(600'000, 1'000'000, 6e-6).bound, Bound::Launch);
  EXPECT_DOUBLE_EQ(*judged(600'000, 1'000'000).peak_share, 0.6);
  EXPECT_DOUBLE_EQ(*judged(100'000, 4'000'000).peak_share, 0.8);
}

TEST(ProfileBound, is_not_guessed_where_operations_are_not_known) {
  EXPECT_EQ(judged(600'000, {}).bound, Bound::Memory);
  EXPECT_EQ(judged(100'000, {}).bound, Bound::Unknown);
}

TEST(ProfileTotals, critical_path_takes_the_longest_of_each_level) {
  const ProfileTotals totals = totalsOf(sampleProfile());
  EXPECT_EQ(totals.levels, 3u);
  EXPECT_NEAR(totals.seconds, 100e-6, 1e-12);
  EXPECT_NEAR(totals.critical_path, 40e-6 + 20e-6 + 29.9e-6, 1e-12);
  EXPECT_EQ(totals.bytes, 2'204'608u);
  EXPECT_EQ(totals.operations, std::nullopt);  // one kernel's are not known
}

TEST(ProfileDiff, is_sorted_by_the_change_and_says_what_exists_in_one_only) {
  const ProfileSummary before{.sample = "toy",
                              .device_name = "Toy GPU",
                              .labels = {{"matmul", 40e-6}, {"gone", 5e-6}, {"same", 7e-6}},
                              .seconds = 52e-6,
                              .step_seconds = 80e-6};
  const ProfileSummary after{.sample = "toy",
                             .device_name = "Toy GPU",
                             .labels = {{"same", 7e-6}, {"matmul", 30e-6}, {"new", 2e-6}},
                             .seconds = 39e-6,
                             .step_seconds = 60e-6};
  EXPECT_EQ(diffText(before, after), R"(before: toy on Toy GPU
after:  toy on Toy GPU

label                                                  before µs  after µs       ratio   change µs
matmul                                                      40.0      30.0       x0.75       -10.0
gone                                                        5.00         - only before       -5.00
new                                                            -      2.00  only after       +2.00
same                                                        7.00      7.00       x1.00       +0.00
total of the dispatches                                     52.0      39.0       x0.75       -13.0
plain step                                                  80.0      60.0       x0.75       -20.0
)");
}

}  // namespace
}  // namespace lockstep::tools
