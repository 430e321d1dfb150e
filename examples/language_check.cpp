// SPDX-License-Identifier: Apache-2.0
#include "examples/language_check.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "examples/data/conversations.h"
#include "frontend/ops/losses.h"
#include "frontend/ops/ops.h"

namespace lockstep::examples {
namespace {

using llm::LanguageModel;

constexpr int64_t kRows = 8;

/// Of each token but the first of a row: its loss, and 1 where it is the likeliest.
Outputs losses(const LanguageModel& model, const Tensor& ids) {
  const int64_t count = ids.extent(1) - 1;
  const Tensor logits = narrow(model(ids), 1, 0, count), targets = narrow(ids, 1, 1, count);
  return {{"loss", cross_entropy(logits, targets, {.reduction = Reduction::None})},
          {"right", cast(equal(argmax(logits, -1), targets), DType::F32)}};
}

}  // namespace

LanguageCheck::LanguageCheck(ModelTrainer<LanguageModel>& trainer, const LanguageStart& start, std::vector<int32_t> tokens, int64_t length)
    : trainer_(trainer),
      tokenizer_(start.tokenizer),
      vocabulary_(start.config.vocabulary),
      tokens_(std::move(tokens)),
      length_(static_cast<size_t>(length)),
      ends_(start.config.end_tokens),
      loss_(trainer.attach({.inputs = {{"ids", i32(kRows, length)}},
                            .forward = [](const LanguageModel& model, const Inputs& in) { return losses(model, in["ids"]); }})),
      next_(trainer.attach({.inputs = {{"ids", i32(1, length)}}, .forward = [](const LanguageModel& model, const Inputs& in) -> Outputs {
                              return argmax(model(in["ids"]), -1);
                            }})) {
  findAnswers();
}

void LanguageCheck::findAnswers() {
  const auto document_end = tokenizer_.idOf(kTextEnd), turn_end = tokenizer_.idOf(kTurnEnd);
  if (!document_end || !turn_end || !tokenizer_.idOf(kTurn)) return;
  const std::vector<uint32_t> ids = tokenizer_.encode(kAnswer, {.add_special_tokens = false}).orThrow();
  const std::vector<int32_t> opening(ids.begin(), ids.end());
  size_t document = 0;
  for (auto at = tokens_.begin(); at != tokens_.end(); ++at) {
    if (*at == static_cast<int32_t>(*document_end)) document = static_cast<size_t>(at - tokens_.begin()) + 1;
    if (tokens_.end() - at < std::ssize(opening) || !std::equal(opening.begin(), opening.end(), at)) continue;
    const auto begin = at + std::ssize(opening), end = std::find(begin, tokens_.end(), static_cast<int32_t>(*turn_end));
    if (end == tokens_.end()) return;
    answers_.push_back({.document = document,
                        .begin = static_cast<size_t>(begin - tokens_.begin()),
                        .end = static_cast<size_t>(end - tokens_.begin()) + 1});
  }
}

std::span<const int32_t> LanguageCheck::windowAt(size_t begin) const {
  return std::span(tokens_).subspan(begin, std::min(length_, tokens_.size() - begin));
}

Metrics LanguageCheck::measure() {
  double loss = 0;
  size_t counted = 0;
  std::vector<char> right(tokens_.size(), 0);
  const size_t batch = kRows * length_, row = length_ - 1;
  std::vector<int32_t> ids;
  for (size_t begin = 0; begin + 1 < tokens_.size(); begin += batch) {
    // What fills up the last window comes after all that counts.
    ids.assign(tokens_.begin() + static_cast<ptrdiff_t>(begin),
               tokens_.begin() + static_cast<ptrdiff_t>(std::min(begin + batch, tokens_.size())));
    ids.resize(batch, 0);
    const ForwardResult result = loss_.run({{"ids", ids}});
    const std::span<const float> each = result.outputs.get("loss").floats(), is_right = result.outputs.get("right").floats();
    for (size_t i = 0; i < each.size(); ++i) {
      const size_t token = begin + i / row * length_ + i % row + 1;
      if (token >= tokens_.size()) continue;
      loss += each[i];
      right[token] = is_right[i] > 0;
      ++counted;
    }
  }
  const double mean = loss / static_cast<double>(counted);
  Metrics metrics{{"heldout_loss", mean}, {"perplexity", std::exp(mean)}};
  size_t whole = 0, good = 0;
  for (const Answer& answer : answers_) {
    if (answer.document / length_ != (answer.end - 1) / length_) continue;
    ++whole;
    good += std::all_of(right.begin() + static_cast<ptrdiff_t>(answer.begin), right.begin() + static_cast<ptrdiff_t>(answer.end),
                        [](char one) { return one != 0; });
  }
  if (whole > 0) metrics.emplace_back("answers", static_cast<double>(good) / static_cast<double>(whole));
  return metrics;
}

std::vector<int32_t> LanguageCheck::goOn(std::span<const int32_t> prompt) {
  constexpr size_t kMost = 32;
  std::vector<int32_t> ids(prompt.begin(), prompt.end());
  ids.resize(length_, 0);
  size_t at = prompt.size();
  for (const size_t end = std::min(length_, at + kMost); at < end; ++at) {
    ids[at] = next_.run({{"ids", ids}}).output.ints()[at - 1];
    if (std::ranges::find(ends_, ids[at]) != ends_.end()) break;
  }
  return {ids.begin() + std::ssize(prompt), ids.begin() + static_cast<ptrdiff_t>(at)};
}

std::string LanguageCheck::textOf(std::span<const int32_t> tokens) const {
  return tokenizer_.decode(std::vector<uint32_t>(tokens.begin(), tokens.end()), {.skip_unknown_ids = true}).orThrow();
}

std::vector<Exhibit> LanguageCheck::exhibits() {
  constexpr size_t kShownAnswers = 3;
  const auto given = windowAt(0).first(std::min(length_, tokens_.size()) / 2);
  std::vector<Exhibit> exhibits;
  if (!given.empty()) exhibits.push_back({"text", textOf(given) + " ... " + textOf(goOn(given)) + "\n"});
  std::string answered;
  size_t shown = 0;
  for (size_t i = 0; i < answers_.size() && shown < kShownAnswers; ++i) {
    const Answer& answer = answers_[i];
    // The last one of a conversation.
    if (i + 1 < answers_.size() && answers_[i + 1].document == answer.document) continue;
    if (answer.end - answer.document > length_) continue;
    const auto prompt = std::span(tokens_).subspan(answer.document, answer.begin - answer.document);
    answered += textOf(prompt) + textOf(goOn(prompt)) + "\n\n";
    ++shown;
  }
  if (shown > 0) exhibits.push_back({"answers", answered});
  return exhibits;
}

io::TensorFile LanguageCheck::expectations() {
  constexpr size_t kMostPrompt = 12, kMore = 12;
  const size_t count = std::min(kMostPrompt + kMore, length_);
  Forward logits = trainer_.attach({.inputs = {{"ids", i32(1, static_cast<int64_t>(count))}},
                                    .forward = [](const LanguageModel& model, const Inputs& in) -> Outputs { return model(in["ids"]); }});
  const auto width = static_cast<size_t>(vocabulary_);
  io::TensorFile file;
  const size_t starts[] = {0, tokens_.size() / 2};
  for (size_t p = 0; p < std::size(starts); ++p) {
    const size_t given = std::min({kMostPrompt, count / 2, tokens_.size() - starts[p]});
    if (given == 0) continue;
    std::vector<int32_t> ids = {tokens_.begin() + static_cast<ptrdiff_t>(starts[p]),
                                tokens_.begin() + static_cast<ptrdiff_t>(starts[p] + given)};
    ids.resize(count, 0);
    const std::string name = "p" + std::to_string(p);
    file.tensors.emplace(name + "/ids", io::Array::fromInts({static_cast<int64_t>(given)}, std::span(ids).first(given)));
    for (size_t at = given; at < count; ++at) {
      const ForwardResult result = logits.run({{"ids", ids}});
      const std::span<const float> all = result.output.floats();
      if (at == given)
        file.tensors.emplace(name + "/logits", io::Array::fromFloats({static_cast<int64_t>(given), vocabulary_}, all.first(given * width)));
      const auto row = all.subspan((at - 1) * width, width);
      ids[at] = static_cast<int32_t>(std::ranges::max_element(row) - row.begin());
    }
    file.tensors.emplace(name + "/greedy", io::Array::fromInts({static_cast<int64_t>(count)}, ids));
  }
  return file;
}

}  // namespace lockstep::examples
