// SPDX-License-Identifier: Apache-2.0
#include "frontend/nn/weight.h"

#include <fmt/format.h>

#include "frontend/ops/ops.h"
#include "frontend/trace/trace.h"
#include "ir/support/diagnostic.h"

namespace lockstep::nn {

Weight::Weight(Module& owner, const std::string& name, int64_t rows, int64_t columns, const WeightOptions& options, Where where)
    : type_(f32(rows, columns)), options_(options), where_(where) {
  const WeightFormat& format = options_.format;
  const auto keep = [&](const std::string& its, const std::vector<int64_t>& shape, DType dtype) {
    kept_.push_back(std::make_unique<Buffer>(owner, its, shape, 0, dtype, where));
  };
  if (format.isF32()) {
    parameter_ = std::make_unique<Parameter>(owner, name, std::vector<int64_t>{rows, columns}, options_.init,
                                             ParameterOptions{.decay = options_.decay}, where);
  } else if (!isQuantized()) {
    // The name says it, so that a file of square matrices cannot be taken for one of their transposes.
    keep(is_turned() ? name + "_transposed" : name, is_turned() ? std::vector{columns, rows} : std::vector{rows, columns}, format.dtype());
  } else {
    const bool first = options_.sums == SumAxis::First;
    const QuantizedRows lie = quantizedRows(format, std::max<int64_t>(first ? rows : columns, 1));
    const int64_t count = first ? columns : rows;
    keep(name + "_words", {count, lie.words}, DType::U32);
    keep(name + "_scales", {count, lie.groups}, lie.scale);
  }
}

std::string Weight::path() const {
  if (parameter_) return parameter_->path();
  std::string path = kept_.front()->path();
  if (isQuantized() || is_turned()) path.resize(path.rfind('_'));
  return path;
}

const Parameter& Weight::parameter() const {
  if (parameter_) return *parameter_;
  throw Error({.code = "weight.parameter",
               .message = fmt::format("'{}' is kept as {} and is not a parameter", path(), toString(options_.format)),
               .where = detail::toLocation(where_),
               .notes = {},
               .remedy = "make the model with weights of f32"});
}

Tensor Weight::dequantized(const Tensor& words, const Tensor& scales, const Where& where) const {
  const int64_t length = sumLength();
  const Tensor values = options_.format.bits() == 4 ? unpack_i4(words, length, where) : unpack_i8(words, length, where);
  return dequantize(values, scales, quantizedRows(options_.format, length).group, where);
}

Tensor Weight::tensor(Where where) const {
  if (parameter_) return parameter_->tensor(where);
  if (!isQuantized()) {
    const Tensor wide = cast(kept_[0]->tensor(where), DType::F32, where);
    return is_turned() ? swap_axes(wide, 0, 1, where) : wide;
  }
  const Tensor rows = dequantized(kept_[0]->tensor(where), kept_[1]->tensor(where), where);
  return options_.sums == SumAxis::First ? swap_axes(rows, 0, 1, where) : rows;
}

Tensor Weight::product(const Tensor& x, Where where) const {
  if (isQuantized()) {
    const int64_t group = quantizedRows(options_.format, sumLength()).group;
    return quantized_matmul(x, kept_[0]->tensor(where), kept_[1]->tensor(where), {.bits = options_.format.bits(), .group = group}, where);
  }
  const Tensor matrix = tensor(where);
  return matmul(x, options_.sums == SumAxis::First ? matrix : swap_axes(matrix, 0, 1, where), where);
}

Tensor Weight::rows(const Tensor& indices, Where where) const {
  if (options_.sums != SumAxis::Last) internalError("rows of a matrix that is not a table");
  if (parameter_) return embedding(parameter_->tensor(where), indices, where);
  // Rows are taken before they become f32: nothing keeps the whole table in f32.
  const Tensor flat = reshape(indices, {-1}, where);
  const auto taken = [&](const Buffer& kept) { return index_select(kept.tensor(where), 0, flat, where); };
  const Tensor wide = isQuantized() ? dequantized(taken(*kept_[0]), taken(*kept_[1]), where) : cast(taken(*kept_[0]), DType::F32, where);
  std::vector<int64_t> shape = indices.shape(where).extents();
  shape.push_back(type_.shape.extent(1));
  return reshape(wide, shape, where);
}

}  // namespace lockstep::nn
