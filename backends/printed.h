// SPDX-License-Identifier: Apache-2.0
// What the `print`s of a kernel wrote.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "ir/kernel/type.h"
#include "ir/support/location.h"

namespace lockstep {

/// A scalar or vector, which has lanes, or else something of parts: the columns of a matrix, the elements of an array, the members of a
/// struct. Every scalar of a kernel is exact as a double; of bool it is 0 or 1.
struct PrintedValue {
  std::string name = {};  ///< what the kernel calls it; of a part the name of the member, which only structs have
  kernel::Scalar scalar = kernel::Scalar::F32;
  std::vector<double> lanes = {};
  std::vector<PrintedValue> parts = {};
  [[nodiscard]] bool isStruct() const { return !parts.empty() && !parts.front().name.empty(); }
  friend bool operator==(const PrintedValue&, const PrintedValue&) = default;
};

/// One execution of a `print` by one invocation.
struct PrintedLine {
  Location where;  ///< in the text that the kernel was read from
  std::array<uint32_t, 3> workgroup{}, local{};
  std::string text = {};  ///< the text of the print
  std::vector<PrintedValue> values = {};
  friend bool operator==(const PrintedLine&, const PrintedLine&) = default;
};

/// In the order of the dispatches; of one dispatch by workgroup and local_invocation_index, x first, and then as they were executed.
struct Printed {
  std::vector<PrintedLine> lines;
  uint64_t left_out = 0;  ///< lines after the first kMostPrintedLines
};

inline constexpr size_t kMostPrintedLines = 1000;

std::string toString(const PrintedValue& value);  ///< without its name: "0.5", "(1, -2)", "true", "[1, 2]", "{mass: 0.5, at: (1, -2)}"
/// "scale.wgsl:7:3: workgroup (0, 0, 0), local (5, 0, 0): before x = 0.5, 3"
std::string toString(const PrintedLine& line);
/// All lines, each with its line break, and one that counts what was left out.
std::string toString(const Printed& printed);

}  // namespace lockstep
