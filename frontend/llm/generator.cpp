// SPDX-License-Identifier: Apache-2.0
#include "frontend/llm/generator.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "frontend/llm/checkpoint.h"
#include "frontend/llm/generator_session.h"
#include "frontend/llm/sequence_states.h"
#include "frontend/llm/stored_weights.h"
#include "frontend/ops/ops.h"
#include "frontend/trace/throw_error.h"
#include "frontend/train/inference.h"

namespace lockstep::llm {
namespace {

constexpr int64_t kMostByDefault = 4096;

[[noreturn]] void refuse(const std::string& code, const std::string& message, const std::string& remedy, const Where& where) {
  throw Error({.code = "language_model." + code, .message = message, .where = detail::toLocation(where), .notes = {}, .remedy = remedy});
}

GeneratorOptions checked(const LanguageConfig& config, GeneratorOptions options, const Where& where) {
  const int64_t most = config.context > 0 ? config.context : kMostByDefault;
  if (options.positions == 0) options.positions = std::min(most, kMostByDefault);
  if (options.sequences < 1 || options.positions < 1 || options.chunk < 1 || options.tokens_per_submission < 1 || options.vocabulary < 0) {
    refuse("options",
           fmt::format("{} sequences of {} positions in chunks of {}, {} tokens per submission, of {} ids", options.sequences,
                       options.positions, options.chunk, options.tokens_per_submission, options.vocabulary),
           "each is at least 1, and vocabulary may be 0", where);
  }
  if (options.tokens_per_submission > kMostTokensPerSubmission)
    refuse("options", fmt::format("{} tokens per submission, and the most is {}", options.tokens_per_submission, kMostTokensPerSubmission),
           "ask for no more than that", where);
  if (config.learned_positions > 0 && options.positions > config.learned_positions)
    refuse("options", fmt::format("{} positions, but the model has a table of {}", options.positions, config.learned_positions),
           "ask for no more than that", where);
  if (config.longest > 0 && options.positions > config.longest)
    refuse("options", fmt::format("{} positions, but beyond {} the scaling of the model is another one", options.positions, config.longest),
           "ask for no more than that", where);
  if (options.vocabulary > config.vocabulary)
    refuse("options", fmt::format("{} ids, but the model has {}", options.vocabulary, config.vocabulary),
           "the tokenizer is of another model", where);
  checkCache(config, options.cache, where);
  options.weights = config.weights;
  options.chunk = std::min(options.chunk, options.positions);
  return options;
}

/// With the format that the options want.
LanguageConfig withOptions(const LanguageConfig& config, const GeneratorOptions& options) {
  return withFormat(config, options.weights).orThrow();
}

struct FeedSettings {
  bool every = false;
  SamplingOptions sampling = {};
};

}  // namespace

void checkCache(const LanguageConfig& config, DType cache, Where where) {
  if (!graph::isFloat(cache)) refuse("options", fmt::format("a cache of {}", graph::toString(cache)), "it is f32, f16 or bf16", where);
  const bool attends = std::ranges::any_of(config.layers, [](const LayerConfig& layer) { return layer.kind == LayerKind::Attention; });
  if (cache != DType::F32 && attends && config.attention.head_width % 2 != 0)
    refuse("options", fmt::format("a cache of {} for heads of width {}", graph::toString(cache), config.attention.head_width),
           "heads of odd width need a cache of f32", where);
}

struct Generator::Impl {
  Impl(const LanguageConfig& its, const GeneratorOptions& given, const Where& where)
      : config(its),
        options(checked(its, given, where)),
        lengths(static_cast<size_t>(options.sequences)),
        largest(lengths.size()),
        step(makeStep(config, options, where)) {
    const auto attached = [&](const std::vector<InputSpec>& inputs, auto* function, std::optional<Precision> precision) {
      return step.attach(
          {.inputs = inputs,
           .forward = [of = options, function](const GeneratorSession& session, const Inputs& in) { return function(session, in, of); },
           .updates_buffers = true,
           .precision = precision},
          where);
    };
    if (options.chunk > 1) chunk = attached(inputsOf(options, options.chunk), advance, options.precision);
    if (options.tokens_per_submission > 1) several = attached(inputsOfSeveral(options), advanceSeveral, precisionOfTokens(options));
  }

  void checkIds(size_t sequence, const TokenList& tokens, const Where& where) const {
    const auto wrong = std::ranges::find_if(tokens, [&](int32_t id) { return id < 0 || id >= config.vocabulary; });
    if (wrong == tokens.end()) return;
    refuse("tokens", fmt::format("the id {} of sequence {}, but the model has {} ids", *wrong, sequence, config.vocabulary),
           "the tokenizer is of another model", where);
  }

  /// `begins`: as if all sequences began anew.
  void check(const std::vector<TokenList>& tokens, bool begins, const Where& where) const {
    if (tokens.size() > lengths.size())
      refuse("options", fmt::format("tokens for {} sequences, but there are {}", tokens.size(), lengths.size()),
             "make a generator with more", where);
    for (size_t i = 0; i < tokens.size(); ++i) {
      checkIds(i, tokens[i], where);
      const int64_t all = (begins ? 0 : lengths[i]) + std::ssize(tokens[i]);
      if (all > options.positions)
        refuse("room", fmt::format("{} tokens in sequence {}, which has room for {}", all, i, options.positions),
               "make the generator with more positions, or give it less", where);
    }
  }

  /// One run: of each sequence the tokens from `done` on, as many as a run takes.
  void run(const std::vector<TokenList>& tokens, std::vector<size_t>& done, const FeedSettings& settings, Fed& fed, const Where& where) {
    const auto rows = lengths.size();
    size_t longest = 0;
    for (size_t i = 0; i < tokens.size(); ++i) longest = std::max(longest, tokens[i].size() - done[i]);
    const size_t width = longest > 1 && chunk ? static_cast<size_t>(options.chunk) : 1;
    TokenList ids(rows * width), at(rows), count(rows);
    for (size_t i = 0; i < rows; ++i) {
      const size_t taken = i < tokens.size() ? std::min(width, tokens[i].size() - done[i]) : 0;
      if (taken > 0)
        std::copy_n(tokens[i].begin() + static_cast<ptrdiff_t>(done[i]), taken, ids.begin() + static_cast<ptrdiff_t>(i * width));
      at[i] = static_cast<int32_t>(lengths[i]);
      count[i] = static_cast<int32_t>(taken);
    }
    Batch batch{{"ids", ids}, {"at", at}, {"count", count}};
    if (options.samples) {
      TokenList next = at;
      for (size_t i = 0; i < rows; ++i) next[i] += count[i];
      addSamplingValues(batch, settings.sampling, {next});
    }
    const RunOptions captures{.captures = settings.every};
    const ForwardResult result = width > 1 ? chunk->run(batch, captures, where) : step.run(batch, captures, where);
    for (size_t i = 0; i < rows; ++i) {
      const auto taken = static_cast<size_t>(count[i]);
      if (taken == 0) continue;
      done[i] += taken;
      lengths[i] += count[i];
      fed.next[i] = result.outputs.get("next").ints()[i];
      largest[i] = result.outputs.get("largest").floats()[i];
      if (!settings.every) continue;
      const auto vocabulary = static_cast<size_t>(config.vocabulary);
      const auto logits = result.captures.get("logits").floats().subspan(i * width * vocabulary, taken * vocabulary);
      fed.logits[i].insert(fed.logits[i].end(), logits.begin(), logits.end());
    }
  }

  StepProfile profile(bool a_chunk, const Where& where) {
    const auto rows = lengths.size(), width = static_cast<size_t>(a_chunk && chunk ? options.chunk : 1);
    check(std::vector<TokenList>(rows, TokenList(width, 0)), false, where);
    TokenList ids(rows * width), at(lengths.begin(), lengths.end()), count(rows, static_cast<int32_t>(width));
    Batch batch{{"ids", ids}, {"at", at}, {"count", count}};
    if (options.samples) addSamplingValues(batch, {}, {at});
    StepProfile measured = width > 1 ? chunk->profile(batch, where) : step.profile(batch, where);
    for (int64_t& length : lengths) length += static_cast<int64_t>(width);
    return measured;
  }

  /// `largest` is that after the last token of a sequence.
  void checkLogits(size_t sequence, const Where& where) const {
    if (std::isfinite(largest[sequence])) return;
    throw Error(
        {.code = "language_model.logits",
         .message = fmt::format("the largest logit after token {} of sequence {} is {}", lengths[sequence], sequence, largest[sequence]),
         .where = detail::toLocation(where),
         .notes = {},
         .remedy = "look for NaN and infinities in the weights"},
        ExitCode::NumericCheck);
  }

  /// One run of as many tokens as a submission has, each the one before has led to; `now` is a token of each sequence that goes on. Calls
  /// take(sequence, token) for all of them, in their order, which says whether the sequence goes on.
  template <class Take>
  void runSeveral(const std::vector<TokenList>& now, const GenerateOptions& generate, const Take& take, const Where& where) {
    const auto rows = lengths.size(), steps = static_cast<size_t>(options.tokens_per_submission);
    TokenList ids(rows), at(rows), count(rows), stops(rows, generate.stop_at_end ? 1 : 0);
    for (size_t i = 0; i < rows; ++i) {
      const bool goes_on = i < now.size() && !now[i].empty();
      ids[i] = goes_on ? now[i].front() : 0;
      at[i] = static_cast<int32_t>(lengths[i]);
      count[i] = goes_on ? 1 : 0;
    }
    Batch batch{{"ids", ids}, {"at", at}, {"count", count}, {"stops", stops}};
    if (options.samples) {
      std::vector<TokenList> places(steps, at);
      for (size_t t = 0; t < steps; ++t) {
        for (int32_t& place : places[t]) place += static_cast<int32_t>(t) + 1;
      }
      addSamplingValues(batch, generate.sampling, places);
    }
    const ForwardResult result = several->run(batch, {}, where);
    const std::span<const int32_t> next = result.outputs.get("next").ints();
    const std::span<const float> its_largest = result.outputs.get("largest").floats();
    for (size_t t = 0; t < steps; ++t) {
      for (size_t i = 0; i < rows; ++i) {
        if (count[i] == 0) continue;
        ++lengths[i];
        largest[i] = its_largest[t * rows + i];
        checkLogits(i, where);
        count[i] = take(i, next[t * rows + i]) ? 1 : 0;
      }
    }
  }

  void checkSampling(const SamplingOptions& sampling, const Where& where) const {
    if (const Status status = sampling.check(); !status.ok()) throw Error(status.diagnostics());
    if (sampling.needsSampling() && !options.samples)
      refuse("sampling", "this generator has no programs that sample", "make it with GeneratorOptions::samples", where);
  }

  Fed feed(const std::vector<TokenList>& tokens, const FeedSettings& settings, const Where& where) {
    check(tokens, false, where);
    checkSampling(settings.sampling, where);
    Fed fed{.next = TokenList(lengths.size()), .logits = {}};
    if (settings.every) fed.logits.resize(lengths.size());
    std::vector<size_t> done(lengths.size());
    const auto is_left = [&] {
      for (size_t i = 0; i < tokens.size(); ++i) {
        if (done[i] < tokens[i].size()) return true;
      }
      return false;
    };
    while (is_left()) run(tokens, done, settings, fed, where);
    for (size_t i = 0; i < tokens.size(); ++i) {
      if (!tokens[i].empty()) checkLogits(i, where);
    }
    return fed;
  }

  std::vector<TokenList> extend(const std::vector<TokenList>& tokens, const GenerateOptions& generate, bool begins, const Where& where) {
    check(tokens, begins, where);
    checkRoom(tokens, generate, begins, where);
    checkSampling(generate.sampling, where);
    if (begins) restart();
    std::vector<TokenList> made(tokens.size());
    std::vector<TokenList> now = tokens;
    const auto take = [&](size_t i, int32_t next) {
      made[i].push_back(next);
      const bool ends = generate.stop_at_end && std::ranges::find(config.end_tokens, next) != config.end_tokens.end();
      now[i] = ends ? TokenList{} : TokenList{next};
      return !ends;
    };
    const auto goes_on = [](const TokenList& list) { return !list.empty(); };
    const auto is_prompt = [](const TokenList& list) { return list.size() > 1; };
    for (int64_t left = generate.tokens; left > 0 && std::ranges::any_of(now, goes_on);) {
      if (several && left >= options.tokens_per_submission && std::ranges::none_of(now, is_prompt)) {
        runSeveral(now, generate, take, where);
        left -= options.tokens_per_submission;
        continue;
      }
      const Fed fed = feed(now, {.sampling = generate.sampling}, where);
      for (size_t i = 0; i < now.size(); ++i) {
        if (!now[i].empty()) take(i, fed.next[i]);
      }
      --left;
    }
    return made;
  }

  void restart() { std::ranges::fill(lengths, 0); }

  void checkRoom(const std::vector<TokenList>& tokens, const GenerateOptions& generate, bool begins, const Where& where) const {
    if (generate.tokens < 0) refuse("options", fmt::format("{} tokens are asked for", generate.tokens), "ask for 0 or more", where);
    for (size_t i = 0; i < tokens.size(); ++i) {
      const int64_t before = (begins ? 0 : lengths[i]) + std::ssize(tokens[i]);
      if (tokens[i].empty() || generate.tokens <= options.positions + 1 - before) continue;
      refuse("room",
             fmt::format("sequence {} has {} tokens, {} more are asked for, and there is room for {}", i, before, generate.tokens,
                         options.positions),
             "make the generator with more positions, or ask for fewer tokens", where);
    }
  }

  [[nodiscard]] const std::vector<std::unique_ptr<Buffer>>& kept() const { return step.model().kept; }
  size_t rowOf(const Buffer& buffer) const { return static_cast<size_t>(buffer.type().shape.elementCount()) / lengths.size(); }

  void checkSequence(size_t sequence, const Where& where) const {
    if (sequence >= lengths.size())
      refuse("options", fmt::format("sequence {} of {}", sequence, lengths.size()), "they are numbered from 0", where);
  }

  [[nodiscard]] bool canTakeBack() const {
    return std::ranges::all_of(config.layers, [](const LayerConfig& layer) { return layer.kind == LayerKind::Attention; });
  }

  void takeBack(size_t sequence, const TokenList& fed, const Where& where) {
    checkSequence(sequence, where);
    checkIds(sequence, fed, where);
    if (fed.empty()) return;
    if (std::ssize(fed) > lengths[sequence])
      refuse("options", fmt::format("{} tokens of sequence {}, which has {}", fed.size(), sequence, lengths[sequence]),
             "take back those alone that it was fed", where);
    if (!canTakeBack())
      refuse("options", fmt::format("tokens of a {} model, whose state has all of them in it", config.family),
             "keep the state from before them with save(), or feed the sequence anew", where);
    if (options.samples) states.uncount(step, sequence, fed, where);
    lengths[sequence] -= std::ssize(fed);
  }

  LanguageConfig config;
  GeneratorOptions options;
  std::vector<int64_t> lengths;  ///< of the sequences
  std::vector<float> largest;    ///< of the logits after the last token of each
  ModelInference<GeneratorSession> step;
  std::optional<Forward> chunk, several;
  SequenceStates states;
};

Generator::Generator(const LanguageConfig& config, ParameterValues values, const GeneratorOptions& options, Where where)
    : Generator(config, storeWeights(withOptions(config, options), std::move(values)).orThrow(), options, where) {}
Generator::Generator(const LanguageConfig& config, io::TensorFile stored, const GeneratorOptions& options, Where where) {
  const LanguageConfig its = withOptions(config, options);
  // What is missing would be zero.
  (void)checkStoredWeights(its, stored, "the weights").orThrow();
  impl_ = std::make_unique<Impl>(its, options, where);
  writeWeights(impl_->step, std::move(stored), where);
}
Generator::Generator(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Generator::Generator(Generator&&) noexcept = default;
Generator& Generator::operator=(Generator&&) noexcept = default;
Generator::~Generator() = default;

Generator Generator::load(const std::filesystem::path& folder, const GeneratorOptions& options, const ReadProgress& progress, Where where) {
  return load(LanguageConfig::load(folder).orThrow(), folder, options, progress, where);
}
Generator Generator::load(const LanguageConfig& config, const std::filesystem::path& folder, const GeneratorOptions& options,
                          const ReadProgress& progress, Where where) {
  const LanguageConfig its = withOptions(config, options);
  (void)checkStoredFolder(its, folder).orThrow();
  auto impl = std::make_unique<Impl>(its, options, where);
  const auto take = [&](const std::string& name, io::Array array) -> Status {
    io::TensorFile one;
    one.tensors.emplace(name, std::move(array));
    writeWeights(impl->step, std::move(one), where);
    return Success{};
  };
  (void)eachStoredWeight(its, folder, take, progress).orThrow();
  return Generator(std::move(impl));
}

const LanguageConfig& Generator::config() const { return impl_->config; }
const GeneratorOptions& Generator::options() const { return impl_->options; }
std::string Generator::device() const { return impl_->step.facts().device; }
uint64_t Generator::compilations() const {
  uint64_t all = impl_->step.run_facts().compilations;
  for (const auto* more : {&impl_->chunk, &impl_->several}) {
    if (*more) all += (*more)->run_facts().compilations;
  }
  return all;
}
ProgramFacts Generator::facts() const { return impl_->step.facts(); }
int64_t Generator::length(size_t sequence) const {
  impl_->checkSequence(sequence, Where::current());
  return impl_->lengths[sequence];
}

GeneratorMemory Generator::memory() const {
  GeneratorMemory memory{.activations = impl_->step.facts().workspace_bytes};
  const LanguageModel& model = impl_->step.model().model;
  for (const NamedParameter& named : model.parameters()) memory.weights += named.parameter->type().byteSize();
  for (const NamedBuffer& named : model.buffers()) memory.weights += named.buffer->type().byteSize();
  for (const auto& buffer : impl_->kept()) memory.states += buffer->type().byteSize();
  return memory;
}
StepProfile Generator::profile(Where where) { return impl_->profile(false, where); }
StepProfile Generator::profile_chunk(Where where) { return impl_->profile(true, where); }
void Generator::pretend(int64_t length, Where where) {
  if (length < 0 || length > impl_->options.positions)
    refuse("room", fmt::format("{} tokens, and there is room for {}", length, impl_->options.positions),
           "make the generator with more positions", where);
  std::ranges::fill(impl_->lengths, length);
}
void Generator::restart() { impl_->restart(); }

Fed Generator::feed(const std::vector<TokenList>& tokens, bool every, Where where) { return impl_->feed(tokens, {.every = every}, where); }

Fed Generator::feed(const std::vector<TokenList>& tokens, const SamplingOptions& sampling, Where where) {
  return impl_->feed(tokens, {.sampling = sampling}, where);
}

std::vector<TokenList> Generator::generate(const std::vector<TokenList>& prompts, const GenerateOptions& options, Where where) {
  for (size_t i = 0; i < prompts.size(); ++i) {
    if (prompts[i].empty())
      refuse("tokens", fmt::format("prompt {} is empty", i), "begin with a token, such as the one that begins a text", where);
  }
  return impl_->extend(prompts, options, true, where);
}

std::vector<TokenList> Generator::extend(const std::vector<TokenList>& tokens, const GenerateOptions& options, Where where) {
  return impl_->extend(tokens, options, false, where);
}

void Generator::takeBack(size_t sequence, const TokenList& fed, Where where) { impl_->takeBack(sequence, fed, where); }
bool Generator::canTakeBack() const { return impl_->canTakeBack(); }

SequenceState Generator::save(size_t sequence, Where where) {
  impl_->checkSequence(sequence, where);
  SequenceState state{.length = impl_->lengths[sequence], .tensors = {}};
  const std::vector<std::vector<float>> all = impl_->states.read(impl_->step, where);
  for (size_t i = 0; i < all.size(); ++i) {
    const size_t row = impl_->rowOf(*impl_->kept()[i]);
    const auto begin = all[i].begin() + static_cast<ptrdiff_t>(sequence * row);
    state.tensors.emplace_back(begin, begin + static_cast<ptrdiff_t>(row));
  }
  return state;
}

void Generator::restore(size_t sequence, const SequenceState& state, Where where) {
  impl_->checkSequence(sequence, where);
  if (state.length < 0 || state.length > impl_->options.positions)
    refuse("options", fmt::format("the state of a sequence of {} tokens, and there is room for {}", state.length, impl_->options.positions),
           "make the generator with more positions", where);
  std::vector<std::vector<float>> all = impl_->states.read(impl_->step, where);
  for (size_t i = 0; i < all.size(); ++i) {
    const size_t row = impl_->rowOf(*impl_->kept()[i]);
    if (state.tensors.size() != all.size() || state.tensors[i].size() != row)
      refuse("options", "the state of a sequence is one of another model, or of other options", "make both generators alike", where);
    std::ranges::copy(state.tensors[i], all[i].begin() + static_cast<ptrdiff_t>(sequence * row));
  }
  impl_->states.write(impl_->step, all, where);
  impl_->lengths[sequence] = state.length;
}

}  // namespace lockstep::llm
