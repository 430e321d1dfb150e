// SPDX-License-Identifier: Apache-2.0
#include "frontend/nn/conv.h"

#include <fmt/format.h>

#include "frontend/nn/layer_input.h"
#include "frontend/ops/ops.h"
#include "frontend/trace/trace.h"
#include "ir/support/diagnostic.h"

namespace lockstep::nn {

namespace {

/// The channels of one group.
int64_t perGroup(std::string_view what, int64_t channels, int64_t groups, const Where& where) {
  if (groups >= 1 && channels % groups == 0) return channels / groups;
  throw Error({.code = "conv.groups",
               .message = fmt::format("{} {} channels cannot be split into {} groups", channels, what, groups),
               .where = detail::toLocation(where),
               .notes = {},
               .remedy = "groups must divide the channels before and after the layer"});
}

/// W of a layer that sums `in` channels of a group for `out` channels, over `area` kernel elements.
ParameterOptions weightOptions(std::optional<bool> decay, int64_t in, int64_t out, int64_t area) {
  return {.decay = decay, .fans = Fans{.in = in * area, .out = out * area}};
}

std::unique_ptr<Parameter> makeBias(Module& layer, bool wanted, int64_t channels, const Where& where) {
  if (!wanted) return nullptr;
  return std::make_unique<Parameter>(layer, "b", std::vector<int64_t>{channels}, init::zeros(), ParameterOptions{}, where);
}

/// The bias as [1, C, 1...].
Tensor plusBias(const Tensor& y, const std::unique_ptr<Parameter>& bias, const Where& where) {
  if (!bias) return y;
  std::vector<int64_t> shape(static_cast<size_t>(y.rank(where)), 1);
  shape[1] = -1;
  return add(y, reshape(bias->tensor(where), shape, where), where);
}

}  // namespace

Conv2d::Conv2d(Module& parent, std::string name, int64_t in, int64_t out, Size2 kernel, Conv2dOptions options, Where where)
    : Module(parent, std::move(name), where),
      W(*this, "W", {out, perGroup("input", in, options.groups, where), kernel.height, kernel.width}, std::move(options.init),
        weightOptions(options.decay, in / options.groups, perGroup("output", out, options.groups, where), kernel.height * kernel.width),
        where),
      b(makeBias(*this, options.bias, out, where)),
      options_{.stride = options.stride, .padding = options.padding, .dilation = options.dilation, .groups = options.groups} {}

Tensor Conv2d::operator()(Tensor x, Where where) const {
  const int64_t channels = W.type().shape.extent(1) * options_.groups;
  checkInput(*this, x, {.kind = "Conv2d", .axes = {{"B"}, {"C", channels, "channels"}, {"H"}, {"W"}}}, where);
  return plusBias(conv2d(x, W.tensor(where), options_, where), b, where);
}

Conv1d::Conv1d(Module& parent, std::string name, int64_t in, int64_t out, int64_t kernel, Conv1dLayerOptions options, Where where)
    : Module(parent, std::move(name), where),
      W(*this, "W", {out, perGroup("input", in, options.groups, where), kernel}, std::move(options.init),
        weightOptions(options.decay, in / options.groups, perGroup("output", out, options.groups, where), kernel), where),
      b(makeBias(*this, options.bias, out, where)),
      options_{.stride = options.stride, .padding = options.padding, .dilation = options.dilation, .groups = options.groups} {}

Tensor Conv1d::operator()(Tensor x, Where where) const {
  const int64_t channels = W.type().shape.extent(1) * options_.groups;
  checkInput(*this, x, {.kind = "Conv1d", .axes = {{"B"}, {"C", channels, "channels"}, {"T"}}}, where);
  return plusBias(conv1d(x, W.tensor(where), options_, where), b, where);
}

ConvTranspose2d::ConvTranspose2d(Module& parent, std::string name, int64_t in, int64_t out, Size2 kernel, ConvTranspose2dOptions options,
                                 Where where)
    : Module(parent, std::move(name), where),
      W(*this, "W", {in, perGroup("output", out, options.groups, where), kernel.height, kernel.width}, std::move(options.init),
        weightOptions(options.decay, perGroup("input", in, options.groups, where), out / options.groups, kernel.height * kernel.width),
        where),
      b(makeBias(*this, options.bias, out, where)),
      options_{.stride = options.stride,
               .padding = options.padding,
               .dilation = options.dilation,
               .output_padding = options.output_padding,
               .groups = options.groups} {}

Tensor ConvTranspose2d::operator()(Tensor x, Where where) const {
  const int64_t channels = W.type().shape.extent(0);
  checkInput(*this, x, {.kind = "ConvTranspose2d", .axes = {{"B"}, {"C", channels, "channels"}, {"H"}, {"W"}}}, where);
  return plusBias(conv_transpose2d(x, W.tensor(where), options_, where), b, where);
}

}  // namespace lockstep::nn
