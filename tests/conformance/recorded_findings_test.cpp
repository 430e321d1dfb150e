// SPDX-License-Identifier: Apache-2.0
// The recorded programs under the sanitizer, when LOCKSTEP_CONFORMANCE names the folder of the recorded data. Counts programs by what is
// found in them and prints the table of docs/conformance.md; LOCKSTEP_FINDINGS names a file that gets every finding, one JSON object a
// line.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "conformance/gzip_lines.h"
#include "conformance/recorded_number.h"
#include "conformance/recorded_program.h"
#include "ir/kernel/isolate_entry.h"
#include "tools/kernel/kernel_run.h"

namespace lockstep::conformance {
namespace {

using tools::KernelRun;
using tools::Slot;

constexpr uint64_t kLoopBudget = uint64_t{1} << 22u;

/// Of a valid program nothing is recorded: it runs with zeros, and with this many elements of each array without a size.
constexpr uint64_t kElements = 64;

using Counts = std::map<std::string, size_t>;  // programs, by code; "warning " in front of a warning's

struct Table {
  size_t programs = 0, runs = 0, refused = 0, clean = 0;
  Counts with = {};
};

/// Where there is one of these, results may differ from those of a plain run.
bool leavesResultsOpen(const Finding& finding) {
  const std::string& code = finding.diagnostic.code;
  return code.starts_with("race.") || code == "loop.endless" || code == "order.waits" || code == "barrier.divergent";
}

class Replay {
 public:
  explicit Replay(int64_t schedules = 0) : schedules_(schedules) {
    if (const char* file = std::getenv("LOCKSTEP_FINDINGS")) out_.open(file, std::ios::app);
  }

  void add(const std::string& name, const std::string& text, const std::vector<KernelRun>& runs) {
    ++table.programs;
    std::set<std::string> codes;
    bool ran = false;
    for (const KernelRun& run : runs) {
      KernelRun watched = run;
      watched.sanitize = SanitizeOptions{.checks = {}, .loop_budget = kLoopBudget};
      watched.schedules = schedules_;
      const Result<tools::KernelResult> result = tools::runKernel(std::move(watched));
      if (!result.ok()) {
        Finding refusal;
        refusal.diagnostic = result.diagnostics().front();
        note(name, run.entry, text, refusal);
        // What the sanitizer does not run, the reference does not either.
        KernelRun trapped = run;
        trapped.out_of_bounds = kernel::OutOfBounds::Trap;
        EXPECT_FALSE(tools::runKernel(std::move(trapped)).ok()) << name << "\n" << toString(result.diagnostics()) << "\n" << text;
        continue;
      }
      const Result<tools::KernelResult> plain = tools::runKernel(run);
      ran = true;
      ++table.runs;
      for (const Finding& finding : result->findings) {
        codes.insert((finding.severity == Finding::Severity::Warning ? "warning " : "") + finding.diagnostic.code);
        note(name, run.entry, text, finding);
      }
      if (std::ranges::any_of(result->findings, leavesResultsOpen)) continue;
      if (!plain.ok()) {
        ADD_FAILURE() << name << ": a plain run fails\n" << toString(plain.diagnostics()) << "\n" << text;
      } else {
        EXPECT_TRUE(result->bytes == plain->bytes) << name << ": the sanitizer changes the result\n" << text;
      }
    }
    table.refused += ran ? 0 : 1;
    table.clean += ran && codes.empty() ? 1 : 0;
    for (const std::string& code : codes) ++table.with[code];
  }

  void refuse() {
    ++table.programs;
    ++table.refused;
  }

  void check(const std::string& file, const Counts& expected) const {
    EXPECT_EQ(table.with, expected);
    fmt::print("{}: {} programs, {} runs, {} refused, nothing is found in {}\n", file, table.programs, table.runs, table.refused,
               table.clean);
    for (const auto& [code, count] : table.with) fmt::print("  {}: {}\n", code, count);
  }

  Table table;

 private:
  void note(const std::string& name, const std::string& entry, const std::string& text, const Finding& finding) {
    if (!out_.is_open()) return;
    out_ << nlohmann::json{{"test", name},
                           {"entry", entry},
                           {"code", finding.diagnostic.code},
                           {"severity", toString(finding.severity)},
                           {"text", toString(finding)},
                           {"wgsl", text}}
                .dump()
         << "\n";
  }

  int64_t schedules_;
  std::ofstream out_;
};

/// Calls use(line) for each line of a file; the test is skipped without the data.
template <class Use>
void forLines(const std::string& file, const Use& use) {
  const char* folder = std::getenv("LOCKSTEP_CONFORMANCE");
  if (folder == nullptr) GTEST_SKIP() << "LOCKSTEP_CONFORMANCE does not name the folder of the recorded data";
  GzipLines lines = GzipLines::open(std::filesystem::path(folder) / (file + ".jsonl.gz"), kMostFileBytes).orThrow();
  while (std::optional<std::string> line = lines.next().orThrow()) use(*line);
}

/// Each run of a recorded program; a variable gets its part of a buffer for itself.
std::vector<KernelRun> runsOf(const RecordedProgram& program, const kernel::Module& module) {
  const kernel::Module alone = kernel::isolateEntry(module, program.dispatch.entry).orThrow();
  std::vector<KernelRun> runs;
  for (const RecordedRun& recorded : program.runs) {
    KernelRun run{.module = module, .entry = program.dispatch.entry, .groups = program.dispatch.groups, .device = "reference"};
    for (const BufferBinding& binding : program.dispatch.bindings) {
      if (tools::findVariable(alone, {binding.group, binding.binding}) == nullptr) continue;  // the entry point does not use it
      const Bytes& buffer = recorded.before[binding.buffer];
      const auto begin = buffer.begin() + static_cast<ptrdiff_t>(std::min<uint64_t>(binding.offset, buffer.size()));
      const auto size = std::min<uint64_t>(binding.size, static_cast<uint64_t>(buffer.end() - begin));
      run.bytes[{binding.group, binding.binding}] = Bytes(begin, begin + static_cast<ptrdiff_t>(size));
    }
    runs.push_back(std::move(run));
  }
  return runs;
}

struct Sample {
  size_t step = 1;  ///< every step-th line
  int64_t schedules = 0;
};

void replay(const std::string& file, RecordedProgram (*read)(const std::string&), const Counts& expected, const Sample& sample = {}) {
  Replay replay(sample.schedules);
  size_t number = 0;
  forLines(file, [&](const std::string& line) {
    if (number++ % sample.step != 0) return;
    const RecordedProgram program = read(line);
    const Result<kernel::Module> module = wgsl::read(program.text, program.options);
    if (!module.ok()) return replay.refuse();
    replay.add(program.name, program.text, runsOf(program, *module));
  });
  if (number > 0) replay.check(file, expected);
}

/// A run of each entry point, with zeros.
std::vector<KernelRun> runsOf(const kernel::Module& module) {
  std::vector<KernelRun> runs;
  for (const kernel::Function& function : module.functions) {
    if (!function.workgroup_size) continue;
    const Result<kernel::Module> alone = kernel::isolateEntry(module, function.name);
    if (!alone.ok()) continue;
    KernelRun run{.module = module, .entry = function.name, .device = "reference"};
    for (const kernel::GlobalVariable& variable : alone->globals) {
      if (variable.space == kernel::AddressSpace::Immediate) run.immediate = "zeros";
      if (!kernel::isBound(variable.space)) continue;
      uint64_t size = (alone->types.sizeOf(variable.type) + 3) / 4 * 4;
      const kernel::Type& type = alone->types[variable.type];
      if (alone->types.isRuntimeSized(variable.type)) {
        const kernel::TypeId array = type.kind == kernel::TypeKind::Struct ? type.members.back().type : variable.type;
        const uint64_t start = type.kind == kernel::TypeKind::Struct ? type.members.back().offset : 0;
        size = (start + kElements * alone->types.strideOf(array) + 15) / 16 * 16;
      }
      run.bytes[{variable.group, variable.binding}] = Bytes(size);
    }
    runs.push_back(std::move(run));
  }
  return runs;
}

TEST(RecordedFindings, traces) { replay("cts_programs", readTrace, {{"memory.out_of_bounds", 744}, {"warning subgroup.size", 11752}}); }

TEST(RecordedFindings, consensus) {
  replay("consensus", readConsensus,
         {{"float.not_finite", 1}, {"integer.divide_by_zero", 24}, {"loop.endless", 5}, {"memory.out_of_bounds", 32}});
}

TEST(RecordedFindings, traces_in_other_schedules) {
  replay("cts_programs", readTrace, {{"memory.out_of_bounds", 38}, {"order.schedule", 7}, {"warning subgroup.size", 590}},
         {.step = 20, .schedules = 2});
}

TEST(RecordedFindings, consensus_in_other_schedules) {
  replay("consensus", readConsensus, {{"integer.divide_by_zero", 4}, {"loop.endless", 1}, {"memory.out_of_bounds", 3}},
         {.step = 8, .schedules = 2});
}

TEST(RecordedFindings, valid_programs) {
  Replay replay;
  forLines("valid_programs", [&](const std::string& line) {
    const nlohmann::json test = nlohmann::json::parse(line);
    const std::string text = test.at("wgsl");
    const Result<kernel::Module> module = wgsl::read(text);
    if (!module.ok()) return replay.refuse();
    replay.add(test.at("f"), text, runsOf(*module));
  });
  const Counts expected{{"float.not_finite", 5},
                        {"integer.divide_by_zero", 24},
                        {"loop.endless", 4},
                        {"memory.out_of_bounds", 22},
                        {"warning race.storage", 6}};
  if (replay.table.programs > 0) replay.check("valid_programs", expected);
}

}  // namespace
}  // namespace lockstep::conformance
