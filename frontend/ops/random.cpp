// SPDX-License-Identifier: Apache-2.0
#include "frontend/ops/random.h"

#include <fmt/format.h>

#include <cmath>

#include "frontend/ops/element.h"
#include "frontend/trace/trace.h"

namespace lockstep {

using detail::emit;
using detail::raise;
using detail::Trace;

namespace {

Tensor draw(std::string_view op, std::vector<int64_t> shape, const Where& where) {
  Trace& trace = Trace::require(op, where);
  return emit(op, {trace.randomKey()}, {{"shape", std::move(shape)}, {"salt", trace.nextSalt()}}, where);
}

}  // namespace

Tensor uniform(std::vector<int64_t> shape, double low, double high, Where where) {
  if (!(low < high) || !std::isfinite(high - low)) {
    raise("uniform.range", fmt::format("({}, {}) is no range of numbers", low, high), {}, where,
          "give a low end below the high end, both finite");
  }
  Tensor u = draw("uniform", std::move(shape), where);
  return low == 0 && high == 1 ? u : add(mul(u, high - low, where), low, where);
}

Tensor normal(std::vector<int64_t> shape, double mean, double stddev, Where where) {
  if (!(stddev >= 0) || !std::isfinite(stddev) || !std::isfinite(mean)) {
    raise("normal.scale", fmt::format("mean {} and standard deviation {} are no distribution", mean, stddev), {}, where,
          "give a finite mean and a finite standard deviation of at least 0");
  }
  Tensor x = draw("normal", std::move(shape), where);
  if (stddev != 1) x = mul(x, stddev, where);
  return mean == 0 ? x : add(x, mean, where);
}

Tensor dropout(Tensor x, double p, Where where) {
  Trace& trace = Trace::require("dropout", where);
  if (p == 0) return x;
  return emit("dropout", {x, trace.randomKey()}, {{"p", p}, {"salt", trace.nextSalt()}}, where);
}

Tensor categorical(Tensor logits, int64_t axis, Where where) {
  Trace& trace = Trace::require("categorical", where);
  axis = detail::normaliseAxis("categorical", axis, logits, where);
  return emit("categorical", {logits, trace.randomKey()}, {{"axis", axis}, {"salt", trace.nextSalt()}}, where);
}

}  // namespace lockstep
