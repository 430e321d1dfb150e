// SPDX-License-Identifier: Apache-2.0
// Golden data, profiles, and recorded lines of conformance suites.
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "conformance/suite.h"
#include "conformance/values.h"
#include "frontend/llm/language_config.h"
#include "tests/fuzz/entries.h"
#include "tests/fuzz/files.h"
#include "tests/fuzz/promises.h"
#include "tools/profile/profile_data.h"
#include "tools/verify/golden.h"
#include "tools/verify/rate_expression.h"

namespace lockstep::fuzz {

bool readGolden(std::span<const std::byte> input) {
  const Result<io::TensorFile> file = io::parseSafetensors(input, "input");
  if (!file.ok()) return false;
  const Result<tools::GoldenFile> golden = tools::interpretGolden(*file, "train_input");
  requireAnswer(golden);
  if (!golden.ok()) return false;
  if (!golden->training) return true;
  for (const int64_t step : {1, 2, 1000}) (void)golden->training->rate(step);
  for (const auto& [name, array] : golden->training->initial) (void)golden->training->decays(name);
  return true;
}

bool readRate(std::span<const std::byte> input) {
  const auto rate = tools::parseRate(textOf(input));
  requireAnswer(rate);
  if (!rate.ok()) return false;
  for (const int64_t step : {int64_t{1}, int64_t{2}, int64_t{1} << 53}) (void)(*rate)(step);
  return true;
}

bool readLanguage(std::span<const std::byte> input) {
  const Result<llm::LanguageConfig> config = llm::LanguageConfig::parse(textOf(input), "config.json");
  requireAnswer(config);
  if (!config.ok()) return false;
  require(config->vocabulary > 0 && config->width > 0 && !config->layers.empty(), "a model has tokens, columns and layers");
  for (const llm::LayerConfig& layer : config->layers)
    require(config->ropes.empty() || layer.rope < config->ropes.size(), "a layer turns as one that is there");
  for (const llm::RotaryConfig& rope : config->ropes) {
    require(rope.dims >= 2 && rope.dims % 2 == 0, "pairs of columns turn");
    require(std::ranges::all_of(rope.frequencies, [](double one) { return std::isfinite(one); }), "frequencies are numbers");
  }
  return true;
}

bool readProfile(std::span<const std::byte> input) {
  const Result<tools::ProfileSummary> profile = tools::readProfile(textOf(input), "input");
  requireAnswer(profile);
  if (!profile.ok()) return false;
  require(tools::changesOf(*profile, *profile).size() <= profile->labels.size(), "a profile has the labels of itself");
  (void)tools::diffJson(*profile, *profile);
  return true;
}

bool readCases(std::span<const std::byte> input) {
  conformance::CaseList list;
  try {
    list = conformance::parseCaseList(textOf(input));
  } catch (const nlohmann::json::exception&) {
    return false;  // the run names the line
  }
  // What a judge would not take, either.
  constexpr uint64_t kMostBytes = 1u << 20;
  const auto isLarge = [](const conformance::ValueType& type) { return conformance::sizeOf(type) > kMostBytes; };
  if (isLarge(list.result) || std::ranges::any_of(list.parameters, isLarge)) return false;
  for (const conformance::Case& each : list.cases) {
    require(each.inputs.size() == list.parameters.size(), "a case has a value for each parameter");
    for (size_t i = 0; i < each.inputs.size(); ++i) {
      std::vector<std::byte> bytes(conformance::sizeOf(list.parameters[i]));
      conformance::encode(each.inputs[i], list.parameters[i], bytes.data());
      (void)conformance::describe(list.parameters[i], bytes.data());
    }
    const std::vector<std::byte> found(conformance::sizeOf(list.result));
    (void)conformance::matches(each.expected, list.result, found.data());
    (void)conformance::describe(list.result, each.expected);
  }
  return true;
}

namespace {

constexpr std::string_view kLists =
    R"({"h": "next", "params": ["u32"], "ret": "u32", "cases": [[[1], {"v": 2}], [[5], {"v": 6}], [[7], {"i": [1, 8]}]]})"
    "\n"
    R"({"h": "length", "params": ["vec3<f32>", "f16"], "ret": "f32", "cases": [[[["f3f800000", "f40000000", "f00000000"], "h3c00"], {"any": [{"v": "f40000000"}, {"skip": 1}]}]]})"
    "\n";

using Judges = std::array<std::unique_ptr<conformance::Judge>, 4>;

Judges makeJudges() {
  const conformance::Settings settings{.folder = emptyFolder(), .files = {}, .only = {}};
  const gzFile lists = gzopen((settings.folder / "cts_expr_cases.jsonl.gz").c_str(), "wb");
  gzwrite(lists, kLists.data(), static_cast<unsigned>(kLists.size()));
  gzclose(lists);
  return {conformance::makeVerdictJudge(settings).orThrow(), conformance::makeExpressionJudge(settings).orThrow(),
          conformance::makeTraceJudge(settings).orThrow(), conformance::makeConsensusJudge(settings).orThrow()};
}

}  // namespace

bool readLine(std::span<const std::byte> input) {
  static const Judges judges = makeJudges();
  const std::string_view text = textOf(input);
  if (text.empty() || text.front() < '0' || text.front() > '3') return false;
  try {
    (void)judges[static_cast<size_t>(text.front() - '0')]->judge(std::string(text.substr(1)));
  } catch (const nlohmann::json::exception&) {
    return false;  // the run names the line
  }
  return true;
}

}  // namespace lockstep::fuzz
