// SPDX-License-Identifier: Apache-2.0
// The lines of a gzip'd text, one after another.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "ir/support/result.h"

namespace lockstep::conformance {

class GzipLines {
 public:
  /// code conformance.file
  static Result<GzipLines> open(const std::filesystem::path& path);
  GzipLines(GzipLines&&) noexcept;
  GzipLines& operator=(GzipLines&&) noexcept;
  ~GzipLines();
  /// The next line without its end; nothing after the last. A damaged file is a Failure (conformance.file).
  Result<std::optional<std::string>> next();

 private:
  struct State;
  explicit GzipLines(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace lockstep::conformance
