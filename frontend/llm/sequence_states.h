// SPDX-License-Identifier: Apache-2.0
// Private: what a generator's sequences have been fed, as its buffers have it, to and from the host.
#pragma once

#include <optional>
#include <vector>

#include "frontend/llm/generator.h"
#include "frontend/llm/generator_session.h"
#include "frontend/train/inference.h"

namespace lockstep::llm {

/// Programs beside that of a step, made when they are asked for first.
class SequenceStates {
 public:
  using Step = ModelInference<GeneratorSession>;
  /// Of all sequences, by buffer.
  std::vector<std::vector<float>> read(Step& step, const Where& where);
  void write(Step& step, const std::vector<std::vector<float>>& values, const Where& where);
  /// Of a session that counts ids: as if these had not come to the sequence.
  void uncount(Step& step, size_t sequence, const TokenList& fed, const Where& where);

 private:
  std::optional<Forward> reader_, writer_, counter_;
};

}  // namespace lockstep::llm
