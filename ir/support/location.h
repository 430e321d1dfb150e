// SPDX-License-Identifier: Apache-2.0
// A place in a text: the user's C++ source, a WGSL file or an IR text.
#pragma once

#include <cstdint>
#include <string>

namespace lockstep {

struct Location {
  std::string file;
  uint32_t line = 0;    ///< 1-based; 0 means unknown
  uint32_t column = 0;  ///< 1-based; 0 means unknown
  /// Line and column are those of a WGSL text inside of another file; `file` says which: "kernel 'scale' at model.cpp:12".
  bool embedded = false;
  /// Read from a text, which may be somebody else's: `file` is shown and never opened. No part of the place itself.
  bool quoted = false;
  [[nodiscard]] bool known() const { return line != 0; }
  friend bool operator==(const Location& a, const Location& b) {
    return a.line == b.line && a.column == b.column && a.embedded == b.embedded && a.file == b.file;
  }
};

/// Can be printed as it is. "file:line:column" with the unknown parts left out; of an embedded text "kernel 'scale' at model.cpp:12, line 3
/// of its WGSL".
std::string toString(const Location& location);

}  // namespace lockstep
