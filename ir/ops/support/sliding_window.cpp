// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/support/sliding_window.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "ir/ops/support/common.h"

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

bool tile(const std::vector<Window>& windows, const std::vector<int64_t>& extents) {
  for (size_t i = 0; i < windows.size(); ++i) {
    const Window& w = windows[i];
    bool plain = w.padding_low == 0 && w.padding_high == 0 && w.input_dilation == 1 && (w.dilation == 1 || w.kernel == 1);
    if (!plain || w.kernel != w.stride || extents[extents.size() - windows.size() + i] % w.kernel != 0) return false;
  }
  return true;
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

ValueId gatherWindows(Builder& b, ValueId y, const std::vector<Window>& windows, const std::vector<int64_t>& extents, double fill) {
  // Solved for the position: element i of x is element k of the window at (i * input_dilation + padding_low - k * dilation) / stride.
  std::vector<int64_t> stride, padding, dilation, input_dilation;
  for (const Window& window : windows) {
    stride.push_back(window.input_dilation);
    padding.push_back(-window.padding_low);
    dilation.push_back(-window.dilation);
    input_dilation.push_back(window.stride);
  }
  return b.make("skew", {y},
                {{"extents", extents},
                 {"stride", stride},
                 {"padding", padding},
                 {"dilation", dilation},
                 {"input_dilation", input_dilation},
                 {"fill", fill}});
}

Result<std::vector<Window>> poolingWindows(std::string_view op, const TensorType& x, const Attributes& attributes) {
  if (x.dtype != DType::F32 || x.shape.rank() < 3) return violated(op, "C1", fmt::format("x is {}, wanted f32 [B, C, S...]", toString(x)));
  size_t n = x.shape.rank() - 2;
  LS_CHECK(checkWindows(op, "C2", attributes, n));
  std::vector<Window> windows = windowsOf(attributes);
  if (windows.size() != n) return violated(op, "C2", fmt::format("wanted {} numbers a list", n));
  for (const Window& window : windows) {
    if (window.padding_low < 0 || 2 * window.padding_low > window.kernel)
      return violated(op, "C2", fmt::format("padding is {} with a kernel of {} elements", window.padding_low, window.kernel));
  }
  LS_TRY(const std::vector<int64_t> positions, windowPositions(op, "C3", x.shape, windows));
  std::vector<int64_t> seen = x.shape.extents();
  for (size_t i = 0; i < n; ++i) {
    seen[2 + i] = positions[i];
    seen.push_back(windows[i].kernel);
  }
  LS_CHECK(checkExtents(op, "C3", seen));
  return windows;
}

Shape pooledShape(const Shape& x, const std::vector<Window>& windows) {
  std::vector<int64_t> extents = x.extents();
  for (size_t i = 0; i < windows.size(); ++i) extents[2 + i] = windows[i].positions(extents[2 + i]);
  return Shape(extents);
}

ValueId overKernel(Builder& b, ValueId y, const std::vector<Window>& windows) {
  std::vector<int64_t> ones = b.shapeOf(y).extents(), whole = ones;
  for (const Window& window : windows) {
    ones.push_back(1);
    whole.push_back(window.kernel);
  }
  return b.broadcastTo(b.reshape(y, Shape(ones)), Shape(whole));
}

}  // namespace lockstep::graph
