// SPDX-License-Identifier: Apache-2.0
// What is fuzzed: each reader of text or bytes from outside, with what must hold for whatever it accepts. A broken promise throws
// (libFuzzer counts that as a crash, the replay test as a failure).
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string_view>

namespace lockstep::fuzz {

/// Graph, kernel and program texts: what parses prints to a text that parses to the same print, and the validator answers.
void readGraph(std::span<const std::byte> input);
void readKernel(std::span<const std::byte> input);
void readProgram(std::span<const std::byte> input);
/// WGSL: what is accepted is valid, and what the writer makes of it reads as the same module.
void readWgsl(std::span<const std::byte> input);
/// WGSL, checked only, with its analyses: an answer with places inside of the text, and warnings that can be shown.
void readCheck(std::span<const std::byte> input);
/// WGSL -> SPIR-V of the entry points: what is accepted passes spirv-val. Nothing where the Vulkan backend was not built in.
void readSpirv(std::span<const std::byte> input);
/// The layout of WGSL: the same tokens, and nothing changes the second time.
void readFormat(std::span<const std::byte> input);
/// safetensors: every array of an accepted file can be read.
void readSafetensors(std::span<const std::byte> input);

struct Entry {
  std::string_view name;
  void (*run)(std::span<const std::byte> input);
  std::string_view ending;  ///< of the files that serve as seeds
  std::string_view seeds;   ///< the folder of the repository that has them
};
inline constexpr std::array<Entry, 8> kEntries{Entry{"graph", readGraph, ".graph", "tests/ir/data"},
                                               Entry{"kernel", readKernel, ".kir", "tests/wgsl/data"},
                                               Entry{"program", readProgram, ".program", "tests/ir/data"},
                                               Entry{"wgsl", readWgsl, ".wgsl", "tests/wgsl/data"},
                                               Entry{"check", readCheck, ".wgsl", "tests/wgsl/data"},
                                               Entry{"spirv", readSpirv, ".wgsl", "tests/wgsl/data"},
                                               Entry{"format", readFormat, ".wgsl", "tests/wgsl/data"},
                                               Entry{"safetensors", readSafetensors, ".safetensors", "tests/fuzz/corpus/safetensors"}};

}  // namespace lockstep::fuzz
