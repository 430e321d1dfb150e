// SPDX-License-Identifier: Apache-2.0
// The file in which a device's peaks are kept.
#include "tools/profile/peaks.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "frontend/io/file.h"
#include "tests/frontend/io/scratch.h"

namespace lockstep::tools {
namespace {

using testing::ScratchDirectory;

const Peaks kPeaks{
    .bytes_per_second = 1e9, .operations_per_second = 2e9, .dispatch_seconds = 3e-6, .barrier_seconds = 0, .timed_dispatch_seconds = 4e-6};

/// Counts how often it is asked.
struct Measure {
  int calls = 0;
  std::function<Result<Peaks>()> function() {
    return [this]() -> Result<Peaks> {
      ++calls;
      return kPeaks;
    };
  }
};

TEST(PeaksFile, is_made_once_and_read_from_then_on) {
  const ScratchDirectory scratch("peaks-once");
  Measure measure;
  const Result<KnownPeaks> first = knownPeaks(scratch / "sub" / "p.json", false, measure.function());
  ASSERT_TRUE(first.ok());
  EXPECT_TRUE(first->measured);
  EXPECT_FALSE(first->not_kept.has_value());
  const Result<KnownPeaks> second = knownPeaks(scratch / "sub" / "p.json", false, measure.function());
  ASSERT_TRUE(second.ok());
  EXPECT_FALSE(second->measured);
  EXPECT_EQ(second->peaks, kPeaks);
  EXPECT_EQ(measure.calls, 1);
  ASSERT_TRUE(knownPeaks(scratch / "sub" / "p.json", true, measure.function()).ok());
  EXPECT_EQ(measure.calls, 2);
}

TEST(PeaksFile, is_measured_again_when_it_is_damaged) {
  const ScratchDirectory scratch("peaks-damaged");
  const std::string good = peaksJson(kPeaks);
  const std::string negative = R"({"bytes_per_second": -1, "operations_per_second": 1, "dispatch_seconds": 1, "barrier_seconds": 1,
                                   "timed_dispatch_seconds": 1})";
  for (const std::string& text : {std::string(), good.substr(0, good.size() / 2), std::string("[]"), std::string("{}"), negative}) {
    ASSERT_TRUE(io::writeFileAtomically(scratch / "p.json", std::string_view(text)).ok());
    Measure measure;
    const Result<KnownPeaks> known = knownPeaks(scratch / "p.json", false, measure.function());
    ASSERT_TRUE(known.ok());
    EXPECT_EQ(measure.calls, 1) << text;
    EXPECT_EQ(parsePeaks(*io::readTextFile(scratch / "p.json")), kPeaks) << text;
  }
}

TEST(PeaksFile, that_cannot_be_written_costs_nothing_but_itself) {
  const ScratchDirectory scratch("peaks-unwritable");
  // A file stands where the folder should be.
  ASSERT_TRUE(io::writeFileAtomically(scratch / "file", std::string_view("x")).ok());
  for (const std::filesystem::path& path : {scratch / "file" / "p.json", std::filesystem::path()}) {
    Measure measure;
    const Result<KnownPeaks> known = knownPeaks(path, false, measure.function());
    ASSERT_TRUE(known.ok());
    EXPECT_EQ(known->peaks, kPeaks);
    EXPECT_TRUE(known->not_kept.has_value());
  }
}

TEST(PeaksFile, a_failed_measurement_is_a_failure_and_writes_nothing) {
  const ScratchDirectory scratch("peaks-failed");
  const Result<KnownPeaks> known = knownPeaks(scratch / "p.json", false, []() -> Result<Peaks> { return fail("x", "no"); });
  EXPECT_FALSE(known.ok());
  EXPECT_EQ(scratch.fileCount(), 0u);
}

TEST(PeaksFile, is_named_after_device_and_driver) {
  const std::string before = std::getenv("LOCKSTEP_CACHE_DIR") == nullptr ? "" : std::getenv("LOCKSTEP_CACHE_DIR");
  ::setenv("LOCKSTEP_CACHE_DIR", "/caches", 1);
  DeviceInfo device;
  device.name = "Toy (R) GPU/9";
  device.driver = "toy 1.2";
  EXPECT_EQ(peaksFile(device), "/caches/peaks-Toy-R-GPU-9-toy-1.2.json");
  ::unsetenv("LOCKSTEP_CACHE_DIR");
  ::setenv("XDG_CACHE_HOME", "/xdg", 1);
  EXPECT_EQ(peaksFile(device), "/xdg/lockstep/peaks-Toy-R-GPU-9-toy-1.2.json");
  ::unsetenv("XDG_CACHE_HOME");
  if (!before.empty()) ::setenv("LOCKSTEP_CACHE_DIR", before.c_str(), 1);
}

}  // namespace
}  // namespace lockstep::tools
