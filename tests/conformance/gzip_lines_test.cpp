// SPDX-License-Identifier: Apache-2.0
#include "conformance/gzip_lines.h"

#include "tests/conformance/temporary_data.h"

namespace lockstep::conformance {
namespace {

std::vector<std::string> linesOf(const std::filesystem::path& path) {
  std::vector<std::string> lines;
  Result<GzipLines> file = GzipLines::open(path);
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
  Result<GzipLines> file = GzipLines::open(data.pathOf("some"));
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

TEST(GzipLines, AMissingFileIsAFailure) {
  const TemporaryData data;
  const Result<GzipLines> file = GzipLines::open(data.pathOf("none"));
  ASSERT_FALSE(file.ok());
  EXPECT_EQ(file.diagnostics().front().code, "conformance.file");
}

}  // namespace
}  // namespace lockstep::conformance
