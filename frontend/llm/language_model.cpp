// SPDX-License-Identifier: Apache-2.0
#include "frontend/llm/language_model.h"

#include <fmt/format.h>

#include "frontend/nn/layer_input.h"
#include "frontend/ops/ops.h"
#include "frontend/trace/trace.h"

namespace lockstep::llm {
namespace {

std::unique_ptr<nn::Embedding> learnedPositions(Module& model, const LanguageConfig& config, const Where& where) {
  if (config.learned_positions == 0) return nullptr;
  return std::make_unique<nn::Embedding>(model, "places", config.learned_positions, config.width,
                                         nn::EmbeddingOptions{.init = initializerOf(config)}, where);
}

std::unique_ptr<nn::Linear> headOf(Module& model, const LanguageConfig& config, const Where& where) {
  if (config.tied_head) return nullptr;
  return std::make_unique<nn::Linear>(
      model, "head", config.width, config.vocabulary,
      nn::LinearOptions{.bias = false, .init = initializerOf(config), .format = config.weights, .keeps_sums_together = true}, where);
}

}  // namespace

LanguageModel::LanguageModel(const LanguageConfig& config, Where where)
    : tokens(*this, "tokens", config.vocabulary, config.width, {.init = initializerOf(config), .format = config.weights}, where),
      places(learnedPositions(*this, config, where)),
      layers(*this, "layers", config, where),
      norm(*this, "norm", config.width, normOptions(config.norm), where),
      untied(headOf(*this, config, where)),
      config_(config) {}

LanguageModel::LanguageModel(Module& parent, std::string name, const LanguageConfig& config, Where where)
    : Module(parent, std::move(name), where),
      tokens(*this, "tokens", config.vocabulary, config.width, {.init = initializerOf(config), .format = config.weights}, where),
      places(learnedPositions(*this, config, where)),
      layers(*this, "layers", config, where),
      norm(*this, "norm", config.width, normOptions(config.norm), where),
      untied(headOf(*this, config, where)),
      config_(config) {}

Tensor LanguageModel::embed(const Tensor& ids, const Tensor& positions, const Where& where) const {
  Tensor h = tokens(ids, where);
  if (config_.embedding_scale != 1) h = mul({h, where}, {config_.embedding_scale, where}, where);
  return places ? add({h, where}, {(*places)(positions, where), where}, where) : h;
}

Tensor LanguageModel::operator()(Tensor ids, Where where) const {
  nn::checkInput(*this, ids, {.kind = "LanguageModel", .axes = {{"B"}, {"T"}}, .dtype = DType::I32, .operand = "ids"}, where);
  if (places && ids.extent(1, where) > config_.learned_positions)
    detail::raise("language_model.room",
                  fmt::format("ids is {}, and the model has {} positions", toString(ids.shape(where)), config_.learned_positions), {ids},
                  where, "cut the text into pieces");
  if (config_.longest > 0 && ids.extent(1, where) > config_.longest)
    detail::raise("language_model.room",
                  fmt::format("ids is {}, and beyond {} positions the scaling of the model is another one", toString(ids.shape(where)),
                              config_.longest),
                  {ids}, where, "cut the text into pieces");
  Tensor h = embed(ids, arange(ids.extent(1, where), DType::I32, where), where);
  for (size_t i = 0; i < layers.size(); ++i) h = layers[i](h, where);
  return head(norm(h, where), where);
}

Tensor LanguageModel::hidden(Tensor ids, LanguageState& state, const TokenPlaces& given, Where where) const {
  nn::checkInput(*this, ids, {.kind = "LanguageModel", .axes = {{"B"}, {"T"}}, .dtype = DType::I32, .operand = "ids"}, where);
  const nn::LayerAxis rows{"B", ids.extent(0, where), "rows"};
  nn::checkInput(*this, given.at, {.kind = "LanguageModel", .axes = {rows}, .dtype = DType::I32, .operand = "at"}, where);
  const Tensor steps = arange(ids.extent(1, where), DType::I32, where);
  Tensor positions = add({expand_dims(given.at, -1, where), where}, {steps, where}, where);
  // Tokens that do not count may be beyond the table.
  if (places)
    positions =
        lockstep::where(less({steps, where}, {expand_dims(given.count, -1, where), where}, where), {positions, where}, {0, where}, where);
  Tensor h = embed(ids, positions, where);
  for (size_t i = 0; i < layers.size(); ++i) h = layers[i](h, state.at(i), given, where);
  return norm(h, where);
}

Tensor LanguageModel::operator()(Tensor ids, LanguageState& state, Tensor at, Where where) const {
  const Tensor count = full({ids.extent(0, where)}, static_cast<double>(ids.extent(1, where)), DType::I32, where);
  return head(hidden(ids, state, {.at = at, .count = count}, where), where);
}

Tensor LanguageModel::head(Tensor hidden, Where where) const {
  Tensor logits = untied ? (*untied)(hidden, where) : tokens.W.product(hidden, where);
  if (config_.logit_cap == 0) return logits;
  logits = tanh(mul({logits, where}, {1 / config_.logit_cap, where}, where), where);
  return mul({logits, where}, {config_.logit_cap, where}, where);
}

LanguageState LanguageModel::state(int64_t batch, int64_t positions, DType cache, Where where) const {
  LanguageState made;
  for (const LayerConfig& layer : config_.layers) {
    LayerState one = emptyState(layer.kind);
    const std::vector<graph::TensorType> types = stateTypes(config_, layer, batch, positions, cache);
    for (size_t i = 0; i < types.size(); ++i) {
      const Tensor empty = zeros(types[i].shape.extents(), DType::F32, where);
      *tensorsOf(one)[i] = types[i].dtype == DType::F32 ? empty : cast(empty, types[i].dtype, where);
    }
    made.push_back(one);
  }
  return made;
}

}  // namespace lockstep::llm
