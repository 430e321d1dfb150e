// SPDX-License-Identifier: Apache-2.0
#include "frontend/ops/quantized.h"

#include <fmt/format.h>

#include <string>
#include <vector>

#include "frontend/ops/element.h"
#include "frontend/ops/shape.h"
#include "frontend/trace/trace.h"

namespace lockstep {

using detail::raise;

namespace {

/// How many groups of so many elements n elements fill, the last one maybe in part.
int64_t groupsOf(int64_t n, int64_t size) { return n / size + (n % size != 0 ? 1 : 0); }

/// The signed integers of so many bits in words, by the op `name`.
Tensor unpacked(const std::string& name, int64_t bits, const Tensor& words, int64_t n, const Where& where) {
  detail::Trace::require(name, where);
  const int64_t per_word = 32 / bits;
  if (words.dtype(where) != DType::U32 || words.rank(where) < 1)
    raise(name + ".C1", fmt::format("the words are {}, wanted u32 with an axis or more", toString(words.type(where))), {words}, where,
          fmt::format("pack {} elements into each u32, the first in the lowest bits", per_word));
  const int64_t count = words.extent(-1, where);
  if (n < 1 || groupsOf(n, per_word) != count)
    raise(name + ".C2", fmt::format("{} elements take {} words, and there are {}", n, groupsOf(n, per_word), count), {words}, where,
          fmt::format("a u32 word holds {} elements", per_word));
  // Each element's bits to the high end, and back with its sign.
  const double rest = static_cast<double>(32 - bits);
  const Tensor places =
      sub({rest, where}, mul({arange(per_word, DType::U32, where), where}, {static_cast<double>(bits), where}, where), where);
  const Tensor high = left_shift(expand_dims(words, -1, where), {places, where}, where);
  std::vector<int64_t> shape = words.shape(where).extents();
  shape.back() *= per_word;
  const Tensor elements = reshape(right_shift(cast(high, DType::I32, where), {rest, where}, where), shape, where);
  return narrow(elements, -1, 0, n, where);
}

}  // namespace

Tensor unpack_i4(Tensor words, int64_t n, Where where) { return unpacked("unpack_i4", 4, words, n, where); }
Tensor unpack_i8(Tensor words, int64_t n, Where where) { return unpacked("unpack_i8", 8, words, n, where); }

Tensor dequantize(Tensor values, Tensor scales, int64_t group, Where where) {
  detail::Trace::require("dequantize", where);
  const DType integer = values.dtype(where), real = scales.dtype(where);
  if (graph::isFloat(integer) || integer == DType::Bool || !graph::isFloat(real))
    raise("dequantize.C1",
          fmt::format("values {} and scales {}, wanted integers and floats", toString(values.type(where)), toString(scales.type(where))),
          {values, scales}, where, "give what was quantised as i8, i32 or u32, and its scales as f32, f16 or bf16");
  std::vector<int64_t> wanted = values.shape(where).extents();
  const int64_t n = wanted.empty() ? 0 : wanted.back();
  if (n > 0 && group > 0) wanted.back() = groupsOf(n, group);
  if (n < 1 || group < 1 || scales.shape(where).extents() != wanted)
    raise(
        "dequantize.C2",
        fmt::format("scales {} do not fit values {} in groups of {}", toString(scales.shape(where)), toString(values.shape(where)), group),
        {values, scales}, where, "the last axis has a scale for each group, the others are equal");
  const Tensor repeated = narrow(repeat(cast(scales, DType::F32, where), group, -1, where), -1, 0, n, where);
  return mul({cast(values, DType::F32, where), where}, {repeated, where}, where);
}

Tensor quantized_matmul(Tensor x, Tensor words, Tensor scales, Quantization quantization, Where where) {
  detail::Trace& trace = detail::Trace::require("quantized_matmul", where);
  // Integers stay as they are, which the op refuses: as f32 they could be others.
  const auto wide = [&](Tensor tensor) {
    const DType dtype = tensor.dtype(where);
    return dtype == DType::F32 || !graph::isFloat(dtype) ? tensor : cast(tensor, DType::F32, where);
  };
  const std::vector<Tensor> operands{wide(x), words, wide(scales)};
  return trace.emitAll("quantized_matmul", operands, {{"bits", quantization.bits}, {"group", quantization.group}}, where).front();
}

}  // namespace lockstep
