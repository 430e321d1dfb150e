// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/support/common.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

namespace lockstep::graph {

Result<std::vector<TensorType>> inferSame(std::string_view op, const InferContext& context, std::initializer_list<DType> allowed) {
  const TensorType& first = context.operands.front();
  for (const TensorType& type : context.operands) {
    if (std::find(allowed.begin(), allowed.end(), type.dtype) == allowed.end() || type.dtype != first.dtype) {
      std::string wanted;
      for (DType dtype : allowed) wanted += fmt::format("{}{}", wanted.empty() ? "" : " or ", toString(dtype));
      if (context.operands.size() == 1) return violated(op, "C1", fmt::format("the operand is {}, wanted {}", toString(type), wanted));
      const std::string_view same = allowed.size() == 1 ? "" : "one type out of ";
      return violated(op, "C1", fmt::format("operands are {} and {}, wanted {}{}", toString(first), toString(type), same, wanted));
    }
    if (type.shape != first.shape)
      return violated(op, "C2", fmt::format("operands have shapes {} and {}", toString(first.shape), toString(type.shape)));
  }
  return std::vector{first};
}

Result<std::vector<TensorType>> inferCompare(std::string_view op, const InferContext& context, Compared allowed) {
  Result<std::vector<TensorType>> types = allowed == Compared::Numbers
                                              ? inferSame(op, context, {DType::F32, DType::I32, DType::U32})
                                              : inferSame(op, context, {DType::F32, DType::I32, DType::U32, DType::Bool});
  if (types.ok()) types->front().dtype = DType::Bool;
  return types;
}

Result<std::vector<TensorType>> inferReduced(std::string_view op, std::string_view label, const InferContext& context) {
  const TensorType& x = context.operands[0];
  const auto& axes = context.attributes.get<std::vector<int64_t>>("axes");
  for (int64_t axis : axes) LS_CHECK(checkAxis(op, label, axis, x.shape.rank()));
  if (std::adjacent_find(axes.begin(), axes.end(), std::greater_equal<>()) != axes.end())
    return violated(op, label, fmt::format("axes {} are not ascending and unique", fmt::join(axes, ",")));
  std::vector<Dim> dims;
  for (size_t axis = 0; axis < x.shape.rank(); ++axis) {
    bool reduced = std::find(axes.begin(), axes.end(), static_cast<int64_t>(axis)) != axes.end();
    if (!reduced) dims.push_back(x.shape[axis]);
    if (reduced && context.attributes.get<bool>("keep_dims")) dims.emplace_back(1);
  }
  return std::vector{TensorType{x.dtype, Shape(std::move(dims))}};
}

// An index of an element, and a position that argmax or a sort gives, is an i32.
constexpr uint64_t kMostElements = INT32_MAX;

Status checkExtents(std::string_view op, std::string_view label, const std::vector<int64_t>& extents) {
  uint64_t count = 1;
  for (int64_t extent : extents) {
    if (extent < 1) return violated(op, label, fmt::format("extent {} of shape [{}] is below 1", extent, fmt::join(extents, ",")));
    if (__builtin_mul_overflow(count, static_cast<uint64_t>(extent), &count) || count > kMostElements) {
      return violated(
          op, label,
          fmt::format("shape [{}] has more than {} elements, the most that a tensor may have", fmt::join(extents, ","), kMostElements));
    }
  }
  return Success{};
}

Status checkAxis(std::string_view op, std::string_view label, int64_t axis, size_t rank) {
  if (axis < 0 || axis >= static_cast<int64_t>(rank))
    return violated(op, label, fmt::format("axis {} is outside a tensor of rank {}", axis, rank));
  return Success{};
}

Status checkValue(std::string_view op, std::string_view label, double value, DType dtype) {
  const std::optional<IntegerRange> range = rangeOf(dtype);
  const auto within = [&] {
    return value >= static_cast<double>(range->lo) && value <= static_cast<double>(range->hi) && value == std::trunc(value);
  };
  // Elements of f32 are rounded where they are used; those of a packed type are what lies in memory.
  const bool fits = range ? within() : !isPacked(dtype) || std::isnan(value) || roundedTo(dtype, value) == value;
  if (!fits) return violated(op, label, fmt::format("{} is not a value of {}", value, toString(dtype)));
  return Success{};
}

bool isZero(const Builder& b, ValueId value) {
  const Node& maker = b.graph().definition(value);
  return leafKind(maker) == LeafKind::Constant && maker.attributes.get<double>("value") == 0;
}

Shape keptShape(const Shape& shape, const std::vector<int64_t>& axes) {
  std::vector<Dim> dims = shape.dims();
  for (int64_t axis : axes) dims[static_cast<size_t>(axis)] = 1;
  return Shape(std::move(dims));
}

std::vector<int64_t> allAxes(size_t rank) {
  std::vector<int64_t> axes;
  for (size_t axis = 0; axis < rank; ++axis) axes.push_back(static_cast<int64_t>(axis));
  return axes;
}

double wrapped(double value, DType dtype) {
  if (dtype == DType::I32) return static_cast<double>(static_cast<int32_t>(static_cast<int64_t>(value)));
  if (dtype == DType::U32) return static_cast<double>(static_cast<uint32_t>(static_cast<int64_t>(value)));
  return value;
}

std::vector<Tensor> evaluateEach(const EvaluateContext& context, double (*function)(double)) {
  Tensor out{context.results.front(), context.operands[0]->data};
  for (double& value : out.data) value = wrapped(function(value), out.type.dtype);
  return {std::move(out)};
}

std::vector<Tensor> evaluateEach(const EvaluateContext& context, double (*function)(double, double)) {
  Tensor out{context.results.front(), context.operands[0]->data};
  const std::vector<double>& b = context.operands[1]->data;
  for (size_t i = 0; i < out.data.size(); ++i) out.data[i] = wrapped(function(out.data[i], b[i]), out.type.dtype);
  return {std::move(out)};
}

std::vector<Tensor> evaluateReduced(const EvaluateContext& context, double (*combine)(double, double)) {
  const Tensor& x = *context.operands[0];
  const auto& axes = context.node.attributes.get<std::vector<int64_t>>("axes");
  std::vector<int64_t> strides = keptShape(x.type.shape, axes).strides();
  for (int64_t axis : axes) strides[static_cast<size_t>(axis)] = 0;
  size_t count = static_cast<size_t>(context.results[0].shape.elementCount());
  Tensor out{context.results[0], std::vector<double>(count)};
  std::vector<bool> started(count, false);
  std::vector<int64_t> extents = x.type.shape.extents(), index(extents.size(), 0);
  size_t flat = 0;
  do {
    size_t target = static_cast<size_t>(std::inner_product(index.begin(), index.end(), strides.begin(), int64_t{0}));
    double element = x.data[flat++];
    out.data[target] = started[target] ? combine(out.data[target], element) : element;
    started[target] = true;
  } while (nextIndex(index, extents));
  return {std::move(out)};
}

std::vector<OpCase> elementCases(size_t operands, double lo, double hi, double tolerance, std::string_view reason) {
  std::vector<OpCase> cases;
  for (const auto& [name, shape] : std::initializer_list<std::pair<std::string_view, Shape>>{
           {"small", {3, 5}}, {"odd", {257}}, {"four", {2, 3, 4, 5}}, {"scalar", {}}}) {
    cases.push_back({name, std::vector<OperandCase>(operands, OperandCase{f32(shape), lo, hi}), {}, tolerance, reason});
  }
  return cases;
}

std::vector<OpCase> compareCases(Compared allowed) {
  static constexpr std::string_view kReason = "a comparison has no rounding";
  std::vector<OpCase> cases = elementCases(2, -2, 2, 0, kReason);
  cases.push_back({"integer_ties", {{i32({6, 11}), -2, 2}, {i32({6, 11}), -2, 2}}, {}, 0, kReason});
  if (allowed == Compared::NumbersAndBool) cases.push_back({"bool", {{boolean({5, 7}), 0, 1}, {boolean({5, 7}), 0, 1}}, {}, 0, kReason});
  return cases;
}

Result<int64_t> normaliseAxis(std::string_view op, std::string_view label, int64_t axis, size_t rank) {
  int64_t r = static_cast<int64_t>(rank);
  if (axis < -r || axis >= r) return violated(op, label, fmt::format("axis {} is outside a tensor of rank {}", axis, rank));
  return axis < 0 ? axis + r : axis;
}

kernel::ValueId laneConstant(ElementEmitter& emitter, DType dtype, double value) {
  kernel::Builder& b = emitter.builder();
  kernel::ValueId scalar = kernelConstant(b, dtype, value);
  uint32_t width = emitter.width();
  if (width == 1) return scalar;
  return b.composite(b.types().vector(b.typeOf(scalar).scalar, width), std::vector(width, scalar));
}

kernel::ValueId laneSplat(ElementEmitter& emitter, kernel::ValueId scalar) {
  kernel::Builder& b = emitter.builder();
  uint32_t width = emitter.width();
  if (width == 1) return scalar;
  return b.construct(b.types().vector(b.typeOf(scalar).scalar, width), {scalar});
}

kernel::ValueId laneIndex(ElementEmitter& emitter) {
  kernel::Builder& b = emitter.builder();
  kernel::ValueId first = emitter.index().back();
  uint32_t width = emitter.width();
  if (width == 1) return first;
  std::vector<kernel::ValueId> lanes;
  for (uint32_t lane = 0; lane < width; ++lane) lanes.push_back(b.u32(lane));
  kernel::ValueId offsets = b.composite(b.types().vector(kernel::Scalar::U32, width), std::move(lanes));
  return b.make(kernel::Op::Add, {laneSplat(emitter, first), offsets});
}

bool nextIndex(std::vector<int64_t>& index, const std::vector<int64_t>& extents) {
  for (size_t axis = extents.size(); axis-- > 0;) {
    if (++index[axis] < extents[axis]) return true;
    index[axis] = 0;
  }
  return false;
}

}  // namespace lockstep::graph
