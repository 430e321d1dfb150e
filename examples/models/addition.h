// SPDX-License-Identifier: Apache-2.0
// The two-digit addition task: nine tokens a1 a0 + b1 b0 = s0 s1 s2 (sum digits least significant first), learned by a transformer.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "examples/models/transformer.h"
#include "frontend/train/trainer.h"

namespace lockstep::examples {

inline constexpr size_t kAdditionLength = 8;  ///< tokens that the network sees
inline constexpr size_t kAdditionBatch = 128;

struct AdditionPair {
  int32_t a = 0, b = 0;
};

/// A fifth of all pairs is never trained on.
bool isHeldOut(AdditionPair pair);
/// The nine tokens of a pair.
std::array<int32_t, kAdditionLength + 1> additionTokens(AdditionPair pair);
/// `count` pairs that are held out, or none of which is; they depend on seed and stream only.
std::vector<AdditionPair> drawPairs(uint64_t seed, uint32_t stream, size_t count, bool held_out);

/// Inputs of one step, by seed and step.
struct AdditionBatch {
  std::vector<int32_t> tokens, targets;
};
AdditionBatch additionBatch(uint64_t seed, uint64_t step, size_t count = kAdditionBatch);

/// Mean cross-entropy over the three sum digits of in["tokens"] and in["targets"].
Tensor additionLoss(const Transformer& model, const Inputs& in, bool captures = false);

/// AdamW, linear from 0.005 to 0.0005 over 1500 steps, decay 0.01, clipped to norm 1.
CompileSpec<Transformer> additionSpec(bool captures = false);

struct AdditionOptions {
  uint64_t seed = 42;
  std::string device = "auto";
  std::string dump_ir = {};
  int64_t dump_steps = 1;
  std::vector<std::string> disable = {};
  uint64_t memory_limit = 0;  ///< bytes of temporaries; 0: none
  bool captures = false;
};
ModelTrainer<Transformer> compileAddition(const AdditionOptions& options = {});

/// Greedy decoding of the three sum digits of 100 trained and 100 held-out pairs.
class AdditionCheck {
 public:
  /// With `use_ema` the averages of the parameters answer (ema_decay of the optimizer).
  AdditionCheck(const ModelTrainer<Transformer>& trainer, uint64_t seed, bool use_ema = false);
  struct Answer {
    AdditionPair pair;
    int32_t sum = 0;  ///< as the network says
  };
  struct Score {
    double trained = 0, held_out = 0;  ///< share of exact sums
    std::vector<Answer> answers = {};  ///< of the first held-out pairs
  };
  Score run();

 private:
  std::vector<AdditionPair> pairs_;  ///< first the trained ones
  Forward forward_;
};

}  // namespace lockstep::examples
