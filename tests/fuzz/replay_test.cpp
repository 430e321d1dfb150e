// SPDX-License-Identifier: Apache-2.0
// The seeds of the fuzzers, what they once found, and the same mutations of both each time, without libFuzzer.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <random>
#include <vector>

#include "frontend/io/file.h"
#include "tests/fuzz/entries.h"
#include "tests/fuzz/seeds.h"

namespace lockstep::fuzz {
namespace {

namespace fs = std::filesystem;

using Bytes = std::vector<std::byte>;

constexpr uint32_t kSeed = 20261121;

/// writeSeeds(), for one process.
class MadeSeeds {
 public:
  MadeSeeds() : folder_(fs::path(LOCKSTEP_BINARY_DIR) / fmt::format("seeds-{}", ::getpid())) { writeSeeds(folder_); }
  MadeSeeds(const MadeSeeds&) = delete;
  MadeSeeds& operator=(const MadeSeeds&) = delete;
  ~MadeSeeds() {
    std::error_code none;
    fs::remove_all(folder_, none);
  }
  [[nodiscard]] const fs::path& folder() const { return folder_; }

 private:
  fs::path folder_;
};

const fs::path& madeSeeds() {
  static const MadeSeeds seeds;
  return seeds.folder();
}

void addFiles(const fs::path& folder, std::string_view ending, std::vector<fs::path>& files) {
  std::error_code none;
  for (const auto& file : fs::directory_iterator(folder, none)) {
    if (ending.empty() || file.path().extension() == ending) files.push_back(file.path());
  }
}

std::vector<fs::path> seedsOf(const Entry& entry) {
  std::vector<fs::path> files;
  if (entry.seeds.empty()) {
    addFiles(madeSeeds() / entry.name, {}, files);
  } else {
    addFiles(fs::path(LOCKSTEP_SOURCE_DIR) / entry.seeds, entry.ending, files);
  }
  return files;
}

/// Entries that read the same form share theirs.
std::string_view corpusName(const Entry& entry) { return entry.ending.empty() ? entry.name : entry.ending.substr(1); }

/// The seeds, and inputs that once broke a promise.
std::vector<fs::path> corpusOf(const Entry& entry) {
  std::vector<fs::path> files = seedsOf(entry);
  addFiles(fs::path(LOCKSTEP_SOURCE_DIR) / "tests/fuzz/corpus" / corpusName(entry), {}, files);
  std::ranges::sort(files);
  files.erase(std::unique(files.begin(), files.end()), files.end());
  return files;
}

class Mutator {
 public:
  Bytes mutate(Bytes bytes) {
    for (size_t edits = 1 + pick(4); edits > 0 && !bytes.empty(); --edits) edit(bytes);
    return bytes;
  }

 private:
  size_t pick(size_t count) { return random_() % count; }
  static auto at(Bytes& bytes, size_t index) { return bytes.begin() + static_cast<ptrdiff_t>(index); }

  void edit(Bytes& bytes) {
    const size_t where = pick(bytes.size()), length = std::min(1 + pick(24), bytes.size() - where);
    switch (pick(5)) {
      case 0:
        bytes[where] = static_cast<std::byte>(pick(256));
        break;
      case 1:
        bytes[where] ^= static_cast<std::byte>(1u << pick(8));
        break;
      case 2:
        bytes.erase(at(bytes, where), at(bytes, where + length));
        break;
      case 3: {  // a piece stands again somewhere else
        const Bytes piece(at(bytes, where), at(bytes, where + length));
        bytes.insert(at(bytes, pick(bytes.size())), piece.begin(), piece.end());
        break;
      }
      default:
        bytes.resize(where);
    }
  }

  std::mt19937 random_{kSeed};  // not a distribution of the library, so that every platform sees the same inputs
};

class Replay : public ::testing::TestWithParam<Entry> {};
TEST_P(Replay, corpus_and_its_mutations_keep_every_promise) {
  ASSERT_FALSE(seedsOf(GetParam()).empty());
  const std::vector<fs::path> files = corpusOf(GetParam());
  for (const fs::path& path : files) {
    const Bytes original = io::readFile(path).orThrow();
    ASSERT_NO_THROW(GetParam().run(original)) << path;
    Mutator mutator;
    for (int i = 0; i < GetParam().mutations; ++i) {
      const Bytes mutant = mutator.mutate(original);
      ASSERT_NO_THROW(GetParam().run(mutant)) << path << " mutation " << i;
    }
  }
}
INSTANTIATE_TEST_SUITE_P(All, Replay, ::testing::ValuesIn(kEntries), [](const auto& info) { return std::string(info.param.name); });

/// A seed that its reader refuses leads nowhere.
TEST(Seeds, that_are_made_are_accepted) {
  for (const Entry& entry : kEntries) {
    if (!entry.seeds.empty()) continue;
    for (const fs::path& path : seedsOf(entry)) EXPECT_TRUE(entry.run(io::readFile(path).orThrow())) << path;
  }
}

}  // namespace
}  // namespace lockstep::fuzz
