// SPDX-License-Identifier: Apache-2.0
#include "conformance/conformance.h"

#include <fmt/format.h>

#include <charconv>
#include <utility>

#include "frontend/io/jsonl.h"
#include "tools/verb.h"

namespace lockstep::tools {
namespace {

using conformance::Counts;
using conformance::FileReport;

io::Json toJson(const Counts& counts) { return io::Json::array().add(counts.agree).add(counts.disagree).add(counts.unsupported); }

io::Json toJson(const FileReport& report) {
  io::Json families = io::Json::object();
  for (const auto& [name, counts] : report.families) families.add(name, toJson(counts));
  io::Json first = io::Json::array();
  for (const conformance::Difference& difference : report.first) {
    first.add(io::Json::object().add("q", difference.test).add("why", difference.why));
  }
  return io::Json::object()
      .add("file", report.file)
      .add("agree", report.counts.agree)
      .add("disagree", report.counts.disagree)
      .add("unsupported", report.counts.unsupported)
      .add("families", families)
      .add("first", first);
}

void printReport(const FileReport& report) {
  fmt::print("{}: {} agree, {} disagree, {} unsupported\n", report.file, report.counts.agree, report.counts.disagree,
             report.counts.unsupported);
  for (const auto& [name, counts] : report.families) {
    if (counts.disagree + counts.unsupported == 0) continue;
    fmt::print("  {}: {} agree, {} disagree, {} unsupported\n", withoutControls(name), counts.agree, counts.disagree, counts.unsupported);
  }
  for (const conformance::Difference& difference : report.first) {
    fmt::print("  - {}\n    {}\n", withoutControls(difference.test), withoutControls(difference.why));
  }
  std::fflush(stdout);
}

/// "2/4"
Result<std::pair<uint64_t, uint64_t>> parsePart(const std::string& text) {
  uint64_t number = 0, parts = 0;
  const char* end = text.data() + text.size();
  const auto first = std::from_chars(text.data(), end, number);
  if (first.ec == std::errc() && first.ptr != end && *first.ptr == '/') {
    const auto second = std::from_chars(first.ptr + 1, end, parts);
    if (second.ec == std::errc() && second.ptr == end && number >= 1 && number <= parts) return std::pair(number, parts);
  }
  return usage("value", fmt::format("--part '{}' is not K/N with K from 1 to N", text));
}

}  // namespace

Result<ExitCode> conformanceVerb(Arguments arguments) {
  std::string folder, device = "reference", only, part = "1/1";
  std::vector<std::string> files;
  int64_t differences = 10, threads = 0;
  bool json = false;
  Options options("lockstep conformance", "Replays recorded data of public WGSL suites and counts what agrees.");
  options.argument(folder, "DIR", "the folder with the recorded files (*.jsonl.gz)");
  options.value(device, "--device", fmt::format("where programs run: {}", console::kDevices));
  options.choices("--device", {"reference", "vulkan"});
  options.list(files, "--file", "only this file, without its ending; may be given several times");
  options.choices("--file", conformance::knownFiles());
  options.value(only, "--only", "only tests whose name contains this");
  options.value(differences, "--first", "how many disagreements of a file are shown");
  options.value(threads, "--threads", "threads that judge; 0: one per core");
  options.value(part, "--part", "K/N: every N-th test of a file from the K-th, for N processes in parallel");
  options.flag(json, "--json", "print one JSON object");
  LS_TRY(const bool go, options.parse(arguments));
  if (!go) return ExitCode::Ok;
  if (differences < 0 || threads < 0) return usage("value", "--first and --threads are at least 0");

  LS_TRY(const auto chosen, parsePart(part));

  io::Json reports = io::Json::array();
  bool agrees = true;
  LS_CHECK(conformance::run({.folder = folder,
                             .device = device,
                             .files = files,
                             .only = only,
                             .differences = static_cast<size_t>(differences),
                             .threads = static_cast<unsigned>(threads),
                             .part = chosen.first - 1,
                             .parts = chosen.second},
                            [&](const FileReport& report) {
                              agrees = agrees && report.counts.disagree == 0;
                              if (json) {
                                reports.add(toJson(report));
                              } else {
                                printReport(report);
                              }
                            }));
  if (json) fmt::print("{}\n", io::Json::object().add("device", device).add("files", reports).text());
  return agrees ? ExitCode::Ok : ExitCode::NumericCheck;
}

}  // namespace lockstep::tools
