// SPDX-License-Identifier: Apache-2.0
// Recorded data of public WGSL suites, replayed on a device: which verdicts and results agree. The data is not part of the project; its
// files are gzip'd lines of JSON, one test each (docs/conformance.md has their formats).
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "ir/support/result.h"

namespace lockstep::conformance {

enum class Verdict : uint8_t {
  Agree,
  Disagree,
  Unsupported,  ///< the test asks for what a compute compiler or this device does not have
};

/// What one line of a file showed.
struct Outcome {
  std::string family;  ///< tests are counted by it: "expression,call,builtin,abs"
  Verdict verdict = Verdict::Agree;
  std::string test;  ///< its name in the suite that it comes from
  std::string why;   ///< unless Agree: expected and found
};

struct Counts {
  uint64_t agree = 0, disagree = 0, unsupported = 0;
  void add(Verdict verdict);
};

struct Difference {
  std::string test, why;
};

struct FileReport {
  std::string file;  ///< "cts_uniformity_compute"
  Counts counts = {};
  std::map<std::string, Counts> families = {};
  std::vector<Difference> first = {};  ///< disagreements, in the order of the file; at most Settings::differences
};

struct Settings {
  std::filesystem::path folder;
  std::string device = "reference";
  std::vector<std::string> files;  ///< only these; empty: all that the folder has
  std::string only;                ///< only tests whose name has this in it
  size_t differences = 20;         ///< kept of each file
  unsigned threads = 0;            ///< 0: one a core
  /// Only every `parts`-th line, from line `part` (counted from 0), so that several processes may share a file: within one, a driver may
  /// make one pipeline after another.
  uint64_t part = 0, parts = 1;
};

/// Replays the files in a fixed order; `report` is called after each. Results do not depend on the number of threads. Lines are streamed,
/// so memory does not grow with a file. Codes conformance.folder, conformance.file, conformance.line and those of devices.
Status run(const Settings& settings, const std::function<void(const FileReport&)>& report);

/// The files that can be replayed, in their order.
std::vector<std::string> knownFiles();

}  // namespace lockstep::conformance
