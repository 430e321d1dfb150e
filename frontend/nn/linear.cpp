// SPDX-License-Identifier: Apache-2.0
#include "frontend/nn/linear.h"

#include <fmt/format.h>

#include "frontend/nn/layer_input.h"
#include "frontend/ops/ops.h"
#include "frontend/trace/trace.h"
#include "ir/support/diagnostic.h"

namespace lockstep::nn {

Linear::Linear(Module& parent, std::string name, int64_t in, int64_t out, LinearOptions options, Where where)
    : Module(parent, std::move(name), where),
      W(*this, "W", in, out,
        {.init = std::move(options.init),
         .decay = options.decay,
         .format = options.format,
         .keeps_sums_together = options.keeps_sums_together},
        where) {
  if (options.bias) b = std::make_unique<Parameter>(*this, "b", std::vector<int64_t>{out}, init::zeros(), ParameterOptions{}, where);
}

Tensor Linear::operator()(Tensor x, Where where) const {
  checkInput(*this, x, {.kind = "Linear", .axes = {{"..."}, {"N"}, {"features", W.type().shape.extent(0), "features"}}}, where);
  Tensor y = W.product(x, where);
  return b ? add(y, b->tensor(where), where) : y;
}

Embedding::Embedding(Module& parent, std::string name, int64_t count, int64_t width, EmbeddingOptions options, Where where)
    : Module(parent, std::move(name), where),
      W(*this, "W", count, width,
        {.init = std::move(options.init), .decay = options.decay, .format = options.format, .sums = SumAxis::Last}, where) {}

Tensor Embedding::operator()(Tensor indices, Where where) const {
  checkInput(*this, indices, {.kind = "Embedding", .axes = {{"..."}}, .dtype = DType::I32, .operand = "indices"}, where);
  return W.rows(indices, where);
}

Dropout::Dropout(double p, Where where) : p_(p) {
  if (p >= 0 && p < 1) return;
  throw Error({.code = "dropout.probability",
               .message = fmt::format("elements are dropped with probability {}, which must be at least 0 and below 1", p),
               .where = detail::toLocation(where),
               .notes = {},
               .remedy = "give the part that is dropped: 0.1 for one element in ten"});
}

Tensor Dropout::operator()(Tensor x, Where where) const { return is_training(where) && p_ > 0 ? dropout(x, p_, where) : x; }

}  // namespace lockstep::nn
