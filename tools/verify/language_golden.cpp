// SPDX-License-Identifier: Apache-2.0
#include "tools/verify/language_golden.h"

#include <fmt/format.h>

#include <algorithm>

#include "frontend/io/safetensors.h"

namespace lockstep::tools {
namespace {

constexpr std::string_view kIds = "/ids", kLogits = "/logits", kGreedy = "/greedy";

Result<LanguagePrompt> readPrompt(const io::TensorFile& file, const std::string& path, const std::string& name, int64_t vocabulary) {
  const auto wrong = [&](const std::string& message) {
    return fail("golden.tensor", message, {.file = path}, "write ids [T], logits [T, vocabulary] and greedy [more than T] for each prompt");
  };
  const io::Array* ids = file.find(name + std::string(kIds));
  const io::Array* logits = file.find(name + std::string(kLogits));
  const io::Array* greedy = file.find(name + std::string(kGreedy));
  if (ids == nullptr || logits == nullptr || greedy == nullptr)
    return wrong(fmt::format("'{}' has not all of {}, {} and {}", name, kIds, kLogits, kGreedy));
  const bool whole = !io::isFloat(ids->type) && !io::isFloat(greedy->type) && ids->shape.size() == 1 && greedy->shape.size() == 1;
  if (!whole || ids->shape[0] < 1 || greedy->shape[0] <= ids->shape[0] || logits->shape != std::vector{ids->shape[0], vocabulary}) {
    return wrong(fmt::format("'{}' has ids {}, logits {} and greedy {} for {} ids of the model", name, describe(*ids), describe(*logits),
                             describe(*greedy), vocabulary));
  }
  for (const io::Array* array : {ids, greedy}) {
    const std::vector<double> numbers = array->toDoubles();
    const auto beyond = std::ranges::find_if(numbers, [&](double id) { return !(id >= 0 && id < static_cast<double>(vocabulary)); });
    if (beyond != numbers.end()) return wrong(fmt::format("'{}' has the id {}, and the model has {}", name, *beyond, vocabulary));
  }
  LanguagePrompt prompt{.name = name, .ids = ids->toInts(), .logits = logits->toDoubles(), .greedy = greedy->toInts()};
  if (!std::ranges::equal(prompt.ids, std::span(prompt.greedy).first(prompt.ids.size())))
    return wrong(fmt::format("greedy of '{}' does not begin with its ids", name));
  prompt.greedy.erase(prompt.greedy.begin(), prompt.greedy.begin() + std::ssize(prompt.ids));
  return prompt;
}

}  // namespace

Result<std::vector<LanguagePrompt>> readLanguageGolden(const std::filesystem::path& folder, int64_t vocabulary) {
  const std::filesystem::path path = folder / kExpectations;
  LS_TRY(const io::TensorFile file, io::readSafetensors(path));
  std::vector<LanguagePrompt> prompts;
  for (const auto& [name, array] : file.tensors) {
    const std::string_view whole = name;
    const size_t slash = whole.find('/');
    const std::string_view part = slash == std::string_view::npos ? std::string_view() : whole.substr(slash);
    if (part != kIds && part != kLogits && part != kGreedy)
      return fail("golden.tensor", fmt::format("tensor '{}' belongs to no prompt", name), {.file = path.string()},
                  "leave it out, or name it PROMPT/ids, PROMPT/logits or PROMPT/greedy");
    if (part != kIds) continue;
    LS_TRY(LanguagePrompt prompt, readPrompt(file, path.string(), std::string(whole.substr(0, slash)), vocabulary));
    prompts.push_back(std::move(prompt));
  }
  if (prompts.empty())
    return fail("golden.tensor", "there are no prompts", {.file = path.string()},
                "write PROMPT/ids, PROMPT/logits and PROMPT/greedy for at least one");
  return prompts;
}

}  // namespace lockstep::tools
