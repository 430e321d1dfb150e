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
  [[nodiscard]] bool known() const { return line != 0; }
  friend bool operator==(const Location&, const Location&) = default;
};

/// "file:line:column" with the unknown parts left out; of an embedded text "kernel 'scale' at model.cpp:12, line 3 of its WGSL".
std::string toString(const Location& location);

}  // namespace lockstep
