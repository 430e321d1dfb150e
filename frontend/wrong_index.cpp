// SPDX-License-Identifier: Apache-2.0
#include "frontend/wrong_index.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace lockstep::detail {

namespace {

/// " of row 3", " at [2, 5]"
std::string placeOf(const graph::Shape& shape, int64_t row) {
  if (shape.rank() == 0) return "";
  if (shape.rank() == 1) return fmt::format(" of row {}", row);
  std::vector<int64_t> index;
  for (int64_t stride : shape.strides()) {
    index.push_back(row / stride);
    row %= stride;
  }
  return fmt::format(" at [{}]", fmt::join(index, ", "));
}

}  // namespace

Diagnostic describeWrongIndex(const graph::Graph& traced, const passes::IndexCheck& check, int64_t row, int64_t value,
                              std::string_view when) {
  const graph::IndexUse& range = check.range;
  const graph::Node& user = traced[check.user];
  const std::string* input = graph::leafName(traced.definition(check.index));
  std::string right = range.extent == 1 ? "0 is right" : fmt::format("0 to {} are right", range.extent - 1);
  if (range.ignored) right = fmt::format("0 to {} and the ignored {} are right", range.extent - 1, *range.ignored);
  return {.code = "step.index",
          .message = fmt::format("{} {}{}{} is outside the {} {} ({}, {})", range.what, value, placeOf(traced.shapeOf(check.index), row),
                                 input == nullptr ? "" : fmt::format(" of '{}'", *input), range.extent, range.places, *user.op->name, when),
          .where = user.location == 0 ? Location{} : traced.locations[user.location - 1],
          .notes = {},
          .remedy = right + "; look at the data"};
}

}  // namespace lockstep::detail
