// SPDX-License-Identifier: Apache-2.0
// The recall task: somewhere in a sequence stand a few marks, and its end is these marks once more, each in the place where the symbol that
// followed it is to be told. What to keep is told by what is read, so a state has to be selective; and as the state is all that is kept, a
// sequence may be of any length. With one mark these are the induction heads of Gu and Dao (2023), with marks that differ from sequence to
// sequence it is associative recall (Arora and others, 2023).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "examples/models/mixers.h"
#include "frontend/train/trainer.h"

namespace lockstep::examples {

struct RecallTask {
  int64_t symbols = 16;  ///< tokens 0 ..; marks come after them
  int64_t marks = 1;     ///< that there are
  int64_t asked = 1;     ///< of them in a sequence
  bool blank = false;    ///< whether a token of its own, the last one, fills the sequence, and not random symbols
  std::vector<Mixer> layers = {Mixer::Mamba1, Mixer::Mamba1};
  double rate = 0.01;  ///< of learning, at its highest; it falls to a tenth over 600 steps
  [[nodiscard]] int64_t vocabulary() const { return symbols + marks + (blank ? 1 : 0); }
};
/// One mark among random symbols for two layers of Mamba-1; four of eight marks among blanks for one of Mamba-2 and one of attention.
RecallTask mambaTask();
RecallTask mambaHybridTask();

inline constexpr int64_t kRecallBatch = 32, kRecallLength = 64;  ///< of training

/// i32 tokens [rows, length] and answers [rows, asked], of the last positions; length is at least three times asked.
struct RecallBatch {
  std::vector<int32_t> tokens, answers;
};
RecallBatch recallBatch(const RecallTask& task, uint64_t seed, uint64_t stream, int64_t rows, int64_t length);
/// "bdA.cf": symbols as small letters, marks as capitals, and a dot for a filler that is not a symbol.
std::string recallText(const RecallTask& task, std::span<const int32_t> tokens);

/// Inputs tokens and answers of recallBatch(); the loss is the cross-entropy of the answers.
CompileSpec<Mixers> recallSpec(const RecallTask& task);

/// The answers of a network to sequences that it did not train on, of the lengths of training times 1, 2, 4, 8 and 16.
class RecallCheck {
 public:
  RecallCheck(const ModelTrainer<Mixers>& trainer, RecallTask task, uint64_t seed);
  static constexpr int64_t kTimes[] = {1, 2, 4, 8, 16};
  /// The share of right answers at a length of kTimes.
  double accuracy(size_t length);
  /// Some sequences of training's length, each with its answers.
  std::string text();

 private:
  std::vector<int32_t> answers(size_t length, const RecallBatch& batch);
  RecallTask task_;
  uint64_t seed_;
  std::vector<Forward> forwards_;
};

}  // namespace lockstep::examples
