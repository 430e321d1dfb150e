// SPDX-License-Identifier: Apache-2.0
// What is fuzzed: each reader of text or bytes from outside, with what must hold for whatever it accepts. A broken promise throws
// (libFuzzer counts that as a crash, the replay test as a failure). Each function tells whether it accepted the input.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string_view>

namespace lockstep::fuzz {

/// Graph, kernel and program texts: what parses prints to a text that parses to the same print, and the validator answers.
bool readGraph(std::span<const std::byte> input);
bool readKernel(std::span<const std::byte> input);
bool readProgram(std::span<const std::byte> input);
/// WGSL: what is accepted is valid, and what the writer makes of it reads as the same module.
bool readWgsl(std::span<const std::byte> input);
/// WGSL, checked only, with its analyses: an answer with places inside of the text, and warnings that can be shown.
bool readCheck(std::span<const std::byte> input);
/// WGSL -> SPIR-V of the entry points: what is accepted passes spirv-val. Nothing where the Vulkan backend was not built in.
bool readSpirv(std::span<const std::byte> input);
/// The layout of WGSL: the same tokens, and nothing changes the second time.
bool readFormat(std::span<const std::byte> input);
/// Arrays: every element of an accepted file can be read, and what the writer makes of it reads as the same arrays.
bool readSafetensors(std::span<const std::byte> input);
bool readNpy(std::span<const std::byte> input);
bool readNpz(std::span<const std::byte> input);
/// Weights of sequence models: what the writer makes of them reads as a file that is written the same.
bool readMbjs(std::span<const std::byte> input);
/// Pictures of IDX files, packed or not: as many bytes as the shape says.
bool readIdx(std::span<const std::byte> input);

/// safetensors of golden data, with the rates that it states; and a rate alone.
bool readGolden(std::span<const std::byte> input);
bool readRate(std::span<const std::byte> input);
/// config.json of a language model, whose sizes are those of a model that could be made.
bool readLanguage(std::span<const std::byte> input);
/// JSON of a profile.
bool readProfile(std::span<const std::byte> input);
/// A list of recorded cases: every value of it can be written to a buffer, compared and described.
bool readCases(std::span<const std::byte> input);
/// One line of a recorded file, by its first digit: 0 verdict, 1 expression, 2 program, 3 consensus. Programs run on the reference.
bool readLine(std::span<const std::byte> input);

/// The files of a run folder: a section each (files.h).
bool readRun(std::span<const std::byte> input);
/// A checkpoint of a small model: it loads, and a step runs after it, or the trainer is as it was.
bool readCheckpoint(std::span<const std::byte> input);
/// A folder that --dump-ir wrote, as `explore` reads it: a section for each file.
bool readDump(std::span<const std::byte> input);
/// The cache of a driver's pipelines. Nothing where the Vulkan backend was not built in.
bool readCache(std::span<const std::byte> input);

/// A small graph: the evaluator runs it, every pass that takes it leaves a stage that reads again, and the program runs on the reference.
bool compileGraph(std::span<const std::byte> input);
/// A small program of any stage: the passes that it lacks run, and then the program, on the reference.
bool runProgram(std::span<const std::byte> input);
/// WGSL, each entry point with every check of the sanitizer: findings that can be shown, and the results of a plain run.
bool sanitizeKernel(std::span<const std::byte> input);

struct Entry {
  std::string_view name;
  bool (*run)(std::span<const std::byte> input);
  std::string_view seeds = {};   ///< the folder of the repository that has them; empty: writeSeeds() makes them
  std::string_view ending = {};  ///< of the seeds in that folder
  int mutations = 500;           ///< of each seed, in the replay test
};
inline constexpr std::array kEntries{
    Entry{"graph", readGraph, "tests/ir/data", ".graph"},
    Entry{"kernel", readKernel, "tests/frontend/wgsl/data", ".kir"},
    Entry{"program", readProgram, "tests/ir/data", ".program"},
    Entry{"wgsl", readWgsl, "tests/frontend/wgsl/data", ".wgsl"},
    Entry{"check", readCheck, "tests/frontend/wgsl/data", ".wgsl"},
    Entry{"spirv", readSpirv, "tests/frontend/wgsl/data", ".wgsl"},
    Entry{"format", readFormat, "tests/frontend/wgsl/data", ".wgsl"},
    Entry{"safetensors", readSafetensors, "tests/fuzz/corpus/safetensors", ".safetensors"},
    Entry{.name = "npy", .run = readNpy},
    Entry{.name = "npz", .run = readNpz},
    Entry{.name = "mbjs", .run = readMbjs},
    Entry{.name = "idx", .run = readIdx},
    Entry{.name = "golden", .run = readGolden},
    Entry{.name = "rate", .run = readRate},
    Entry{.name = "language", .run = readLanguage},
    Entry{.name = "profile", .run = readProfile},
    Entry{.name = "cases", .run = readCases},
    Entry{.name = "line", .run = readLine, .mutations = 200},
    Entry{.name = "run", .run = readRun, .mutations = 200},
    Entry{.name = "checkpoint", .run = readCheckpoint, .mutations = 200},
    Entry{.name = "dump", .run = readDump, .mutations = 50},
    Entry{.name = "cache", .run = readCache, .mutations = 200},
    Entry{.name = "compile", .run = compileGraph, .mutations = 50},
    Entry{.name = "execute", .run = runProgram, .mutations = 50},
    Entry{.name = "sanitize", .run = sanitizeKernel, .mutations = 200},
};

}  // namespace lockstep::fuzz
