// SPDX-License-Identifier: Apache-2.0
// The lines of a gzip'd text, one after another.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "ir/support/result.h"

namespace lockstep::conformance {

class GzipLines {
 public:
  /// A regular file that unpacks to at most `most_bytes`, with lines of at most kMostLineBytes. code conformance.file
  static Result<GzipLines> open(const std::filesystem::path& path, uint64_t most_bytes);
  GzipLines(GzipLines&&) noexcept;
  GzipLines& operator=(GzipLines&&) noexcept;
  ~GzipLines();
  /// The next line without its end; nothing after the last. A damaged file, or one beyond the limits, is a Failure (conformance.file).
  Result<std::optional<std::string>> next();

 private:
  struct State;
  explicit GzipLines(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace lockstep::conformance
