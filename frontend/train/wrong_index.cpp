// SPDX-License-Identifier: Apache-2.0
#include "frontend/train/wrong_index.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

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

Diagnostic describeWrongIndex(const passes::IndexCheck& check, int64_t row, int64_t value, std::string_view when) {
  const graph::IndexUse& range = check.range;
  std::string right = range.extent == 1 ? "0 is right" : fmt::format("0 to {} are right", range.extent - 1);
  if (range.ignored) right = fmt::format("0 to {} and the ignored {} are right", range.extent - 1, *range.ignored);
  return {.code = check.is_given ? "batch.index" : "step.index",
          .message = fmt::format("{} {}{}{} is outside the {} {} ({}, {})", range.what, value, placeOf(check.shape, row),
                                 check.leaf.empty() ? "" : fmt::format(" of '{}'", check.leaf), range.extent, range.places, check.op, when),
          .where = check.where,
          .notes = {},
          .remedy = right + "; look at the data"};
}

void checkGivenIndices(const std::vector<passes::IndexCheck>& checks, const std::vector<InputSpec>& inputs, const Batch& batch,
                       std::string_view when) {
  for (const passes::IndexCheck& check : checks) {
    if (!check.is_given) continue;
    const auto item = std::ranges::find_if(batch, [&](const BatchItem& given) { return given.name == check.leaf; });
    if (item == batch.end()) continue;  // a value of the step itself
    const auto values = std::get<std::span<const int32_t>>(item->data);
    const auto extent = static_cast<uint32_t>(std::min<int64_t>(check.range.extent, INT32_MAX));
    const auto ignored = static_cast<int32_t>(check.range.ignored.value_or(0));  // 0 is right anyway
    const auto isWrong = [&](int32_t value) { return (static_cast<uint32_t>(value) >= extent) & (value != ignored); };
    // All of them, as a loop without an early end runs in vectors.
    uint32_t any = 0;
    for (int32_t value : values) any |= static_cast<uint32_t>(isWrong(value));
    if (any == 0) continue;
    const auto wrong = std::ranges::find_if(values, isWrong);
    passes::IndexCheck found = check;
    const auto input = std::ranges::find(inputs, check.leaf, &InputSpec::name);
    if (input != inputs.end()) found.shape = input->type.shape;  // a program for several extents has that of its capacity
    throw Error(describeWrongIndex(found, wrong - values.begin(), *wrong, when));
  }
}

}  // namespace lockstep::detail
