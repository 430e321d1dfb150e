// SPDX-License-Identifier: Apache-2.0
#include "tools/verify/language_verify.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "console/options.h"
#include "frontend/io/jsonl.h"
#include "frontend/llm/stored_weights.h"
#include "tools/verify/language_golden.h"
#include "tools/verify/language_runs.h"

namespace lockstep::tools {
namespace {

using llm::TokenList;

constexpr double kTolerance = 1e-4;
/// Shorter than the prompts, so that they take several, the last of them in part.
constexpr int64_t kChunk = 5, kBatchChunk = 16;

struct LanguageReport {
  std::string name;  ///< "p0.chunks"
  size_t tokens = 0, tokens_equal = 0;
  double logits_rel_l2 = 0;  ///< the largest of all positions
  bool passed = true;
  std::string why = {};
};

/// |got - want| / |want| of the position where it is largest; infinite where something is not a number.
double farthest(const std::vector<double>& got, const std::vector<double>& want, size_t width) {
  if (got.size() != want.size()) return INFINITY;
  double worst = 0;
  for (size_t start = 0; start < want.size(); start += width) {
    double difference = 0, size = 0;
    for (size_t i = start; i < start + width; ++i) {
      difference += (got[i] - want[i]) * (got[i] - want[i]);
      size += want[i] * want[i];
    }
    const double distance = std::sqrt(difference / size);
    worst = std::isfinite(distance) ? std::max(worst, distance) : INFINITY;
  }
  return worst;
}

/// What is right, and how far a device may be from it.
struct Expected {
  std::vector<LanguagePrompt> prompts;
  double tolerance = kTolerance;
  std::string note = {};
};

struct Made {
  std::string way;  ///< "chunks"
  std::vector<double> logits;
  TokenList tokens;
};

LanguageReport judge(const LanguagePrompt& prompt, double tolerance, const Made& made) {
  LanguageReport report{.name = prompt.name + "." + made.way, .tokens = prompt.greedy.size()};
  report.logits_rel_l2 = farthest(made.logits, prompt.logits, prompt.logits.size() / prompt.ids.size());
  const auto [got, want] = std::ranges::mismatch(made.tokens, prompt.greedy);
  report.tokens_equal = static_cast<size_t>(want - prompt.greedy.begin());
  if (!(report.logits_rel_l2 <= tolerance)) report.why = fmt::format("logits are further than {:.3g} from the expected ones", tolerance);
  if (report.tokens_equal < report.tokens) {
    report.why += fmt::format("{}token {} of {} is {}, expected {}", report.why.empty() ? "" : ", and ", report.tokens_equal + 1,
                              report.tokens, got == made.tokens.end() ? "missing" : std::to_string(*got), *want);
  }
  report.passed = report.why.empty();
  return report;
}

/// Each token from all before it, computed anew.
Made runWhole(LanguageRuns& runs, const LanguagePrompt& prompt) {
  const size_t width = prompt.logits.size() / prompt.ids.size();
  const std::vector<double> logits = runs.whole(prompt.ids);
  TokenList tokens = prompt.ids, made;
  std::vector<double> now = logits;
  while (made.size() < prompt.greedy.size()) {
    const auto last = now.end() - static_cast<ptrdiff_t>(width);
    made.push_back(static_cast<int32_t>(std::max_element(last, now.end()) - last));
    tokens.push_back(made.back());
    if (made.size() < prompt.greedy.size()) now = runs.whole(tokens);
  }
  return {"whole", logits, made};
}

/// One sequence: its prompt in pieces, then token by token.
Made runPieces(SequenceRuns& runs, const LanguagePrompt& prompt, bool by_token) {
  runs.restart();
  std::vector<double> logits;
  FedTokens fed;
  std::vector<TokenList> pieces{prompt.ids};
  if (by_token) {
    pieces.clear();
    for (const int32_t id : prompt.ids) pieces.push_back({id});
  }
  for (const TokenList& piece : pieces) {
    fed = runs.feed({piece}, true);
    logits.insert(logits.end(), fed.logits[0].begin(), fed.logits[0].end());
  }
  TokenList made{fed.next[0]};
  while (made.size() < prompt.greedy.size()) made.push_back(runs.feed({{made.back()}}, false).next[0]);
  return {by_token ? "tokens" : "chunks", logits, made};
}

/// All prompts side by side, whatever their lengths.
std::vector<Made> runBatch(SequenceRuns& runs, const std::vector<LanguagePrompt>& prompts) {
  std::vector<TokenList> now, made(prompts.size());
  for (const LanguagePrompt& prompt : prompts) now.push_back(prompt.ids);
  runs.restart();
  FedTokens fed = runs.feed(now, true);
  const std::vector<std::vector<double>> logits = fed.logits;
  for (bool goes_on = true; goes_on;) {
    goes_on = false;
    for (size_t i = 0; i < prompts.size(); ++i) {
      const bool is_full = made[i].size() >= prompts[i].greedy.size();
      if (!is_full) made[i].push_back(fed.next[i]);
      const bool more = made[i].size() < prompts[i].greedy.size();
      now[i] = more ? TokenList{made[i].back()} : TokenList{};
      goes_on = goes_on || more;
    }
    if (goes_on) fed = runs.feed(now, false);
  }
  std::vector<Made> all;
  for (size_t i = 0; i < prompts.size(); ++i) all.push_back({"batch", logits[i], made[i]});
  return all;
}

/// A model that the expectations of 16-bit weights may come from.
struct Reading {
  llm::LanguageConfig config;
  std::string note;
};

/// Module.bfloat16() of PyTorch rounds the rotary frequencies, too, where a model that is loaded in bf16 keeps them in f32. And what
/// embeddings of Gemma are multiplied with has the type that is computed in, which for expectations may be wider than that of the weights.
std::vector<Reading> readingsOf(const llm::LanguageConfig& config) {
  std::vector<Reading> readings{{config, ""}};
  if (config.dtype == io::ElementType::F32) return readings;
  if (!config.ropes.empty()) {
    Reading rounded{config, fmt::format("with rotary frequencies rounded to {}", io::toString(config.dtype))};
    for (llm::RotaryConfig& rotary : rounded.config.ropes)
      rotary.frequencies = io::Array::from(config.dtype, {rotary.dims / 2}, rotary.radians()).toDoubles();
    readings.push_back(std::move(rounded));
  }
  if (config.embedding_scale == 1) return readings;
  for (size_t i = 0, count = readings.size(); i < count; ++i) {
    Reading exact = readings[i];
    exact.config.embedding_scale = std::sqrt(static_cast<double>(config.width));
    exact.note += fmt::format("{}embeddings times a number that is not rounded", exact.note.empty() ? "with " : " and ");
    readings.push_back(std::move(exact));
  }
  return readings;
}

double distanceOf(LanguageRuns& runs, const LanguagePrompt& prompt) {
  return farthest(runs.whole(prompt.ids), prompt.logits, prompt.logits.size() / prompt.ids.size());
}

/// With what was computed in place of what another program did.
LanguagePrompt replaced(LanguagePrompt prompt, Made made) {
  prompt.logits = std::move(made.logits);
  prompt.greedy = std::move(made.tokens);
  return prompt;
}

/// Of weights that are not those of the expectations: those of the evaluator with them.
void expectEvaluated(Expected& expected, LanguageRuns& evaluated) {
  double moved = 0;
  for (LanguagePrompt& prompt : expected.prompts) {
    moved = std::max(moved, distanceOf(evaluated, prompt));
    prompt = replaced(prompt, runWhole(evaluated, prompt));
  }
  expected.note = fmt::format("as the evaluator has it with these weights, {:.1e} from the logits of the folder", moved);
}

/// The same of keys and values of 16 bits. Where a device's key lies just beside the evaluator's, the two may be rounded apart by what the
/// type's last bit is worth.
Expected withCache(const Expected& expected, LanguageRuns& evaluated, const RunShape& shape) {
  Expected cached{.prompts = {}, .tolerance = shape.cache == DType::BF16 ? 0x1p-8 : 0x1p-11};
  const std::unique_ptr<SequenceRuns> one = evaluated.sequences(shape);
  double moved = 0;
  for (const LanguagePrompt& prompt : expected.prompts) {
    Made made = runPieces(*one, prompt, false);
    moved = std::max(moved, farthest(made.logits, prompt.logits, prompt.logits.size() / prompt.ids.size()));
    cached.prompts.push_back(replaced(prompt, std::move(made)));
  }
  cached.note =
      fmt::format("as the evaluator has it with a cache of {}, {:.1e} from the logits with f32", graph::toString(shape.cache), moved);
  return cached;
}

/// Of fewer bits the logits are others, so a folder of `quantize` does not get those of its model.
Status checkExpectations(const std::filesystem::path& folder, const llm::LanguageConfig& stored) {
  std::error_code ignored;
  if (std::filesystem::exists(folder / kExpectations, ignored)) return Success{};
  return fail("golden.file", fmt::format("there is no {}, which has what another program computed", kExpectations),
              {.file = folder.string()},
              stored.weights.isF32()
                  ? "write it as docs/language_models.md says under 'Is it right?'"
                  : fmt::format("'quantize' copies none; give the folder that it read, with --weights {}", toString(stored.weights)));
}

io::Json reportJson(const std::string& device, const std::vector<LanguageReport>& reports, size_t failed) {
  io::Json cases = io::Json::array();
  for (const LanguageReport& report : reports) {
    cases.add(io::Json::object()
                  .add("name", report.name)
                  .add("status", report.passed ? "pass" : "fail")
                  .add("tokens_equal", uint64_t{report.tokens_equal})
                  .add("tokens", uint64_t{report.tokens})
                  .add("logits_rel_l2", report.logits_rel_l2)
                  .add("why", report.why));
  }
  return io::Json::object()
      .add("device", device)
      .add("cases", cases)
      .add("passed", uint64_t{reports.size() - failed})
      .add("failed", uint64_t{failed});
}

}  // namespace

Result<ExitCode> verifyLanguage(const std::string& folder, const std::string& device, const WeightChoices& kept, bool json) {
  LS_TRY(const std::optional<nn::WeightFormat> format, kept.weights());
  LS_TRY(const DType cache, kept.cache());
  LS_TRY(llm::LanguageConfig config, llm::LanguageConfig::load(folder));
  LS_CHECK(checkExpectations(folder, config));
  LS_TRY(config, llm::withFormat(config, format));
  LS_TRY(const io::TensorFile stored, llm::loadStoredWeights(config, folder));
  Expected expected;
  LS_TRY(expected.prompts, readLanguageGolden(folder, config.vocabulary));
  const std::vector<LanguagePrompt>& prompts = expected.prompts;
  int64_t longest = 0;
  for (const LanguagePrompt& prompt : prompts) longest = std::max(longest, std::ssize(prompt.ids) + std::ssize(prompt.greedy));
  std::unique_ptr<LanguageRuns> runs;
  const LanguagePrompt& far = *std::ranges::max_element(prompts, {}, [](const LanguagePrompt& prompt) { return prompt.ids.size(); });
  double least = INFINITY;
  for (const Reading& reading : readingsOf(config)) {
    std::unique_ptr<LanguageRuns> its = makeLanguageRuns(reading.config, stored, device, longest);
    const double distance = distanceOf(*its, far);
    if (runs && distance >= least) continue;
    least = distance;
    runs = std::move(its);
    config = reading.config;
    expected.note = reading.note.empty() ? "" : reading.note + ", as the expected logits have them";
    if (least <= kTolerance / 10) break;  // the others are further
  }
  const bool as_expected = least <= kTolerance;
  const std::unique_ptr<LanguageRuns> evaluated =
      kept.areSaid() ? makeLanguageRuns(config, stored, "evaluate", longest) : std::unique_ptr<LanguageRuns>();
  if (!as_expected && format && !format->isF32()) expectEvaluated(expected, *evaluated);
  const Expected cached =
      cache == DType::F32 ? expected : withCache(expected, *evaluated, {.positions = longest, .chunk = kChunk, .cache = cache});

  std::vector<LanguageReport> reports;
  const auto keep = [&](const Expected& right, size_t prompt, const Made& made) {
    LanguageReport report = judge(right.prompts[prompt], right.tolerance, made);
    if (report.passed) report.why = right.note;
    if (!json) {
      fmt::print("{:<6}{:<12} {} of {} tokens, logits {:.2e}{}{}\n", report.passed ? "pass" : "fail", report.name, report.tokens_equal,
                 report.tokens, report.logits_rel_l2, report.why.empty() ? "" : ": ", report.why);
    }
    reports.push_back(std::move(report));
  };
  for (size_t i = 0; i < prompts.size(); ++i) keep(expected, i, runWhole(*runs, prompts[i]));
  {
    const std::unique_ptr<SequenceRuns> one = runs->sequences({.positions = longest, .chunk = kChunk, .cache = cache});
    for (size_t i = 0; i < prompts.size(); ++i) {
      for (const bool by_token : {true, false}) keep(cached, i, runPieces(*one, cached.prompts[i], by_token));
    }
  }
  const std::unique_ptr<SequenceRuns> all =
      runs->sequences({.sequences = std::ssize(prompts), .positions = longest, .chunk = kBatchChunk, .cache = cache});
  const std::vector<Made> made = runBatch(*all, cached.prompts);
  for (size_t i = 0; i < made.size(); ++i) keep(cached, i, made[i]);

  const auto failed = static_cast<size_t>(std::ranges::count_if(reports, [](const LanguageReport& report) { return !report.passed; }));
  if (json) {
    fmt::print("{}\n", reportJson(runs->device(), reports, failed).text());
  } else {
    fmt::print("{} passed, {} failed on {}\n", reports.size() - failed, failed, runs->device());
  }
  return failed == 0 ? ExitCode::Ok : ExitCode::NumericCheck;
}

}  // namespace lockstep::tools
