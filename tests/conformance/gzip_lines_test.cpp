// SPDX-License-Identifier: Apache-2.0
#include "conformance/gzip_lines.h"

#include <sys/stat.h>

#include "conformance/recorded_number.h"
#include "tests/conformance/temporary_data.h"

namespace lockstep::conformance {
namespace {

std::vector<std::string> linesOf(const std::filesystem::path& path) {
  std::vector<std::string> lines;
  Result<GzipLines> file = GzipLines::open(path, kMostFileBytes);
  EXPECT_TRUE(file.ok());
  while (file.ok()) {
    Result<std::optional<std::string>> line = file->next();
    EXPECT_TRUE(line.ok());
    if (!line.ok() || !*line) break;
    lines.push_back(std::move(**line));
  }
  return lines;
}

TEST(GzipLines, AreReadInOrder) {
  const TemporaryData data;
  data.write("some", "one\n\nthree\n");
  EXPECT_EQ(linesOf(data.pathOf("some")), (std::vector<std::string>{"one", "", "three"}));
}

TEST(GzipLines, TheLastNeedsNoEnd) {
  const TemporaryData data;
  data.write("some", "one\ntwo");
  EXPECT_EQ(linesOf(data.pathOf("some")), (std::vector<std::string>{"one", "two"}));
}

TEST(GzipLines, AnEmptyFileHasNone) {
  const TemporaryData data;
  data.write("some", "");
  EXPECT_TRUE(linesOf(data.pathOf("some")).empty());
}

TEST(GzipLines, MayBeLongerThanTheBuffer) {
  const TemporaryData data;
  const std::string longest((size_t{5} << 20u) + 17, 'x');
  data.write("some", longest + "\nend\n");
  EXPECT_EQ(linesOf(data.pathOf("some")), (std::vector<std::string>{longest, "end"}));
}

TEST(GzipLines, ADamagedFileIsAFailure) {
  const TemporaryData data;
  std::string text;
  for (int i = 0; i < 20000; ++i) text += std::to_string(i * 7919) + "\n";
  data.write("some", text);
  std::filesystem::resize_file(data.pathOf("some"), std::filesystem::file_size(data.pathOf("some")) / 2);
  Result<GzipLines> file = GzipLines::open(data.pathOf("some"), kMostFileBytes);
  ASSERT_TRUE(file.ok());
  for (;;) {
    const Result<std::optional<std::string>> line = file->next();
    if (!line.ok()) {
      EXPECT_EQ(line.diagnostics().front().code, "conformance.file");
      return;
    }
    ASSERT_TRUE(*line) << "half of the file passes for the whole";
  }
}

/// The code of the first failure, or "" when all lines can be read.
std::string codeOf(const std::filesystem::path& path, uint64_t most_bytes) {
  Result<GzipLines> file = GzipLines::open(path, most_bytes);
  if (!file.ok()) return file.diagnostics().front().code;
  for (;;) {
    const Result<std::optional<std::string>> line = file->next();
    if (!line.ok()) return line.diagnostics().front().code;
    if (!*line) return "";
  }
}

TEST(GzipLines, AFileThatLacksItsChecksumIsAFailure) {
  const TemporaryData data;
  data.write("some", "one\ntwo\n");
  EXPECT_EQ(codeOf(data.pathOf("some"), kMostFileBytes), "");
  std::filesystem::resize_file(data.pathOf("some"), std::filesystem::file_size(data.pathOf("some")) - 8);
  EXPECT_EQ(codeOf(data.pathOf("some"), kMostFileBytes), "conformance.file");
}

TEST(GzipLines, UnpackToNoMoreThanTheirLimit) {
  const TemporaryData data;
  std::string text;
  for (int i = 0; i < 1000; ++i) text += "a line\n";
  data.write("some", text);
  EXPECT_EQ(codeOf(data.pathOf("some"), text.size()), "");
  EXPECT_EQ(codeOf(data.pathOf("some"), text.size() - 1), "conformance.file");
}

TEST(GzipLines, OneLineHasALimit) {
  const TemporaryData data;
  data.write("some", std::string(kMostLineBytes + 1, 'x'));
  EXPECT_EQ(codeOf(data.pathOf("some"), kMostFileBytes), "conformance.file");
}

TEST(GzipLines, APipeIsNotWaitedFor) {
  const TemporaryData data;
  ASSERT_EQ(::mkfifo(data.pathOf("some").c_str(), 0600), 0);
  EXPECT_EQ(codeOf(data.pathOf("some"), kMostFileBytes), "conformance.file");
}

TEST(GzipLines, AMissingFileIsAFailure) {
  const TemporaryData data;
  const Result<GzipLines> file = GzipLines::open(data.pathOf("none"), kMostFileBytes);
  ASSERT_FALSE(file.ok());
  EXPECT_EQ(file.diagnostics().front().code, "conformance.file");
}

}  // namespace
}  // namespace lockstep::conformance
