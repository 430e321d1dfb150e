// SPDX-License-Identifier: Apache-2.0
#include "frontend/nn/norm.h"

#include <fmt/format.h>

#include "frontend/nn/layer_input.h"
#include "frontend/ops/ops.h"
#include "frontend/trace/trace.h"
#include "ir/support/diagnostic.h"

namespace lockstep::nn {

namespace {

/// A norm of the last axis, which `gain` has too.
LayerInput rowsLike(std::string_view kind, const Parameter& gain) {
  return {.kind = kind, .axes = {{"..."}, {"features", gain.type().shape.extent(0), "features"}}};
}
LayerInput channelsLike(std::string_view kind, const Parameter& gain) {
  return {.kind = kind, .axes = {{"B"}, {"C", gain.type().shape.extent(0), "channels"}, {"..."}}};
}

}  // namespace

LayerNorm::LayerNorm(Module& parent, std::string name, int64_t width, NormOptions options, Where where)
    : Module(parent, std::move(name), where),
      g(*this, "g", {width}, init::ones(), {.decay = options.decay}, where),
      b(*this, "b", {width}, init::zeros(), {.decay = options.decay}, where),
      eps_(options.eps) {}

Tensor LayerNorm::operator()(Tensor x, Where where) const {
  checkInput(*this, x, rowsLike("LayerNorm", g), where);
  return layer_norm(x, g.tensor(where), b.tensor(where), eps_, where);
}

RMSNorm::RMSNorm(Module& parent, std::string name, int64_t width, RMSNormOptions options, Where where)
    : Module(parent, std::move(name), where),
      g(*this, "g", {width}, options.around_one ? init::zeros() : init::ones(), {.decay = options.decay}, where),
      eps_(options.eps),
      around_one_(options.around_one) {}

Tensor RMSNorm::operator()(Tensor x, Where where) const {
  checkInput(*this, x, rowsLike("RMSNorm", g), where);
  const Tensor gain = g.tensor(where);
  return rms_norm(x, around_one_ ? add({gain, where}, {1.0, where}, where) : gain, eps_, where);
}

GroupNorm::GroupNorm(Module& parent, std::string name, int64_t groups, int64_t channels, NormOptions options, Where where)
    : Module(parent, std::move(name), where),
      g(*this, "g", {channels}, init::ones(), {.decay = options.decay}, where),
      b(*this, "b", {channels}, init::zeros(), {.decay = options.decay}, where),
      groups_(groups),
      eps_(options.eps) {}

Tensor GroupNorm::operator()(Tensor x, Where where) const {
  checkInput(*this, x, channelsLike("GroupNorm", g), where);
  return group_norm(x, g.tensor(where), b.tensor(where), groups_, eps_, where);
}

BatchNorm::BatchNorm(Module& parent, std::string name, int64_t channels, BatchNormOptions options, Where where)
    : Module(parent, std::move(name), where),
      g(*this, "g", {channels}, init::ones(), {.decay = options.decay}, where),
      b(*this, "b", {channels}, init::zeros(), {.decay = options.decay}, where),
      running_mean(*this, "running_mean", {channels}, 0, DType::F32, where),
      running_var(*this, "running_var", {channels}, 1, DType::F32, where),
      momentum_(options.momentum),
      eps_(options.eps) {}

Tensor BatchNorm::operator()(Tensor x, Where where) const {
  checkInput(*this, x, channelsLike("BatchNorm", g), where);
  if (!is_training(where))
    return batch_norm(x, g.tensor(where), b.tensor(where), running_mean.tensor(where), running_var.tensor(where), eps_, where);
  const BatchNormResult result = batch_norm(x, g.tensor(where), b.tensor(where), eps_, where);
  const double count = static_cast<double>(x.shape(where).elementCount()) / static_cast<double>(x.extent(1, where));
  if (count < 2) {
    detail::raise("batch_norm.batch", fmt::format("each channel of {} has one element, which has no variance", toString(x.type(where))),
                  {x}, where, "use a larger batch, or another norm");
  }
  auto follow = [&](const Buffer& running, const Tensor& batch, double factor) {
    Tensor kept = mul(running.tensor(where), 1 - momentum_, where);
    Tensor added = mul(batch, momentum_ * factor, where);
    running.update(add(kept, added, where), where);
  };
  follow(running_mean, result.mean, 1);
  follow(running_var, result.variance, count / (count - 1));
  return result.y;
}

}  // namespace lockstep::nn
