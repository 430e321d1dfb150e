// SPDX-License-Identifier: Apache-2.0
// A layer of a language model, and what it keeps of the tokens so far.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "frontend/llm/language_config.h"
#include "frontend/nn/attention.h"
#include "frontend/nn/mamba.h"

namespace lockstep::llm {

/// Keys and values, or what a mixer goes on from.
using LayerState = std::variant<nn::KvCache, nn::MixerState>;
/// Its tensors, in the order of their declaration.
[[nodiscard]] std::vector<Tensor*> tensorsOf(LayerState& state);

/// What matrices begin with.
[[nodiscard]] Initializer initializerOf(const LanguageConfig& config);

/// Of the norms before, inside of and after layers.
[[nodiscard]] std::variant<nn::NormOptions, nn::RMSNormOptions> normOptions(const NormConfig& norm);

/// Without tensors yet.
[[nodiscard]] LayerState emptyState(LayerKind kind);
/// The types of its tensors for `batch` rows with room for `positions` tokens; mixers need none. Keys and values are of the type `cache`,
/// all else is f32.
[[nodiscard]] std::vector<graph::TensorType> stateTypes(const LanguageConfig& config, const LayerConfig& layer, int64_t batch,
                                                        int64_t positions, DType cache = DType::F32);

/// The tokens that go in: those of row b are at the places at[b], at[b] + 1, ..., and the first count[b] of them count.
struct TokenPlaces {
  Tensor at;     ///< i32 [B]
  Tensor count;  ///< i32 [B], 0 to T; the others are padding, and their results are meaningless
};

/// With attention: x + after1(attn(norm1(x))), then x + after2(mlp(norm2(x))), where after1 and after2 are there for norm.after alone.
/// With a mixer: x + mixer(norm1(x)). For x [B, T, width].
class LanguageLayer : public Module {
 public:
  LanguageLayer(Module& parent, std::string name, const LanguageConfig& config, const LayerConfig& layer, Where where = Where::current());
  /// Whole sequences.
  Tensor operator()(Tensor x, Where where = Where::current()) const;
  /// After all that went into the state, which becomes that after x. A row at place 0 begins anew, whatever its state has.
  Tensor operator()(Tensor x, LayerState& state, const TokenPlaces& places, Where where = Where::current()) const;
  nn::BlockNorm norm1;
  // Of attention; null with a mixer.
  std::unique_ptr<nn::MultiHeadAttention> attn;
  std::unique_ptr<nn::BlockNorm> after1, norm2;
  std::unique_ptr<nn::FeedForward> mlp;
  std::unique_ptr<nn::BlockNorm> after2;
  // One of them is there with a mixer.
  std::unique_ptr<nn::Mamba1> mamba1;
  std::unique_ptr<nn::Mamba2> mamba2;

 private:
  [[nodiscard]] Tensor feedForward(const Tensor& x, const Tensor& attended, const Where& where) const;
};

/// The layers of a config: modules named 0, 1, 2, ...
class LayerList : public Module {
 public:
  LayerList(Module& parent, std::string name, const LanguageConfig& config, Where where = Where::current());
  [[nodiscard]] size_t size() const { return items_.size(); }
  /// Error "module.index" beyond the last one.
  [[nodiscard]] const LanguageLayer& operator[](ModuleIndex i) const;

 private:
  std::vector<std::unique_ptr<LanguageLayer>> items_;
};

}  // namespace lockstep::llm
