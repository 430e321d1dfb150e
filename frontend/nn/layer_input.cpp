// SPDX-License-Identifier: Apache-2.0
#include "frontend/nn/layer_input.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <string>

#include "frontend/trace/trace.h"

namespace lockstep::nn {

namespace {

/// "3 channels", "1 channel"
std::string counted(int64_t count, std::string_view noun) {
  return fmt::format("{} {}", count, count == 1 && noun.ends_with('s') ? noun.substr(0, noun.size() - 1) : noun);
}

class Check {
 public:
  Check(const Module& layer, const Tensor& x, const LayerInput& wanted, const Where& where)
      : layer_(layer), x_(x), wanted_(wanted), where_(where), type_(x.type(where)) {
    any_ = static_cast<size_t>(std::ranges::find(wanted.axes, std::string_view("..."), &LayerAxis::name) - wanted.axes.begin());
    open_ = any_ < wanted.axes.size();
    fixed_ = wanted.axes.size() - (open_ ? 1 : 0);
  }

  void run() const {
    if (type_.dtype != wanted_.dtype) fail("layer.type", fmt::format("got {}", toString(type_)), remedyForType());
    const size_t rank = type_.shape.rank();
    if (open_ ? rank < fixed_ : rank != fixed_) {
      fail("layer.rank", fmt::format("got {} of rank {}", toString(type_), rank), remedyForRank());
    }
    for (size_t i = 0; i < wanted_.axes.size(); ++i) {
      const LayerAxis& axis = wanted_.axes[i];
      if (axis.extent == 0 || extentAt(i) == axis.extent) continue;
      fail("layer.extent", fmt::format("got {} in {}", extentAt(i), toString(type_)), remedyForExtent(i));
    }
  }

 private:
  /// The axis of the tensor that belongs to axis `i` of the form.
  [[nodiscard]] size_t axisAt(size_t i) const { return i < any_ ? i : type_.shape.rank() - (wanted_.axes.size() - i); }
  [[nodiscard]] int64_t extentAt(size_t i) const { return type_.shape.extent(axisAt(i)); }

  /// "[B, C, H, W] with 3 channels"
  [[nodiscard]] std::string form() const {
    std::string text, counts;
    for (const LayerAxis& axis : wanted_.axes) {
      text += fmt::format("{}{}", text.empty() ? "" : ", ", axis.name);
      if (axis.extent != 0) counts += fmt::format("{} {}", counts.empty() ? " with" : " and", counted(axis.extent, axis.noun));
    }
    return fmt::format("[{}]{}", text, counts);
  }

  [[nodiscard]] std::string_view operand() const { return wanted_.operand.empty() ? "x" : wanted_.operand; }

  [[nodiscard]] std::string remedyForType() const {
    if (wanted_.dtype == DType::I32) return fmt::format("declare the input as ls::i32(...), or cast({}, ls::DType::I32)", operand());
    return fmt::format("declare the input as ls::f32(...), or cast({}, ls::DType::F32)", operand());
  }

  [[nodiscard]] std::string remedyForRank() const {
    const size_t rank = type_.shape.rank();
    if (rank + 1 == fixed_) return fmt::format("expand_dims({}, axis) adds an axis of extent 1", operand());
    if (rank > fixed_) return fmt::format("flatten({}, first, last) makes one axis of several", operand());
    return "reshape it to that form";
  }

  [[nodiscard]] std::string remedyForExtent(size_t i) const {
    const std::vector<int64_t> extents = type_.shape.extents();
    const auto axis = static_cast<ptrdiff_t>(axisAt(i));
    const int64_t wanted = wanted_.axes[i].extent;
    // Channels behind the positions, as pictures lie in files.
    if (i + 1 < wanted_.axes.size() && extents.back() == wanted) {
      std::vector<size_t> order(extents.size());
      std::iota(order.begin(), order.end(), size_t{0});
      std::rotate(order.begin() + axis, order.end() - 1, order.end());
      return fmt::format("permute({}, {{{}}}) puts the {} there", operand(), fmt::join(order, ", "), wanted_.axes[i].noun);
    }
    const int64_t after_batch = extents.empty() ? 0 : type_.shape.elementCount() / extents.front();
    if (i + 1 == wanted_.axes.size() && extents.size() > 2 && after_batch == wanted) {
      return fmt::format("flatten({}, 1) makes one axis of all but the first", operand());
    }
    if (wanted_.axes[i].noun == "rows") return fmt::format("give {} one row for each row of x", operand());
    return fmt::format("declare the layer with {}, or change the shape of {}", counted(extentAt(i), wanted_.axes[i].noun), operand());
  }

  [[noreturn]] void fail(std::string code, std::string_view got, std::string remedy) const {
    const std::string path = layer_.path();
    const std::string dtype = type_.dtype == wanted_.dtype ? "" : fmt::format("{} ", toString(wanted_.dtype));
    Diagnostic diagnostic{.code = std::move(code),
                          .message = fmt::format("{}{} expected {}{}{}, {}", wanted_.kind, path.empty() ? "" : fmt::format(" '{}'", path),
                                                 wanted_.operand.empty() ? "" : fmt::format("{} ", wanted_.operand), dtype, form(), got),
                          .where = {},
                          .notes = {},
                          .remedy = std::move(remedy)};
    const std::vector<NamedParameter> parameters = layer_.parameters();
    if (!parameters.empty() && detail::isCallers(parameters.front().parameter->where())) {
      diagnostic.notes.push_back({"the layer is declared here", detail::toLocation(parameters.front().parameter->where())});
    }
    detail::Trace::require("layer", where_).raise({.diagnostics = {std::move(diagnostic)}}, std::span(&x_, 1), where_);
  }

  const Module& layer_;
  const Tensor& x_;
  const LayerInput& wanted_;
  const Where& where_;
  TensorType type_;
  size_t any_ = 0;     ///< where "..." is
  size_t fixed_ = 0;   ///< axes without it
  bool open_ = false;  ///< whether it is there
};

}  // namespace

void checkInput(const Module& layer, const Tensor& x, const LayerInput& wanted, const Where& where) {
  Check(layer, x, wanted, where).run();
}

}  // namespace lockstep::nn
