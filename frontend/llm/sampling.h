// SPDX-License-Identifier: Apache-2.0
// How the next token is chosen: the rules of transformers' generate(), on the device.
#pragma once

#include <cstdint>
#include <vector>

#include "frontend/llm/language_config.h"
#include "frontend/trace/host_values.h"
#include "frontend/trace/inputs.h"
#include "ir/support/result.h"

namespace lockstep::llm {

/// In the order in which they act on the logits z of one sequence. Formulas and order are those of the logits processors of transformers
/// (generation/logits_process.py, and _get_logits_processor() of generation/utils.py).
///  1. repetition_penalty r (RepetitionPenaltyLogitsProcessor; Keskar et al., 2019, arXiv:1909.05858): the logits of all tokens that the
///     sequence has so far, prompt included, become z r where z < 0, and z / r elsewhere.
///  2. temperature t: z / t. At 0 the likeliest token is taken, of equal ones the lowest, and nothing below counts.
///  3. top_k: tokens whose logit is less than the k-th largest are left out; those equal to it stay.
///  4. top_p (Holtzman et al., 2019, arXiv:1904.09751): with the tokens in falling order of their probabilities p, a token is left out
///  where
///     those from it on have at most 1 - top_p together; the first one stays.
///  5. min_p (arXiv:2407.01082): tokens with p < min_p max(p) are left out.
/// Then one of the rest is drawn: the first in that order whose p and those before it are more than u of their sum. u is uniform in [0, 1),
/// by Philox 4x32-10 from the seed, the number of the sequence and the place of the token in it, so it does not depend on the device or on
/// how a prompt was fed. Of equal logits the lower id comes first. All is computed in f32.
struct SamplingOptions {
  double temperature = 0;         ///< 0: greedy
  int64_t top_k = 0;              ///< 0: all
  double top_p = 1;               ///< in [0, 1]; 0: the likeliest alone, 1: all
  double min_p = 0;               ///< in [0, 1]; 0: all
  double repetition_penalty = 1;  ///< above 0; 1: none
  uint64_t seed = 0;

  /// Takes a program that samples, and not only an argmax.
  [[nodiscard]] bool needsSampling() const { return temperature != 0 || repetition_penalty != 1; }
  /// code "language_model.sampling" for a value outside of its range, or one that is not a number
  [[nodiscard]] Status check() const;
  friend bool operator==(const SamplingOptions&, const SamplingOptions&) = default;
};

/// What generation_config.json says, as transformers understands it: greedy unless do_sample, and then temperature 1 and top_k 50 where it
/// names none. Codes json.text, and language_config.value for a value of a wrong type or outside of its range. `sampled`: as if do_sample
/// were said.
Result<SamplingOptions> samplingOf(const LanguageConfig& config, bool sampled = false);

/// The keys of generation_config.json with which transformers would choose other tokens: no_repeat_ngram_size and others, which are not
/// applied here. Code json.text.
Result<std::vector<std::string>> rulesNotApplied(const LanguageConfig& config, const SamplingOptions& options);

/// The settings as inputs of a program, one of each sequence: "temperature", "top_p", "min_p", "repetition_penalty" and "uniform" f32 [B],
/// "top_k" i32 [B].
std::vector<InputSpec> samplingInputs(int64_t sequences);
/// Their values for a run after which the next token of each sequence comes to its place of `places`; for a run of several tokens "uniform"
/// has a row for each, with places of its own.
void addSamplingValues(Batch& batch, const SamplingOptions& options, const std::vector<std::vector<int32_t>>& places);
/// The next token of each sequence, i32 [B], of logits [B, V] and how often each id was there so far, f32 [B, V].
Tensor sampleTokens(const Tensor& logits, const Tensor& seen, const Inputs& in);

}  // namespace lockstep::llm
