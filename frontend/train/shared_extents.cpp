// SPDX-License-Identifier: Apache-2.0
#include "frontend/train/shared_extents.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <exception>
#include <functional>
#include <numeric>
#include <stdexcept>

#include "frontend/trace/tensor.h"
#include "ir/support/narrate.h"

namespace lockstep::detail {

namespace {
constexpr int64_t kLeastShared = 3;  // of extent 1 axes are broadcast, and 2 has no smaller one to compare with
constexpr int64_t kMostShared = int64_t{1} << 30;
}  // namespace

void ExtentChooser::refuse(int64_t capacity) {
  wide_[capacity] = {.traced = {}, .shared = nullptr, .numbers = {}, .is_refused = true};
  std::erase_if(chosen_, [&](const auto& entry) { return entry.second.shared != nullptr && entry.second.shared->capacity == capacity; });
}

const ChosenExtent& ExtentChooser::choose(int64_t extent, const TraceAt& traceAt) {
  if (first_ == 0) first_ = extent;
  if (const auto known = chosen_.find(extent); known != chosen_.end()) return known->second;
  ChosenExtent& chosen = chosen_[extent];
  if (extent == first_ || extent < kLeastShared || extent > kMostShared) return chosen;
  const auto capacity = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(extent)));
  std::string why;
  try {
    auto found = wide_.find(capacity);
    if (found == wide_.end()) found = wide_.emplace(capacity, Wide{}).first;
    Wide& wide = found->second;
    if (!wide.is_refused && wide.traced.outputs.empty()) {
      wide.is_refused = true;  // unless it comes to an end
      wide.traced = traceAt(capacity);
      wide.is_refused = false;
    }
    if (wide.is_refused) return chosen;
    if (extent == capacity && wide.shared != nullptr) return chosen = {wide.shared, wide.numbers};
    // At the capacity itself nothing is narrower: any smaller extent shows which axes are open.
    const int64_t narrow = extent == capacity ? capacity - 1 : extent;
    passes::OpenExtents open = passes::openExtents(wide.traced, traceAt(narrow), capacity, narrow, why);
    if (open.graph.outputs.empty()) throw std::runtime_error(why);
    if (wide.shared == nullptr) {
      wide.shared = std::make_shared<const SharedExtents>(SharedExtents{capacity, std::move(open.graph), std::move(open.outputs)});
      wide.numbers = std::move(open.wide_numbers);
    } else if (open.graph != wide.shared->graph || open.outputs != wide.shared->outputs) {
      throw std::runtime_error("it does something else than others");
    }
    chosen = {wide.shared, extent == capacity ? wide.numbers : std::move(open.narrow_numbers)};
  } catch (const std::exception& error) {
    narrate([&] { return fmt::format("the extent {} gets a program of its own: {}", extent, error.what()); });
  }
  return chosen;
}

std::vector<std::byte> filledUp(const graph::TensorType& declared, std::span<const std::byte> bytes, int64_t extent, int64_t capacity) {
  const std::vector<int64_t> extents = declared.shape.extents();
  const auto axis = std::ranges::find(extents, dynamic);
  const auto product = [](auto first, auto last) { return std::accumulate(first, last, int64_t{1}, std::multiplies()); };
  const int64_t outer = product(extents.begin(), axis);
  const auto row = static_cast<size_t>(product(axis + 1, extents.end())) * graph::byteSize(declared.dtype);
  const size_t counted = static_cast<size_t>(extent) * row, surplus = static_cast<size_t>(capacity - extent) * row;
  std::vector<std::byte> filled;
  filled.reserve(static_cast<size_t>(outer) * (counted + surplus));
  for (int64_t block = 0; block < outer; ++block) {
    const std::span<const std::byte> from = bytes.subspan(static_cast<size_t>(block) * counted, counted);
    filled.insert(filled.end(), from.begin(), from.end());
    filled.insert(filled.end(), from.begin(), from.begin() + static_cast<ptrdiff_t>(surplus));  // less than the extent
  }
  return filled;
}

HostTensor counted(const std::string& name, const graph::TensorType& type, std::span<const std::byte> bytes, const graph::OpenAxes& axes,
                   int64_t capacity, int64_t extent) {
  const std::vector<int64_t> extents = type.shape.extents();
  std::vector<int64_t> kept = extents;
  size_t outer_rank = 0;  // axes up to the last open one: elements that differ in later axes only count together
  for (size_t axis = 0; axis < axes.size(); ++axis) {
    if (axes[axis] == 0) continue;
    kept[axis] = extents[axis] / capacity * extent;
    outer_rank = axis + 1;
  }
  int64_t outer = 1;
  for (size_t axis = 0; axis < outer_rank; ++axis) outer *= extents[axis];
  const size_t run = static_cast<size_t>(type.shape.elementCount() / outer) * graph::byteSize(type.dtype);
  const graph::TensorType counted_type{type.dtype, graph::Shape(kept)};
  std::vector<std::byte> counted;
  counted.reserve(counted_type.byteSize());
  for (int64_t flat = 0; flat < outer; ++flat) {
    bool counts = true;
    int64_t rest = flat;
    for (size_t axis = outer_rank; axis-- > 0; rest /= extents[axis]) {
      const int64_t inner = graph::fromFirst(axes[axis], extents[axis], capacity);
      counts = counts && (inner == 0 || rest % extents[axis] / inner % capacity < extent);
    }
    if (!counts) continue;
    const std::span<const std::byte> elements = bytes.subspan(static_cast<size_t>(flat) * run, run);
    counted.insert(counted.end(), elements.begin(), elements.end());
  }
  counted.resize(counted_type.byteSize());
  return {name, counted_type, counted};
}

}  // namespace lockstep::detail
