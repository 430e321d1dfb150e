// SPDX-License-Identifier: Apache-2.0
#include "passes/graph/check_indices.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "ir/graph/builder.h"

namespace lockstep::passes {

using namespace graph;

std::string indexRowName(size_t number) { return fmt::format("index.{}{}", number, kCheckRow); }
std::string indexValueName(size_t number) { return fmt::format("index.{}{}", number, kCheckValue); }

bool isIndexRow(std::string_view output) { return output.ends_with(kCheckRow); }

namespace {

/// What all checks of an input agree on.
struct InputRange {
  int64_t below = std::numeric_limits<int64_t>::max();
  std::optional<int64_t> ignored;
};

/// An element that one check ignores must be right for the others too.
InputRange rangeOf(const std::vector<IndexCheck>& checks, ValueId index) {
  InputRange range;
  const auto isRight = [&](int64_t element) {
    return std::ranges::all_of(checks, [&](const IndexCheck& check) {
      return check.index != index || check.range.ignored == element || (element >= 0 && element < check.range.extent);
    });
  };
  for (const IndexCheck& check : checks) {
    if (check.index != index) continue;
    range.below = std::min(range.below, check.range.extent);
    if (check.range.ignored && isRight(*check.range.ignored)) range.ignored = check.range.ignored;
  }
  return range;
}

}  // namespace

Result<Graph> checkIndices(const Graph& graph) {
  const auto [extended, checks] = findIndexChecks(graph);
  Builder b(extended);
  for (const IndexCheck& check : checks) {
    if (!check.is_given) continue;
    const InputRange range = rangeOf(checks, check.index);
    Attributes& attributes = b.mutableGraph().nodes[extended[check.index].node.index()].attributes;
    attributes.set("below", range.below);
    if (range.ignored) attributes.set("ignored", *range.ignored);
  }
  for (size_t i = 0; i < checks.size(); ++i) {
    const IndexCheck& check = checks[i];
    if (check.is_given) continue;
    b.setLocation(check.where == Location{} ? 0 : b.addLocation(check.where));
    const int64_t count = b.shapeOf(check.index).elementCount();
    const ValueId index = b.reshape(check.index, Shape{count});
    const TensorType integers{DType::I32, Shape{count}}, words{DType::U32, Shape{count}};
    // A negative index is a large u32.
    const ValueId word = b.make("cast", {index}, {{"dtype", DType::U32}});
    ValueId outside = b.make("greater_equal", {word, b.constant(static_cast<double>(check.range.extent), words)});
    if (check.range.ignored) {
      const ValueId ignored = b.constant(static_cast<double>(*check.range.ignored), integers);
      outside = b.make("logical_and", {outside, b.make("not_equal", {index, ignored})});
    }
    const ValueId position = b.make("arange", {}, {{"n", count}, {"dtype", DType::I32}});
    const ValueId candidate = b.make("where", {outside, position, b.constant(kNoRow, integers)});
    const ValueId row = b.make("reduce_min", {candidate}, {{"axes", std::vector<int64_t>{0}}, {"keep_dims", true}});
    const TensorType one{DType::I32, Shape{1}};
    const ValueId place = b.make("min", {row, b.constant(static_cast<double>(count - 1), one)});
    const ValueId value = b.make("take_along_axis", {index, place}, {{"axis", int64_t{0}}});
    b.output(OutputKind::Check, indexRowName(i), b.reshape(row, Shape{}));
    b.output(OutputKind::Check, indexValueName(i), b.reshape(value, Shape{}));
  }
  b.setLocation(0);
  return b.take();
}

}  // namespace lockstep::passes
