// SPDX-License-Identifier: Apache-2.0
// Text generation with a language model: several sequences side by side, each at a place of its own.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "frontend/io/safetensors.h"
#include "frontend/llm/checkpoint.h"
#include "frontend/llm/language_config.h"
#include "frontend/llm/sampling.h"
#include "frontend/optim/precision.h"
#include "frontend/trace/host_values.h"
#include "frontend/trace/tensor.h"
#include "frontend/train/program_facts.h"
#include "frontend/train/step_profile.h"
#include "ir/support/where.h"

namespace lockstep::llm {

using TokenList = std::vector<int32_t>;

/// A run has the kernels of each token, and drivers take only so many at once.
constexpr int64_t kMostTokensPerSubmission = 1024;

struct GeneratorOptions {
  std::string device = "auto";
  int64_t sequences = 1;   ///< that go on side by side
  int64_t positions = 0;   ///< room of each in tokens; 0: those that the model was made for, at most 4096
  int64_t chunk = 64;      ///< tokens of a prompt that one run takes
  int64_t vocabulary = 0;  ///< only ids below it are chosen: those that the tokenizer has; 0: all of the model's
  /// Of generate() and extend(): tokens that one run makes, where so many are to come; each is fed on the device. Results are the same.
  /// At most kMostTokensPerSubmission.
  int64_t tokens_per_submission = 1;
  /// How the device keeps matrices: f32, as they are; fewer bits take less memory, and a step reads less (docs/quantisation.md). None: as
  /// LanguageConfig::weights says.
  std::optional<nn::WeightFormat> weights = {};
  /// Of products over several rows, which are those of a chunk of tokens or of several sequences, with sums in f32: mixed(bf16) is several
  /// times as fast on a GPU with matrix units, and rounds as much as other programs that run a model in bf16. What one sequence is fed
  /// token by token stays f32.
  Precision precision = {};
  DType cache = DType::F32;  ///< of keys and values: F32, F16 or BF16
  bool samples = false;      ///< the programs take SamplingOptions; else they give the likeliest token alone, and are smaller
  std::string dump_ir = {};  ///< folder for the program of one token after each pass and its kernels; empty: none
};

struct GenerateOptions {
  int64_t tokens = 32;      ///< at most so many new ones
  bool stop_at_end = true;  ///< after a token of LanguageConfig::end_tokens
  SamplingOptions sampling = {};
};

struct Fed {
  TokenList next;                          ///< of each sequence the token to follow
  std::vector<std::vector<float>> logits;  ///< of each sequence [tokens, vocabulary], where they were asked for
};

/// Throws "language_model.options" where keys and values of the model cannot be kept as this type.
void checkCache(const LanguageConfig& config, DType cache, Where where = Where::current());

/// Bytes on the device.
struct GeneratorMemory {
  uint64_t weights = 0;
  uint64_t states = 0;       ///< keys and values of attention, what mixers go on from, and which ids were fed where that is asked for
  uint64_t activations = 0;  ///< temporaries of the program of one token
};

/// What one sequence has been fed, as its model keeps it. It goes into any generator of the same model, positions and chunk; into another
/// type of cache it is rounded.
struct SequenceState {
  int64_t length = 0;  ///< tokens
  std::vector<std::vector<float>> tensors;
};

/// Two programs serve all prompts, lengths and settings of sampling: one takes a chunk of tokens, one takes a token; and a third one makes
/// several tokens where GeneratorOptions::tokens_per_submission asks for it. For each token of a sequence 8 bytes come back from the
/// device: the token, and the largest logit, which shows whether all were numbers. Errors are thrown:
/// "language_model.options" for options that are wrong, "language_model.sampling" for settings of sampling that are, or where `samples` is
/// off, "language_model.logits" (ExitCode::NumericCheck) for logits that are no finite numbers, "language_model.tokens" for an id that the
/// model does not have or an empty prompt, "language_model.room" for more tokens than there is room for, those of ls::forward(), and those
/// of the device.
class Generator {
 public:
  /// `values` are those of a LanguageModel, as loadWeights() or a trainer's download() gives them.
  Generator(const LanguageConfig& config, ParameterValues values, const GeneratorOptions& options = {}, Where where = Where::current());
  /// The same of weights as storeWeights() and loadStoredWeights() give them for this config.
  Generator(const LanguageConfig& config, io::TensorFile stored, const GeneratorOptions& options = {}, Where where = Where::current());
  /// Of a folder with config.json and weights. Its programs are compiled first, so a model for which the device has no memory is refused
  /// before its weights are read; they go to the device one tensor after the other. Errors of LanguageConfig::load() and
  /// loadStoredWeights(), and "language_model.weights" for other weights than those of a folder that `lockstep quantize` made.
  static Generator load(const std::filesystem::path& folder, const GeneratorOptions& options = {}, const ReadProgress& progress = {},
                        Where where = Where::current());
  /// The same with a config of the folder that was read before.
  static Generator load(const LanguageConfig& config, const std::filesystem::path& folder, const GeneratorOptions& options = {},
                        const ReadProgress& progress = {}, Where where = Where::current());
  Generator(Generator&&) noexcept;
  Generator& operator=(Generator&&) noexcept;
  ~Generator();

  /// Starts all sequences anew and gives the tokens that follow each prompt, one prompt per sequence at most.
  std::vector<TokenList> generate(const std::vector<TokenList>& prompts, const GenerateOptions& options = {},
                                  Where where = Where::current());
  /// The same from where the sequences are: feeds these tokens, at least one to each sequence that is to go on, and gives those that
  /// follow. The last one is not fed, so give it to the next call.
  std::vector<TokenList> extend(const std::vector<TokenList>& tokens, const GenerateOptions& options = {}, Where where = Where::current());

  /// The next call of feed() begins new texts.
  void restart();
  /// More tokens for each sequence; a sequence that gets none stays as it is, and its `next` is meaningless. `next` is the likeliest token,
  /// of equal ones the lowest. With `every`, the logits of all these tokens.
  Fed feed(const std::vector<TokenList>& tokens, bool every = false, Where where = Where::current());
  /// The same, with `next` chosen by these settings. They are values: no program is compiled for them.
  Fed feed(const std::vector<TokenList>& tokens, const SamplingOptions& sampling, Where where = Where::current());
  [[nodiscard]] GeneratorMemory memory() const;
  /// For measurements: as if each sequence had been fed so many tokens, whatever they were.
  void pretend(int64_t length, Where where = Where::current());
  /// feed() of one token to each sequence, with timestamps; its result is dropped. Error "vulkan.timestamps" on a device without clocks.
  StepProfile profile(Where where = Where::current());
  /// The same of a chunk of tokens.
  StepProfile profile_chunk(Where where = Where::current());
  /// Tokens that a sequence has been fed.
  [[nodiscard]] int64_t length(size_t sequence) const;
  /// Takes the last tokens of a sequence back, `fed` in their order, as if it had never been fed them. Nothing is computed anew. Errors
  /// "language_model.options" where there are fewer, and unless canTakeBack().
  void takeBack(size_t sequence, const TokenList& fed, Where where = Where::current());
  /// Whether all layers attend: keys and values of tokens that are gone are not seen. What mixers go on from has all tokens in it.
  [[nodiscard]] bool canTakeBack() const;
  /// A sequence, to go on later or several times.
  [[nodiscard]] SequenceState save(size_t sequence, Where where = Where::current());
  void restore(size_t sequence, const SequenceState& state, Where where = Where::current());

  [[nodiscard]] const LanguageConfig& config() const;
  [[nodiscard]] const GeneratorOptions& options() const;  ///< with `positions` and `weights` as they came out
  [[nodiscard]] std::string device() const;               ///< the chosen one: "vulkan:0"
  [[nodiscard]] uint64_t compilations() const;            ///< of its programs so far
  [[nodiscard]] ProgramFacts facts() const;               ///< of the program for one token

 private:
  struct Impl;
  explicit Generator(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace lockstep::llm
