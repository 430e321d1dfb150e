// SPDX-License-Identifier: Apache-2.0
// Time per token of decoding with a cache while the text is short, in programs with room for 64, 512 and 4096 positions.
// usage: bench_decode [DEVICE...]   prints one line per device and number of positions
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <vector>

#include "frontend/lockstep.h"

namespace {

using Clock = std::chrono::steady_clock;

constexpr int64_t kTokens = 60, kWords = 512, kWidth = 256, kHeads = 4, kLayers = 4;

struct Decoder : ls::Module {
  ls::nn::Embedding tokens{*this, "tokens", kWords, kWidth};
  std::vector<std::unique_ptr<ls::nn::TransformerBlock>> blocks;
  ls::nn::Linear head{*this, "head", kWidth, kWords};

  Decoder() {
    for (int64_t i = 0; i < kLayers; ++i) {
      blocks.push_back(std::make_unique<ls::nn::TransformerBlock>(
          *this, "b" + std::to_string(i), kWidth, kHeads,
          ls::nn::TransformerBlockOptions{.attention = {.causal = true, .rope = ls::RopeOptions{}}}));
    }
  }

  /// kTokens tokens after the given one [1, 1], with caches of so many positions.
  [[nodiscard]] ls::Tensor generate(const ls::Tensor& first, int64_t positions) const {
    std::vector<ls::Tensor> carry{first};
    for (const auto& block : blocks) {
      const ls::nn::KvCache cache = block->attn.cache({1}, positions);
      carry.insert(carry.end(), {cache.keys, cache.values});
    }
    const auto step = [&](const std::vector<ls::Tensor>& now, const std::vector<ls::Tensor>& at) -> ls::LoopStep {
      ls::Tensor x = tokens(now[0]);
      ls::LoopStep made{{}, {now[0]}};
      for (size_t i = 0; i < blocks.size(); ++i) {
        ls::nn::KvCache cache{now[1 + 2 * i], now[2 + 2 * i]};
        x = (*blocks[i])(x, cache, at[0]);
        made.carry.insert(made.carry.end(), {cache.keys, cache.values});
      }
      made.carry.insert(made.carry.begin(), ls::argmax(head(x), -1));
      return made;
    };
    return ls::scan(step, carry, {ls::arange(kTokens)}).results[0];
  }
};

double secondsPerToken(const std::string& device, int64_t positions) {
  auto generate = ls::forward<Decoder>(
      {.inputs = {{"first", ls::i32(1, 1)}},
       .forward = [=](const Decoder& decoder, const ls::Inputs& in) { return ls::Outputs(decoder.generate(in["first"], positions)); },
       .device = device,
       .seed = 1});
  const std::vector<int32_t> first{7};
  std::vector<double> seconds;
  const auto begin = Clock::now();
  while (seconds.size() < 5 || Clock::now() - begin < std::chrono::seconds(1)) {
    const auto start = Clock::now();
    (void)generate.run({{"first", first}});
    seconds.push_back(std::chrono::duration<double>(Clock::now() - start).count() / kTokens);
  }
  std::ranges::nth_element(seconds, seconds.begin() + static_cast<ptrdiff_t>(seconds.size() / 2));
  return seconds[seconds.size() / 2];
}

}  // namespace

int main(int count, char** arguments) {
  std::vector<std::string> devices(arguments + 1, arguments + count);
  if (devices.empty()) devices = {"reference", "vulkan"};
  try {
    for (const std::string& device : devices) {
      const double least = secondsPerToken(device, 64);
      for (const int64_t positions : {64, 512, 4096}) {
        const double seconds = positions == 64 ? least : secondsPerToken(device, positions);
        fmt::print("{:12} {:>5} positions  {:>10.1f} us per token  {:.2f} of 64\n", device, positions, seconds * 1e6, seconds / least);
        std::fflush(stdout);
      }
    }
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
}
