// SPDX-License-Identifier: Apache-2.0
// A folder of gzip'd lines that lives as long as a test.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <string_view>

namespace lockstep::conformance {

class TemporaryData {
 public:
  TemporaryData() {
    const testing::TestInfo* test = testing::UnitTest::GetInstance()->current_test_info();
    folder_ = std::filesystem::path(testing::TempDir()) / (std::string("lockstep_conformance_") + test->test_suite_name() + test->name());
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  TemporaryData(const TemporaryData&) = delete;
  TemporaryData& operator=(const TemporaryData&) = delete;
  ~TemporaryData() { std::filesystem::remove_all(folder_); }

  [[nodiscard]] const std::filesystem::path& folder() const { return folder_; }
  [[nodiscard]] std::filesystem::path pathOf(std::string_view file) const { return folder_ / (std::string(file) + ".jsonl.gz"); }

  /// Writes the text, compressed.
  void write(std::string_view file, std::string_view text) const;

 private:
  std::filesystem::path folder_;
};

}  // namespace lockstep::conformance
