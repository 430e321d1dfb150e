// SPDX-License-Identifier: Apache-2.0
// The place of a call, which errors and dumps show.
#pragma once

#include <cstdint>
#include <source_location>
#include <string_view>

namespace lockstep {

/// A place in a source file. In C++ it comes by itself, as the default argument `Where where = Where::current()`. A binding of another
/// language makes it of its own file and line, and gives it to each call.
class Where {
 public:
  constexpr Where() = default;                        ///< nowhere
  constexpr Where(const std::source_location& place)  // NOLINT(google-explicit-constructor): it is the same thing
      : file_(place.file_name()), line_(place.line()), column_(place.column()) {}
  /// Lines and columns count from 1; a column of 0 is not known. The name of the file is kept for as long as the process lives.
  static Where of(std::string_view file, uint32_t line, uint32_t column = 0);
  static constexpr Where current(const std::source_location& place = std::source_location::current()) { return place; }

  [[nodiscard]] constexpr const char* file_name() const { return file_; }
  [[nodiscard]] constexpr uint32_t line() const { return line_; }
  [[nodiscard]] constexpr uint32_t column() const { return column_; }

 private:
  const char* file_ = "";
  uint32_t line_ = 0, column_ = 0;
};

}  // namespace lockstep
