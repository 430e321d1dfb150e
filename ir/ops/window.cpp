// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/window.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "ir/ops/common.h"

namespace lockstep::graph {
namespace {

struct Field {
  std::string_view name;
  int64_t Window::* member;
  int64_t lo;
};
constexpr int64_t kMost = int64_t{1} << 30;
constexpr std::array kFields{Field{"kernel", &Window::kernel, 1},
                             Field{"stride", &Window::stride, 1},
                             Field{"padding_low", &Window::padding_low, -kMost + 1},
                             Field{"padding_high", &Window::padding_high, -kMost + 1},
                             Field{"dilation", &Window::dilation, 1},
                             Field{"input_dilation", &Window::input_dilation, 1},
                             Field{"padding", &Window::padding_low, -kMost + 1},
                             Field{"padding", &Window::padding_high, -kMost + 1}};

const std::vector<int64_t>* listOf(const Attributes& attributes, std::string_view name) {
  const Attribute* found = attributes.find(name);
  return found == nullptr ? nullptr : std::get_if<std::vector<int64_t>>(found);
}

}  // namespace

int64_t Window::positions(int64_t extent) const {
  int64_t room = input_dilation * (extent - 1) + padding_low + padding_high - dilation * (kernel - 1);
  return room < 0 ? 0 : room / stride + 1;
}

bool Window::tiles(int64_t extent) const {
  bool plain = padding_low == 0 && padding_high == 0 && input_dilation == 1 && (dilation == 1 || kernel == 1);
  return plain && kernel == stride && extent % kernel == 0;
}

std::vector<Window> windowsOf(const Attributes& attributes) {
  std::vector<Window> windows;
  for (const Field& field : kFields) {
    const std::vector<int64_t>* list = listOf(attributes, field.name);
    if (list == nullptr) continue;
    windows.resize(list->size());
    for (size_t i = 0; i < list->size(); ++i) windows[i].*field.member = (*list)[i];
  }
  return windows;
}

Attributes attributesOf(const std::vector<Window>& windows) {
  Attributes attributes;
  for (const Field& field : kFields) {
    if (field.name == "padding") continue;
    std::vector<int64_t> list;
    for (const Window& window : windows) list.push_back(window.*field.member);
    attributes.set(std::string(field.name), std::move(list));
  }
  return attributes;
}

Status checkWindows(std::string_view op, std::string_view label, const Attributes& attributes, size_t rank) {
  size_t count = 0;
  for (const Field& field : kFields) {
    const std::vector<int64_t>* list = listOf(attributes, field.name);
    if (list == nullptr) continue;
    if (count == 0) count = list->size();
    if (list->empty() || list->size() != count || count > rank) {
      return violated(op, label,
                      fmt::format("{} has {} numbers, wanted one for each of at most {} axes, as many as the other lists", field.name,
                                  list->size(), rank));
    }
    for (int64_t number : *list) {
      if (number < field.lo || number >= kMost) return violated(op, label, fmt::format("{} has the number {}", field.name, number));
    }
  }
  return Success{};
}

Result<std::vector<int64_t>> windowPositions(std::string_view op, std::string_view label, const Shape& shape,
                                             const std::vector<Window>& windows) {
  std::vector<int64_t> positions;
  for (size_t i = 0; i < windows.size(); ++i) {
    const Window& window = windows[i];
    int64_t extent = shape.extent(shape.rank() - windows.size() + i);
    int64_t padded = window.input_dilation * (extent - 1) + 1 + window.padding_low + window.padding_high;
    positions.push_back(window.positions(extent));
    if (positions.back() < 1 || padded > INT32_MAX) {
      return violated(op, label,
                      fmt::format("a kernel of {} elements with dilation {} does not fit into {} elements with padding {} and {}",
                                  window.kernel, window.dilation, extent, window.padding_low, window.padding_high));
    }
  }
  return positions;
}

ValueId makeWindows(Builder& b, ValueId x, const std::vector<Window>& windows, double fill) {
  Attributes attributes = attributesOf(windows);
  attributes.set("fill", fill);
  return b.make("windows", {x}, std::move(attributes));
}

ValueId makeFold(Builder& b, ValueId y, const std::vector<Window>& windows, const std::vector<int64_t>& extents) {
  Attributes attributes = attributesOf(windows);
  attributes.set("extents", extents);
  return b.make("fold", {y}, std::move(attributes));
}

}  // namespace lockstep::graph
