// SPDX-License-Identifier: Apache-2.0
#include "frontend/nn/attention.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <vector>

#include "frontend/nn/layer_input.h"
#include "frontend/ops/ops.h"
#include "frontend/trace/trace.h"
#include "ir/support/diagnostic.h"

namespace lockstep::nn {

namespace {

/// `whole / part`, which must come out even.
int64_t quotient(std::string_view what, int64_t whole, int64_t part, const Where& where) {
  if (part >= 1 && whole % part == 0) return whole / part;
  throw Error({.code = "attention.heads",
               .message = fmt::format("{} cannot be split over {} heads", fmt::format(fmt::runtime(what), whole), part),
               .where = detail::toLocation(where),
               .notes = {},
               .remedy = "heads must divide the width, and kv_heads the heads"});
}

int64_t headWidth(int64_t width, int64_t heads, const AttentionLayerOptions& options, const Where& where) {
  return options.head_width > 0 ? options.head_width : quotient("a width of {}", width, heads, where);
}

int64_t kvHeads(int64_t heads, const AttentionLayerOptions& options, const Where& where) {
  if (options.kv_heads == 0) return heads;
  return heads / quotient("{} heads", heads, options.kv_heads, where);
}

LinearOptions projection(const AttentionLayerOptions& options) {
  return {.bias = options.bias, .init = options.init, .decay = options.decay, .format = options.format, .keeps_sums_together = true};
}
LinearOptions outProjection(const AttentionLayerOptions& options) {
  LinearOptions made = projection(options);
  made.bias = options.out_bias.value_or(options.bias);
  return made;
}
std::unique_ptr<RMSNorm> normOf(Module& parent, const char* name, int64_t width, const AttentionLayerOptions& options, const Where& where) {
  return options.qk_norm ? std::make_unique<RMSNorm>(parent, name, width, *options.qk_norm, where) : nullptr;
}
int64_t checkedWindow(const AttentionLayerOptions& options, const Where& where) {
  if (options.window == 0 || options.causal) return options.window;
  throw Error({.code = "attention.options",
               .message = "a layer that sees positions on both sides has a window",
               .where = detail::toLocation(where),
               .notes = {},
               .remedy = "set causal, or leave the window out"});
}
LinearOptions projection(const FeedForwardOptions& options, bool keeps_sums_together) {
  return {.bias = options.bias,
          .init = options.init,
          .decay = options.decay,
          .format = options.format,
          .keeps_sums_together = keeps_sums_together};
}
/// Whether sums of so many terms are read together in the first matrices. Of longer ones there are columns for all units, and matrix units
/// read them faster so: a product of 4096 x 4096 x 4096 in bf16 makes 272 TFLOP/s on an H100, and 222 of the transpose.
bool areShort(int64_t terms) {
  constexpr int64_t kMost = 1024;
  return terms <= kMost;
}

void checkSameBatch(const Module& layer, const Tensor& x, const Tensor& memory, const Where& where) {
  const std::vector<int64_t> a = x.shape(where).extents(), b = memory.shape(where).extents();
  if (std::ranges::equal(a.begin(), a.end() - 2, b.begin(), b.end() - 2)) return;
  detail::raise("attention.memory",
                fmt::format("MultiHeadAttention '{}' expected the same axes before the last two, got x {} and memory {}", layer.path(),
                            toString(x.type(where)), toString(memory.type(where))),
                {x, memory}, where, "give x and memory one batch");
}

Tensor activate(Activation activation, const Tensor& x, const Where& where) {
  static constexpr Tensor (*kFunctions[])(Tensor, Where) = {relu, gelu, silu, gelu_tanh, tanh};
  return kFunctions[static_cast<size_t>(activation)](x, where);
}

}  // namespace

MultiHeadAttention::MultiHeadAttention(Module& parent, std::string name, int64_t width, int64_t heads, const AttentionLayerOptions& options,
                                       Where where)
    : Module(parent, std::move(name), where),
      q(*this, "q", width, heads * headWidth(width, heads, options, where), projection(options), where),
      k(*this, "k", width, kvHeads(heads, options, where) * headWidth(width, heads, options, where), projection(options), where),
      v(*this, "v", width, kvHeads(heads, options, where) * headWidth(width, heads, options, where), projection(options), where),
      o(*this, "o", heads * headWidth(width, heads, options, where), width, outProjection(options), where),
      q_norm(normOf(*this, "q_norm", headWidth(width, heads, options, where), options, where)),
      k_norm(normOf(*this, "k_norm", headWidth(width, heads, options, where), options, where)),
      heads_(heads),
      kv_heads_(kvHeads(heads, options, where)),
      causal_(options.causal),
      rope_(options.rope),
      scale_(options.scale),
      soft_cap_(options.soft_cap),
      turned_(options.turned),
      window_(checkedWindow(options, where)),
      dropout_(options.dropout, where) {}

Tensor MultiHeadAttention::operator()(Tensor x, Where where) const { return (*this)(x, x, where); }

Tensor MultiHeadAttention::operator()(Tensor x, Tensor memory, Where where) const {
  const LayerAxis width{"width", q.W.type().shape.extent(0), "features"};
  checkInput(*this, x, {.kind = "MultiHeadAttention", .axes = {{"..."}, {"T"}, width}}, where);
  checkInput(*this, memory, {.kind = "MultiHeadAttention", .axes = {{"..."}, {"S"}, width}, .operand = "memory"}, where);
  checkSameBatch(*this, x, memory, where);
  const Heads heads = project(x, memory, nullptr, where);
  AttentionOptions attention = options();
  attention.causal = causal_;
  Tensor mixed = scaled_dot_product_attention(heads.queries, heads.keys, heads.values, attention, where);
  return dropout_(o(merge_heads(mixed, where), where), where);
}

MultiHeadAttention::Heads MultiHeadAttention::project(const Tensor& x, const Tensor& memory, const Tensor* places,
                                                      const Where& where) const {
  Heads heads{split_heads(q(x, where), heads_, where), split_heads(k(memory, where), kv_heads_, where),
              split_heads(v(memory, where), kv_heads_, where)};
  if (q_norm) heads.queries = (*q_norm)(heads.queries, where);
  if (k_norm) heads.keys = (*k_norm)(heads.keys, where);
  if (!rope_) return heads;
  const auto turn = [&](const Tensor& rows) {
    return places == nullptr ? lockstep::rope(rows, *rope_, where) : lockstep::rope(rows, *places, *rope_, where);
  };
  heads.queries = turn(heads.queries);
  if (turned_ != 1) {
    const int64_t width = heads.queries.extent(-1, where);
    std::vector<float> factors(static_cast<size_t>(width), 1.0F);
    std::fill_n(factors.begin(), rope_->dims > 0 ? rope_->dims : width, static_cast<float>(turned_));
    heads.queries = mul({heads.queries, where}, {constant(std::span<const float>(factors), {width}, where), where}, where);
  }
  heads.keys = turn(heads.keys);
  return heads;
}

AttentionOptions MultiHeadAttention::options() const { return {.scale = scale_, .window = window_, .soft_cap = soft_cap_}; }

Tensor MultiHeadAttention::operator()(Tensor x, KvCache& cache, Tensor at, Where where) const {
  const LayerAxis width{"width", q.W.type().shape.extent(0), "features"};
  checkInput(*this, x, {.kind = "MultiHeadAttention", .axes = {{"..."}, {"T"}, width}}, where);
  const bool is_own = at.shape(where).rank() > 0;  // places
  std::vector<LayerAxis> of_places;
  if (is_own) of_places.push_back({"B", x.extent(0, where), "rows"});
  checkInput(*this, at, {.kind = "MultiHeadAttention", .axes = of_places, .dtype = DType::I32, .operand = "at"}, where);
  const Tensor places = add(arange(x.extent(-2, where), DType::I32, where), is_own ? expand_dims(at, -1, where) : at, where);
  const Heads heads = project(x, x, &places, where);
  const auto as = [&](const Tensor& tensor, DType dtype) { return tensor.dtype(where) == dtype ? tensor : cast(tensor, dtype, where); };
  const auto write = [&](Tensor& kept, const Tensor& rows) {
    kept = write_rows(kept, as(rows, kept.dtype(where)), at, -2, where);
    return as(kept, DType::F32);
  };
  const Tensor all_keys = write(cache.keys, heads.keys), all_values = write(cache.values, heads.values);
  AttentionOptions attention = options();
  attention.length = add(at, x.extent(-2, where), where);
  const Tensor mixed = scaled_dot_product_attention(heads.queries, all_keys, all_values, attention, where);
  return dropout_(o(merge_heads(mixed, where), where), where);
}

KvCache MultiHeadAttention::cache(std::vector<int64_t> leading, int64_t positions, DType dtype, Where where) const {
  leading.insert(leading.end(), {kv_heads_, positions, k.W.type().shape.extent(1) / kv_heads_});
  Tensor empty = zeros(leading, DType::F32, where);
  if (dtype != DType::F32) empty = cast(empty, dtype, where);
  return {empty, empty};
}

FeedForward::FeedForward(Module& parent, std::string name, int64_t width, int64_t hidden, const FeedForwardOptions& options, Where where)
    : Module(parent, std::move(name), where),
      gate(options.gated ? std::make_unique<Linear>(*this, "gate", width, hidden, projection(options, areShort(width)), where) : nullptr),
      up(*this, "up", width, hidden, projection(options, areShort(width)), where),
      down(*this, "down", hidden, width, projection(options, true), where),
      activation_(options.activation) {}

Tensor FeedForward::operator()(Tensor x, Where where) const {
  checkInput(*this, x, {.kind = "FeedForward", .axes = {{"..."}, {"N"}, {"width", up.W.type().shape.extent(0), "features"}}}, where);
  if (!gate) return down(activate(activation_, up(x, where), where), where);
  Tensor opened = activate(activation_, (*gate)(x, where), where);
  return down(mul(opened, up(x, where), where), where);
}

BlockNorm::BlockNorm(Module& parent, const std::string& name, int64_t width, bool rms_norm, const Where& where)
    : BlockNorm(
          parent, name, width,
          rms_norm ? std::variant<NormOptions, RMSNormOptions>(RMSNormOptions{}) : std::variant<NormOptions, RMSNormOptions>(NormOptions{}),
          where) {}

BlockNorm::BlockNorm(Module& parent, const std::string& name, int64_t width, const std::variant<NormOptions, RMSNormOptions>& options,
                     const Where& where) {
  if (const auto* of_layer = std::get_if<NormOptions>(&options)) layer = std::make_unique<LayerNorm>(parent, name, width, *of_layer, where);
  if (const auto* of_rms = std::get_if<RMSNormOptions>(&options)) rms = std::make_unique<RMSNorm>(parent, name, width, *of_rms, where);
}

Tensor BlockNorm::operator()(const Tensor& x, const Where& where) const { return layer ? (*layer)(x, where) : (*rms)(x, where); }

TransformerBlock::TransformerBlock(Module& parent, std::string name, int64_t width, int64_t heads, const TransformerBlockOptions& options,
                                   Where where)
    : Module(parent, std::move(name), where),
      ln1(*this, "ln1", width, options.rms_norm, where),
      attn(*this, "attn", width, heads, options.attention, where),
      ln2(*this, "ln2", width, options.rms_norm, where),
      mlp(*this, "mlp", width, options.hidden > 0 ? options.hidden : 4 * width, options.feed_forward, where),
      dropout_(options.dropout, where) {}

Tensor TransformerBlock::operator()(Tensor x, Where where) const {
  const LayerAxis width{"width", mlp.up.W.type().shape.extent(0), "features"};
  checkInput(*this, x, {.kind = "TransformerBlock", .axes = {{"..."}, {"T"}, width}}, where);
  Tensor attended = add(x, dropout_(attn(ln1(x, where), where), where), where);
  return add(attended, dropout_(mlp(ln2(attended, where), where), where), where);
}

Tensor TransformerBlock::operator()(Tensor x, KvCache& cache, Tensor at, Where where) const {
  const LayerAxis width{"width", mlp.up.W.type().shape.extent(0), "features"};
  checkInput(*this, x, {.kind = "TransformerBlock", .axes = {{"..."}, {"T"}, width}}, where);
  const Tensor attended = add(x, dropout_(attn(ln1(x, where), cache, at, where), where), where);
  return add(attended, dropout_(mlp(ln2(attended, where), where), where), where);
}

}  // namespace lockstep::nn
