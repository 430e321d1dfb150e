// SPDX-License-Identifier: Apache-2.0
#include "backends/printed.h"

#include <fmt/format.h>

#include "ir/support/diagnostic.h"
#include "ir/support/text.h"

namespace lockstep {
namespace {

std::string laneText(kernel::Scalar scalar, double lane) {
  if (scalar == kernel::Scalar::Bool) return lane != 0 ? "true" : "false";
  const bool is_float = scalar == kernel::Scalar::F32 || scalar == kernel::Scalar::F16;
  return is_float ? formatFloat(static_cast<float>(lane)) : fmt::format("{:.0f}", lane);
}

std::string idText(const std::array<uint32_t, 3>& id) { return fmt::format("({}, {}, {})", id[0], id[1], id[2]); }

}  // namespace

std::string toString(const PrintedValue& value) {
  std::string text;
  if (value.lanes.empty()) {
    for (const PrintedValue& part : value.parts) {
      text += (text.empty() ? "" : ", ") + (part.name.empty() ? "" : withoutControls(part.name) + ": ") + toString(part);
    }
    return value.isStruct() ? "{" + text + "}" : "[" + text + "]";
  }
  for (const double lane : value.lanes) text += (text.empty() ? "" : ", ") + laneText(value.scalar, lane);
  return value.lanes.size() == 1 ? text : fmt::format("({})", text);
}

std::string toString(const PrintedLine& line) {
  std::string text = fmt::format("{}: workgroup {}, local {}:", toString(line.where), idText(line.workgroup), idText(line.local));
  if (!line.text.empty()) text += " " + withoutControls(line.text);
  bool first = true;
  for (const PrintedValue& value : line.values) {
    text += (first ? " " : ", ") + (value.name.empty() ? "" : withoutControls(value.name) + " = ") + toString(value);
    first = false;
  }
  return text;
}

std::string toString(const Printed& printed) {
  std::string text;
  for (const PrintedLine& line : printed.lines) text += toString(line) + "\n";
  if (printed.left_out != 0) text += fmt::format("... and {} more lines of print\n", printed.left_out);
  return text;
}

}  // namespace lockstep
