// SPDX-License-Identifier: Apache-2.0
// Time per token of language models in the shapes of published ones, with random weights and 512 tokens before (--context): one sequence,
// 32 of them, and a prompt of 2048 tokens. Products over several rows are in bf16 where the weights are not f32. Beside it the least time
// that reading takes: bytes of weights, keys and values by the measured rate of copies, and levels by the time of one.
//
// usage: bench_language [--short] [--profile] [--weights FORMAT] [--model NAME] [--layers COUNT] [--context COUNT]
//        [--only 1|32|prompt] [DEVICE]
// prints one line each, and on request where the time of a token goes; peer_language.py is the same in PyTorch
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "backends/backend.h"
#include "frontend/llm/generator.h"
#include "frontend/llm/language_model.h"
#include "runtime/memory_array.h"
#include "tools/profile/peaks.h"
#include "tools/profile/profile_data.h"
#include "tools/profile/profile_text.h"

namespace {

using Clock = std::chrono::steady_clock;
using lockstep::io::Array;
namespace llm = lockstep::llm;

struct Shape {
  std::string name, json;
};

std::string configOf(const char* family, int layers, int width, int heads, int key_heads, int head, int inner, int words, double base,
                     bool tied) {
  return fmt::format(
      R"({{"model_type": "{}", "num_hidden_layers": {}, "hidden_size": {}, "num_attention_heads": {}, "num_key_value_heads": {},
      "head_dim": {}, "intermediate_size": {}, "vocab_size": {}, "rope_theta": {}, "tie_word_embeddings": {}, "max_position_embeddings": 8192,
      "rms_norm_eps": 1e-5}})",
      family, layers, width, heads, key_heads, head, inner, words, base, tied);
}

std::vector<Shape> shapes(bool is_short) {
  if (is_short) return {{"short", configOf("qwen2", 2, 128, 4, 2, 32, 256, 1000, 1e6, true)}};
  return {{"qwen2.5-0.5b", configOf("qwen2", 24, 896, 14, 2, 64, 4864, 151936, 1e6, true)},
          {"llama-3.2-1b", configOf("llama", 16, 2048, 32, 8, 64, 8192, 128256, 5e5, true)},
          {"llama-3.1-8b", configOf("llama", 32, 4096, 32, 8, 128, 14336, 128256, 5e5, false)}};
}

/// Numbers of the size that trained weights have. Zeros would take less energy, and so run at higher clocks.
class RandomWords {
 public:
  uint32_t next() {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<uint32_t>(state_ >> 32);
  }
  /// Words of two f16 or bf16, or of one f32, with the given exponent and any sign and mantissa. They repeat after 16 MiB: to make all of
  /// them takes longer than what is measured.
  void fill(Array& array, uint32_t exponent, uint32_t free) {
    constexpr size_t kPeriod = size_t{1} << 24;
    const size_t size = array.data.size();
    for (size_t i = 0; i + sizeof(uint32_t) <= std::min(size, kPeriod); i += sizeof(uint32_t)) {
      const uint32_t word = exponent | (next() & free);
      std::memcpy(array.data.data() + i, &word, sizeof word);
    }
    for (size_t i = kPeriod; i < size; i += kPeriod) std::memcpy(array.data.data() + i, array.data.data(), std::min(kPeriod, size - i));
  }

 private:
  uint64_t state_ = 1;
};

Array randomArray(const std::string& name, const lockstep::graph::TensorType& type, RandomWords& random) {
  using lockstep::graph::DType;
  const auto element = lockstep::detail::elementType(type.dtype);
  const std::vector<int64_t> shape = type.shape.extents();
  if (name.ends_with("_scales") || shape.size() < 2) {
    const double value = name.ends_with("_scales") ? 0.002 : name.ends_with(".b") ? 0.0 : 1.0;
    return Array::from(element, shape, std::vector<double>(static_cast<size_t>(type.shape.elementCount()), value));
  }
  Array array = Array::zeros(element, shape);
  if (type.dtype == DType::BF16) {
    random.fill(array, 0x3c003c00u, 0x807f807fu);
  } else if (type.dtype == DType::F16) {
    random.fill(array, 0x20002000u, 0x83ff83ffu);
  } else if (type.dtype == DType::F32) {
    random.fill(array, 0x3c000000u, 0x807fffffu);
  } else {
    random.fill(array, 0, ~0u);
  }
  return array;
}

lockstep::io::TensorFile randomWeights(llm::LanguageConfig config) {
  config.init_scale = 0;
  const llm::LanguageModel model(config);
  RandomWords random;
  lockstep::io::TensorFile file;
  for (const auto& named : model.parameters()) file.tensors.emplace(named.name, randomArray(named.name, named.parameter->type(), random));
  for (const auto& named : model.buffers()) file.tensors.emplace(named.name, randomArray(named.name, named.buffer->type(), random));
  return file;
}

template <class Step>
double medianSeconds(const Step& step) {
  std::vector<double> seconds;
  const auto begin = Clock::now();
  step();
  while (seconds.size() < 5 || Clock::now() - begin < std::chrono::milliseconds(700)) {
    const auto start = Clock::now();
    step();
    // The first ones find the clocks as idling left them.
    if (Clock::now() - begin > std::chrono::milliseconds(200) || seconds.size() < 5)
      seconds.push_back(std::chrono::duration<double>(Clock::now() - start).count());
  }
  std::ranges::sort(seconds);
  return seconds[seconds.size() / 2];
}

struct Run {
  std::string device;
  lockstep::nn::WeightFormat format;
  lockstep::tools::Peaks peaks;
  bool is_short = false, with_profile = false;
  int64_t context = 512;
};

/// Where the time of a step goes. `before` comes before each one, and keeps the clocks up.
template <class Before, class Step, class Timed>
void printProfile(const std::string& name, const Run& run, const Before& before, const Step& step, const Timed& timed) {
  lockstep::tools::Profile profile =
      lockstep::tools::measureProfile(lockstep::tools::ProfiledStep{.prepare = before, .submit = [] {}, .wait = step, .timed = timed}, 5);
  profile.sample = name, profile.device = run.device, profile.peaks = run.peaks;
  fmt::print("{}\n", lockstep::tools::profileText(profile, {}));
}

/// What a token reads: all weights, but only one row of a table of tokens that is not the head as well; and the keys and values so far.
uint64_t bytesRead(const llm::Generator& generator, const llm::LanguageConfig& config, const Run& run, int64_t before) {
  const llm::GeneratorMemory memory = generator.memory();
  const int64_t bits = run.format.bits() > 0 ? run.format.bits() : 8 * static_cast<int64_t>(lockstep::graph::byteSize(run.format.dtype()));
  const auto table = static_cast<uint64_t>(config.vocabulary * config.width * bits / 8);
  return memory.weights - (config.tied_head ? 0 : table) +
         memory.states / static_cast<uint64_t>(generator.options().positions) * static_cast<uint64_t>(before);
}

void reportDecoding(const Shape& shape, const llm::LanguageConfig& config, const Run& run, int64_t sequences) {
  const int64_t before = run.is_short ? 16 : run.context, tokens = run.is_short ? 8 : 64;
  llm::Generator generator(config, randomWeights(config),
                           {.device = run.device,
                            .sequences = sequences,
                            .positions = before + (run.is_short ? 16 : 512),
                            .chunk = 1,
                            .tokens_per_submission = tokens,
                            .precision = run.format.isF32() ? lockstep::Precision{} : lockstep::mixed(lockstep::DType::BF16),
                            .cache = run.format.isF32() ? lockstep::DType::F32 : lockstep::DType::BF16});
  const std::vector<llm::TokenList> first(static_cast<size_t>(sequences), llm::TokenList{7});
  const double seconds = medianSeconds([&] {
                           generator.pretend(before);
                           (void)generator.extend(first, {.tokens = tokens, .stop_at_end = false});
                         }) /
                         static_cast<double>(tokens);
  generator.pretend(before);
  const uint64_t bytes = bytesRead(generator, config, run, before);
  const lockstep::ProgramFacts facts = generator.facts();
  const double least = static_cast<double>(bytes) / run.peaks.bytes_per_second +
                       static_cast<double>(facts.levels) * (run.peaks.dispatch_seconds + run.peaks.barrier_seconds);
  fmt::print(
      "{:13} {:8} batch {:2} {:9.1f} us per token, {:7.0f} tokens per second, {:5.1f} % of the bound ({} MB, {} dispatches, {} levels)\n",
      shape.name, toString(run.format), sequences, 1e6 * seconds, static_cast<double>(sequences) / seconds, 100 * least / seconds,
      bytes / 1000000, facts.dispatches, facts.levels);
  if (run.with_profile) {
    const auto warm = [&] {
      generator.pretend(before);
      (void)generator.extend(first, {.tokens = tokens, .stop_at_end = false});
      generator.pretend(before);
    };
    printProfile(
        fmt::format("a token of {} {} by {} sequences", shape.name, toString(run.format), sequences), run, warm,
        [&] { (void)generator.feed(first); }, [&] { return generator.profile(); });
  }
  std::fflush(stdout);
}

void reportPrompt(const Shape& shape, const llm::LanguageConfig& config, const Run& run) {
  const int64_t tokens = run.is_short ? 32 : 2048;
  llm::Generator generator(config, randomWeights(config),
                           {.device = run.device,
                            .positions = tokens,
                            .chunk = tokens,
                            .precision = run.format.isF32() ? lockstep::Precision{} : lockstep::mixed(lockstep::DType::BF16),
                            .cache = run.format.isF32() ? lockstep::DType::F32 : lockstep::DType::BF16});
  const std::vector<llm::TokenList> prompt{llm::TokenList(static_cast<size_t>(tokens), 7)};
  const double seconds = medianSeconds([&] {
    generator.restart();
    (void)generator.feed(prompt);
  });
  fmt::print("{:13} {:8} prompt of {} {:9.2f} ms\n", shape.name, toString(run.format), tokens, 1e3 * seconds);
  if (run.with_profile) {
    const auto warm = [&] {
      generator.restart();
      (void)generator.feed(prompt);
      generator.restart();
    };
    printProfile(
        fmt::format("a prompt of {} tokens, {} {}", tokens, shape.name, toString(run.format)), run, warm,
        [&] { (void)generator.feed(prompt); }, [&] { return generator.restart(), generator.profile_chunk(); });
  }
  std::fflush(stdout);
}

std::string take(std::vector<std::string>& arguments, const std::string& option) {
  const auto found = std::ranges::find(arguments, option);
  if (found == arguments.end() || found + 1 == arguments.end()) return {};
  const std::string value = *(found + 1);
  arguments.erase(found, found + 2);
  return value;
}

}  // namespace

int main(int count, char** values) {
  std::vector<std::string> arguments(values + 1, values + count);
  try {
    Run run;
    run.is_short = std::erase(arguments, "--short") > 0;
    run.with_profile = std::erase(arguments, "--profile") > 0;
    const std::string format = take(arguments, "--weights"), only = take(arguments, "--model"), part = take(arguments, "--only"),
                      layers = take(arguments, "--layers"), context = take(arguments, "--context");
    if (!context.empty()) run.context = std::stoll(context);
    run.format = lockstep::nn::WeightFormat::parse(format.empty() ? "bf16" : format).orThrow();
    const lockstep::ChosenDevice device = lockstep::chooseDevice(arguments.empty() ? "auto" : arguments[0]).orThrow();
    run.device = device.info.id;
    run.peaks = lockstep::tools::measurePeaks(*lockstep::openDevice(device.info).orThrow()).orThrow();
    for (const Shape& shape : shapes(run.is_short)) {
      if (!only.empty() && shape.name != only) continue;
      llm::LanguageConfig config = llm::LanguageConfig::parse(shape.json, shape.name).orThrow();
      config.weights = run.format;
      if (!layers.empty()) config.layers.resize(std::stoul(layers));
      for (const int64_t sequences : {1, 32}) {
        if (part.empty() || part == std::to_string(sequences)) reportDecoding(shape, config, run, sequences);
      }
      if (part.empty() || part == "prompt") reportPrompt(shape, config, run);
    }
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
}
