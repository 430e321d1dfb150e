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

LanguageReport judge(const LanguagePrompt& prompt, const std::string& way, const std::vector<double>& logits, const TokenList& made) {
  LanguageReport report{.name = prompt.name + "." + way, .tokens = prompt.greedy.size()};
  report.logits_rel_l2 = farthest(logits, prompt.logits, prompt.logits.size() / prompt.ids.size());
  const auto [got, want] = std::ranges::mismatch(made, prompt.greedy);
  report.tokens_equal = static_cast<size_t>(want - prompt.greedy.begin());
  if (!(report.logits_rel_l2 <= kTolerance)) report.why = fmt::format("logits are further than {} from the expected ones", kTolerance);
  if (report.tokens_equal < report.tokens) {
    report.why += fmt::format("{}token {} of {} is {}, expected {}", report.why.empty() ? "" : ", and ", report.tokens_equal + 1,
                              report.tokens, got == made.end() ? "missing" : std::to_string(*got), *want);
  }
  report.passed = report.why.empty();
  return report;
}

/// Each token from all before it, computed anew.
LanguageReport runWhole(LanguageRuns& runs, const LanguagePrompt& prompt) {
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
  return judge(prompt, "whole", logits, made);
}

/// One sequence: its prompt in pieces, then token by token.
LanguageReport runPieces(SequenceRuns& runs, const LanguagePrompt& prompt, bool by_token) {
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
  return judge(prompt, by_token ? "tokens" : "chunks", logits, made);
}

/// All prompts side by side, whatever their lengths.
std::vector<LanguageReport> runBatch(SequenceRuns& runs, const std::vector<LanguagePrompt>& prompts) {
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
  std::vector<LanguageReport> reports;
  for (size_t i = 0; i < prompts.size(); ++i) reports.push_back(judge(prompts[i], "batch", logits[i], made[i]));
  return reports;
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

Result<ExitCode> verifyLanguage(const std::string& folder, const std::string& device, const std::string& weights, bool json) {
  std::optional<nn::WeightFormat> format;
  if (!weights.empty()) {
    LS_TRY(format, console::asUsage(nn::WeightFormat::parse(weights)));
  }
  LS_TRY(llm::LanguageConfig config, llm::LanguageConfig::load(folder));
  LS_TRY(config, llm::withFormat(config, format));
  LS_TRY(const io::TensorFile stored, llm::loadStoredWeights(config, folder));
  LS_TRY(const std::vector<LanguagePrompt> prompts, readLanguageGolden(folder, config.vocabulary));
  int64_t longest = 0;
  for (const LanguagePrompt& prompt : prompts) longest = std::max(longest, std::ssize(prompt.ids) + std::ssize(prompt.greedy));
  const LanguagePrompt& far = *std::ranges::max_element(prompts, {}, [](const LanguagePrompt& prompt) { return prompt.ids.size(); });
  std::unique_ptr<LanguageRuns> runs;
  std::string note;
  double least = INFINITY;
  const std::vector<Reading> readings = readingsOf(config);
  for (const Reading& reading : readings) {
    std::unique_ptr<LanguageRuns> its = makeLanguageRuns(reading.config, stored, device, longest);
    const double distance = readings.size() > 1 ? distanceOf(*its, far) : 0;
    if (runs && distance >= least) continue;
    least = distance;
    runs = std::move(its);
    note = reading.note.empty() ? "" : reading.note + ", as the expected logits have them";
    if (least <= kTolerance / 10) break;  // the others are further
  }
  std::vector<LanguageReport> reports;
  const auto keep = [&](LanguageReport report) {
    if (report.passed) report.why = note;
    if (!json) {
      fmt::print("{:<6}{:<12} {} of {} tokens, logits {:.2e}{}{}\n", report.passed ? "pass" : "fail", report.name, report.tokens_equal,
                 report.tokens, report.logits_rel_l2, report.why.empty() ? "" : ": ", report.why);
    }
    reports.push_back(std::move(report));
  };
  for (const LanguagePrompt& prompt : prompts) keep(runWhole(*runs, prompt));
  {
    const std::unique_ptr<SequenceRuns> one = runs->sequences({.sequences = 1, .positions = longest, .chunk = kChunk});
    for (const LanguagePrompt& prompt : prompts) {
      for (const bool by_token : {true, false}) keep(runPieces(*one, prompt, by_token));
    }
  }
  const std::unique_ptr<SequenceRuns> all = runs->sequences({.sequences = std::ssize(prompts), .positions = longest, .chunk = kBatchChunk});
  for (LanguageReport& report : runBatch(*all, prompts)) keep(std::move(report));

  const auto failed = static_cast<size_t>(std::ranges::count_if(reports, [](const LanguageReport& report) { return !report.passed; }));
  if (json) {
    fmt::print("{}\n", reportJson(runs->device(), reports, failed).text());
  } else {
    fmt::print("{} passed, {} failed on {}\n", reports.size() - failed, failed, runs->device());
  }
  return failed == 0 ? ExitCode::Ok : ExitCode::NumericCheck;
}

}  // namespace lockstep::tools
