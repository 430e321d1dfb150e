// SPDX-License-Identifier: Apache-2.0
// Times WGSL text -> validated kernel module over the *.wgsl files of a folder. usage: bench_wgsl DIR [ROUNDS] | --refused DIR | --step DIR
// |
// --spirv DIR
//   ROUNDS     rounds after one that warms up (9); prints the median of its processor times
//   --refused  prints the names of the files that are not read, which would be timed as nothing
//   --step     a round for each line of standard input; prints its milliseconds. For whoever takes turns with others
//   --spirv    the longest text to SPIR-V: median, minimum and maximum of 51 rounds
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <iostream>
#include <string>
#include <vector>

#include "backends/vulkan/spirv.h"
#include "frontend/io/file.h"
#include "frontend/wgsl/wgsl.h"

namespace {

namespace fs = std::filesystem;
using namespace lockstep;

struct Text {
  std::string name, source;
};

std::vector<Text> textsOf(const fs::path& folder) {
  std::vector<Text> texts;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() == ".wgsl") texts.push_back({entry.path().filename(), io::readTextFile(entry.path()).orThrow()});
  }
  std::ranges::sort(texts, {}, &Text::name);
  return texts;
}

bool accepted(const Text& text) {
  Result<kernel::Module> module = wgsl::read(text.source);
  return module.ok() && kernel::validate(std::move(*module)).ok();
}

/// Of the processor, so that a machine that is busy with something else changes little.
double millisecondsOf(const auto& work) {
  const std::clock_t start = std::clock();
  work();
  return static_cast<double>(std::clock() - start) * 1000 / CLOCKS_PER_SEC;
}

double round(const std::vector<Text>& texts) {
  return millisecondsOf([&] {
    for (const Text& text : texts) {
      if (!accepted(text)) throw std::runtime_error(text.name + " is refused; see --refused");
    }
  });
}

int printRounds(const std::vector<Text>& texts, int rounds) {
  std::vector<double> times;
  size_t bytes = 0;
  for (const Text& text : texts) bytes += text.source.size();
  round(texts);
  for (int i = 0; i < rounds; ++i) times.push_back(round(texts));
  std::ranges::sort(times);
  const double median = times[times.size() / 2];
  fmt::print("{} texts, {:.3f} MB: {:.1f} ms, {:.1f} MB/s\n", texts.size(), static_cast<double>(bytes) / 1e6, median,
             static_cast<double>(bytes) / 1e3 / median);
  return 0;
}

int stepByStep(const std::vector<Text>& texts) {
  for (std::string line; std::getline(std::cin, line);) {
    fmt::print("{:.4f}\n", round(texts));
    std::fflush(stdout);
  }
  return 0;
}

int printRefused(const std::vector<Text>& texts) {
  for (const Text& text : texts) {
    if (!accepted(text)) fmt::print("{}\n", text.name);
  }
  return 0;
}

int toSpirv(const std::vector<Text>& texts) {
  const Text& text = *std::ranges::max_element(texts, {}, [](const Text& each) { return each.source.size(); });
  std::vector<double> times;
  for (int i = 0; i < 51; ++i) {
    times.push_back(millisecondsOf([&] {
      const auto module = kernel::validate(wgsl::read(text.source).orThrow()).orThrow();
      (void)vulkan::emitSpirv(module, {}).orThrow();
    }));
  }
  std::ranges::sort(times);
  fmt::print("{} ({} bytes) to SPIR-V: median {:.2f} ms, {:.2f} to {:.2f}\n", text.name, text.source.size(), times[times.size() / 2],
             times.front(), times.back());
  return 0;
}

}  // namespace

int main(int count, char** arguments) {
  const std::vector<std::string> words(arguments + 1, arguments + count);
  try {
    if (words.size() == 2 && words[0] == "--refused") return printRefused(textsOf(words[1]));
    if (words.size() == 2 && words[0] == "--step") return stepByStep(textsOf(words[1]));
    if (words.size() == 2 && words[0] == "--spirv") return toSpirv(textsOf(words[1]));
    int rounds = 9;
    if (words.size() == 2) std::from_chars(words[1].data(), words[1].data() + words[1].size(), rounds);
    if ((words.size() == 1 || words.size() == 2) && rounds > 0) return printRounds(textsOf(words[0]), rounds);
  } catch (const std::exception& error) {
    fmt::print(stderr, "bench_wgsl: {}\n", error.what());
    return 1;
  }
  fmt::print(stderr, "usage: bench_wgsl DIR [ROUNDS] | --refused DIR | --step DIR | --spirv DIR\n");
  return 2;
}
