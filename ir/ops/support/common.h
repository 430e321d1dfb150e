// SPDX-License-Identifier: Apache-2.0
// What families of ops share: type rules of element-wise ops, loops of their evaluators, their usual cases and kernel constants.
#pragma once

#include <string_view>
#include <vector>

#include "ir/graph/kernel_scalar.h"
#include "ir/graph/op_def.h"

namespace lockstep::graph {

/// C1: operands have one dtype out of `allowed`; C2: one shape. Result: the same type.
Result<std::vector<TensorType>> inferSame(std::string_view op, const InferContext& context, std::initializer_list<DType> allowed);
/// What a comparison takes: what has no order can still be equal.
enum class Compared : uint8_t { Numbers, NumbersAndBool };
/// C1 and C2 as above. Result: bool of the same shape.
Result<std::vector<TensorType>> inferCompare(std::string_view op, const InferContext& context, Compared allowed);
/// The axes of a reduction: ascending, unique and within the rank. Result: the operand's type with them dropped or kept with extent 1.
Result<std::vector<TensorType>> inferReduced(std::string_view op, std::string_view label, const InferContext& context);
/// Every extent is at least 1 and the element count fits in 32 bits, as kernels index with u32.
Status checkExtents(std::string_view op, std::string_view label, const std::vector<int64_t>& extents);
/// `axis` is in [0, rank).
Status checkAxis(std::string_view op, std::string_view label, int64_t axis, size_t rank);
/// `value` is a value of the element type: whole and in range for integers, 0 or 1 for bool.
Status checkValue(std::string_view op, std::string_view label, double value, DType dtype);

/// Whether a value is the constant 0: a cotangent that nothing flows into.
bool isZero(const Builder& builder, ValueId value);

/// The shape with 1 at the reduced axes.
Shape keptShape(const Shape& shape, const std::vector<int64_t>& axes);
/// All axes of a rank.
std::vector<int64_t> allAxes(size_t rank);

/// Integer arithmetic of the kernels is modulo 2^32.
double wrapped(double value, DType dtype);
/// Result i = function(operand elements i); operands and result have one shape. Integers wrap to 32 bits.
std::vector<Tensor> evaluateEach(const EvaluateContext& context, double (*function)(double));
std::vector<Tensor> evaluateEach(const EvaluateContext& context, double (*function)(double, double));
/// Result = the operand reduced over its attribute `axes`: the first element of each set as it is, then combine(accumulated, element).
std::vector<Tensor> evaluateReduced(const EvaluateContext& context, double (*combine)(double, double));

inline constexpr AttributeDef kCoarse{kCoarseAttribute, AttributeKind::Boolean,
                                      "every reader rounds the result, or a product with it, to bf16 or f16", false};

/// Cases of a float element-wise op of `operands` operands: small, odd and four axes.
std::vector<OpCase> elementCases(size_t operands, double lo, double hi, double tolerance = 1e-6,
                                 std::string_view reason = "one rounding per element");
std::vector<OpCase> compareCases(Compared allowed);
/// WGSL rounds + - * correctly, but in a direction of its choice: one unit in the last place.
inline constexpr double kOneRounding = 1.2e-7;
inline constexpr std::string_view kOneRoundingReason = "one rounding per element, in either direction";
inline constexpr std::string_view kExactReason = "elements are moved or chosen, never rounded";

/// An axis attribute in [-rank, rank) as [0, rank); C-label failure otherwise.
Result<int64_t> normaliseAxis(std::string_view op, std::string_view label, int64_t axis, size_t rank);

/// `value` in each of the lanes that are emitted.
kernel::ValueId laneConstant(ElementEmitter& emitter, DType dtype, double value);
/// A scalar repeated in each lane.
kernel::ValueId laneSplat(ElementEmitter& emitter, kernel::ValueId scalar);
/// Each lane's u32 position along the last axis.
kernel::ValueId laneIndex(ElementEmitter& emitter);

/// Row-major counting over a shape; false after the last index.
bool nextIndex(std::vector<int64_t>& index, const std::vector<int64_t>& extents);

/// Reads a tensor's elements by their index.
class ElementReader {
 public:
  explicit ElementReader(const Tensor& tensor) : tensor_(tensor), strides_(tensor.type.shape.strides()) {}
  [[nodiscard]] double operator()(const std::vector<int64_t>& index) const {
    int64_t flat = 0;
    for (size_t axis = 0; axis < strides_.size(); ++axis) flat += index[axis] * strides_[axis];
    return tensor_.data[static_cast<size_t>(flat)];
  }

 private:
  const Tensor& tensor_;
  std::vector<int64_t> strides_;
};

/// The only result, each element computed from its index.
template <class Function>
std::vector<Tensor> evaluateByIndex(const EvaluateContext& context, Function&& function) {
  Tensor out{context.results.front(), {}};
  std::vector<int64_t> extents = out.type.shape.extents(), index(extents.size(), 0);
  out.data.reserve(static_cast<size_t>(out.type.shape.elementCount()));
  do {
    out.data.push_back(function(index));
  } while (nextIndex(index, extents));
  return {std::move(out)};
}

inline TensorType f32(Shape shape) { return {DType::F32, std::move(shape)}; }
inline TensorType i32(Shape shape) { return {DType::I32, std::move(shape)}; }
inline TensorType u32(Shape shape) { return {DType::U32, std::move(shape)}; }
inline TensorType boolean(Shape shape) { return {DType::Bool, std::move(shape)}; }

}  // namespace lockstep::graph
