// SPDX-License-Identifier: Apache-2.0
// A language model as `lockstep verify llm` runs it: on a device by the generator that programs use, or in f64 by the evaluator.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "frontend/io/safetensors.h"
#include "frontend/llm/generator.h"

namespace lockstep::tools {

/// As llm::Fed, in f64.
struct FedTokens {
  llm::TokenList next;
  std::vector<std::vector<double>> logits;
};

/// Several sequences that go on from a state.
class SequenceRuns {
 public:
  virtual ~SequenceRuns() = default;
  virtual void restart() = 0;
  virtual FedTokens feed(const std::vector<llm::TokenList>& tokens, bool every) = 0;
};

struct RunShape {
  int64_t sequences = 1, positions = 1, chunk = 1;
  DType cache = DType::F32;  ///< of keys and values
};

class LanguageRuns {
 public:
  virtual ~LanguageRuns() = default;
  /// As shown to people and scripts: "evaluate", "reference", "vulkan:0".
  [[nodiscard]] virtual std::string device() const = 0;
  /// Logits [tokens, vocabulary] of at most `longest` of them, without a state.
  virtual std::vector<double> whole(const llm::TokenList& tokens) = 0;
  virtual std::unique_ptr<SequenceRuns> sequences(const RunShape& shape) = 0;
};

/// Of weights as loadStoredWeights() gives them. `device`: "evaluate" or a selector of chooseDevice(). Throws Error.
std::unique_ptr<LanguageRuns> makeLanguageRuns(const llm::LanguageConfig& config, io::TensorFile stored, const std::string& device,
                                               int64_t longest);

}  // namespace lockstep::tools
