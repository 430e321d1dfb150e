// SPDX-License-Identifier: Apache-2.0
#include "frontend/llm/sampling.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "frontend/llm/config_reader.h"
#include "frontend/nn/init.h"
#include "frontend/ops/ops.h"
#include "frontend/trace/trace.h"

namespace lockstep::llm {
namespace {

struct Range {
  const char* name;
  double value;
  bool is_right;
  const char* wanted;
};

/// The first value that is outside of its range, or null.
const Range* findWrong(const std::vector<Range>& ranges) {
  for (const Range& range : ranges) {
    if (!range.is_right) return &range;
  }
  return nullptr;
}

constexpr const char* kSettings = "generation_config.json";

/// A key of it with which transformers chooses other tokens. It changes nothing where it is absent, null, false, empty, or the number.
struct OtherRule {
  std::string_view key;
  double nothing = 0;
  bool of_samples = false;  ///< not where each token is the likeliest
};
constexpr std::array kOtherRules{OtherRule{"bad_words_ids"},
                                 OtherRule{"begin_suppress_tokens"},
                                 OtherRule{"constraints"},
                                 OtherRule{"encoder_repetition_penalty", 1},
                                 OtherRule{"epsilon_cutoff", 0, true},
                                 OtherRule{"eta_cutoff", 0, true},
                                 OtherRule{"exponential_decay_length_penalty"},
                                 OtherRule{"force_words_ids"},
                                 OtherRule{"forced_bos_token_id"},
                                 OtherRule{"forced_eos_token_id"},
                                 OtherRule{"guidance_scale", 1},
                                 OtherRule{"min_length"},
                                 OtherRule{"min_new_tokens"},
                                 OtherRule{"no_repeat_ngram_size"},
                                 OtherRule{"num_beams", 1},
                                 OtherRule{"penalty_alpha"},
                                 OtherRule{"sequence_bias"},
                                 OtherRule{"suppress_tokens"},
                                 OtherRule{"top_h", 1, true},
                                 OtherRule{"typical_p", 1, true},
                                 OtherRule{"watermarking_config"}};

bool changesNothing(const text::JsonValue& value, double nothing) {
  if (const bool* truth = value.boolean()) return !*truth;
  if (const text::JsonArray* list = value.array()) return list->empty();
  if (const text::JsonObject* object = value.object()) return object->members.empty();
  return value.isNull() || numberOf(value) == nothing;
}

/// Those of a setting as a column beside the logits.
Tensor column(const Inputs& in, const char* name) { return expand_dims(in[name], 1); }

}  // namespace

Status SamplingOptions::check() const {
  // Comparisons with a NaN are false.
  const std::vector<Range> ranges{
      {"temperature", temperature, temperature >= 0 && std::isfinite(temperature), "a number of at least 0"},
      {"top_k", static_cast<double>(top_k), top_k >= 0, "at least 0"},
      {"top_p", top_p, top_p >= 0 && top_p <= 1, "from 0 to 1"},
      {"min_p", min_p, min_p >= 0 && min_p <= 1, "from 0 to 1"},
      {"repetition_penalty", repetition_penalty, repetition_penalty > 0 && std::isfinite(repetition_penalty), "a number above 0"},
  };
  if (const Range* wrong = findWrong(ranges))
    return fail("language_model.sampling", fmt::format("{} is {}", wrong->name, wrong->value), {}, fmt::format("it is {}", wrong->wanted));
  return Success{};
}

Result<SamplingOptions> samplingOf(const LanguageConfig& config, bool sampled) {
  const std::string file = kSettings;
  SamplingOptions options;
  bool samples = sampled;
  if (config.generation_json.empty()) {
    if (samples) options = {.temperature = 1, .top_k = 50};
    return options;
  }
  LS_TRY(const text::JsonValue json, parsePythonJson(config.generation_json, file));
  LS_TRY(ConfigReader reader, ConfigReader::of(json, file));
  if (!samples) {
    LS_TRY(samples, reader.boolean("do_sample", false));
  }
  LS_TRY(options.repetition_penalty, reader.number("repetition_penalty", 1, 1));
  if (samples) {
    LS_TRY(options.temperature, reader.number("temperature", 1, 1));
    LS_TRY(options.top_k, reader.integer("top_k", 50, 0));
    LS_TRY(options.top_p, reader.number("top_p", 1, 1));
    LS_TRY(options.min_p, reader.number("min_p", 0, 0));
  }
  if (const Status status = options.check(); !status.ok()) {
    return fail("language_config.value", status.diagnostics().front().message, {.file = file}, status.diagnostics().front().remedy);
  }
  return options;
}

Result<std::vector<std::string>> rulesNotApplied(const LanguageConfig& config, const SamplingOptions& options) {
  std::vector<std::string> keys;
  if (config.generation_json.empty()) return keys;
  LS_TRY(const text::JsonValue json, parsePythonJson(config.generation_json, kSettings));
  for (const OtherRule& rule : kOtherRules) {
    const text::JsonValue* value = json.find(rule.key);
    const bool counts = !rule.of_samples || options.temperature > 0;
    if (value != nullptr && counts && !changesNothing(*value, rule.nothing)) keys.emplace_back(rule.key);
  }
  return keys;
}

std::vector<InputSpec> samplingInputs(int64_t sequences) {
  return {{"temperature", f32(sequences)},        {"top_k", i32(sequences)},  {"top_p", f32(sequences)}, {"min_p", f32(sequences)},
          {"repetition_penalty", f32(sequences)}, {"uniform", f32(sequences)}};
}

void addSamplingValues(Batch& batch, const SamplingOptions& options, const std::vector<std::vector<int32_t>>& places) {
  const size_t rows = places.front().size();
  for (const auto& [name, value] : {std::pair("temperature", options.temperature), std::pair("top_p", options.top_p),
                                    std::pair("min_p", options.min_p), std::pair("repetition_penalty", options.repetition_penalty)})
    batch.emplace_back(name, std::vector<float>(rows, static_cast<float>(value)));
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  batch.emplace_back("top_k", std::vector<int32_t>(rows, static_cast<int32_t>(std::min(options.top_k, kMost))));
  std::vector<float> uniform;
  for (const std::vector<int32_t>& of_token : places) {
    for (size_t i = 0; i < rows; ++i) {
      const double u = random::uniform(options.seed, static_cast<uint32_t>(i), static_cast<uint64_t>(of_token[i]));
      uniform.push_back(static_cast<float>(u));
    }
  }
  batch.emplace_back("uniform", std::move(uniform));
}

Tensor sampleTokens(const Tensor& logits, const Tensor& seen, const Inputs& in) {
  const Tensor penalty = column(in, "repetition_penalty");
  const Tensor penalised = where(less(logits, 0), logits * penalty, logits / penalty);
  const Tensor temperature = column(in, "temperature");
  // At temperature 0 only the order counts.
  const Tensor scaled = where(greater(seen, 0), penalised, logits) / where(greater(temperature, 0), temperature, 1);
  const Tensor is_drawn = greater(in["temperature"], 0);
  // Of the largest alone, which may be several, the first.
  const Tensor top_k = where(is_drawn, in["top_k"], 1), uniform = where(is_drawn, in["uniform"], 0);
  return detail::emit("draw_token", {scaled, top_k, in["top_p"], in["min_p"], uniform}, {}, Where::current());
}

}  // namespace lockstep::llm
