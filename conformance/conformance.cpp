// SPDX-License-Identifier: Apache-2.0
#include "conformance/conformance.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <exception>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <system_error>
#include <thread>

#include "conformance/gzip_lines.h"
#include "conformance/recorded_number.h"
#include "conformance/suite.h"

namespace lockstep::conformance {
namespace {

namespace fs = std::filesystem;

constexpr std::array kSuites = {
    Suite{.file = "cts_validation_compute_subset", .make = makeVerdictJudge},
    Suite{.file = "cts_uniformity_compute", .make = makeVerdictJudge},
    Suite{.file = "valid_programs", .make = makeVerdictJudge},
    Suite{.file = "cts_expr_const_modules", .make = makeExpressionJudge},
    Suite{.file = "cts_expr_runs", .make = makeExpressionJudge},
    Suite{.file = "cts_programs", .make = makeTraceJudge},
    Suite{.file = "consensus", .make = makeConsensusJudge},
};

fs::path pathOf(const Settings& settings, std::string_view file) { return settings.folder / fmt::format("{}.jsonl.gz", file); }

/// Lines are judged in blocks of this many, so that what is in memory stays small.
constexpr size_t kBlock = 512;

bool isNamed(const std::string& line, const std::string& part) {
  const nlohmann::json parsed = nlohmann::json::parse(line);
  return parsed.value("q", parsed.value("f", std::string())).find(part) != std::string::npos;
}

Result<Outcome> judgeLine(Judge& judge, const std::string& line, const std::string& only) {
  try {
    return only.empty() || isNamed(line, only) ? judge.judge(line) : Outcome{};
  } catch (const nlohmann::json::exception& problem) {
    return fail("conformance.line", fmt::format("a line is not a test: {}", problem.what()), {}, "copy the file again");
  }
}

void count(FileReport& report, const Outcome& outcome, size_t differences) {
  if (outcome.test.empty()) return;  // not asked for
  report.counts.add(outcome.verdict);
  report.families[outcome.family].add(outcome.verdict);
  if (outcome.verdict == Verdict::Disagree && report.first.size() < differences) {
    report.first.push_back({.test = outcome.test, .why = outcome.why});
  }
}

struct NumberedLine {
  uint64_t number = 0;  // from 1
  std::string text;
};

/// Calls work(i) for all i below `count`, each on a thread of its own where the system gives one. What a call throws comes out here, since
/// out of a thread it would end the process.
template <class Work>
void runParallel(size_t count, const Work& work) {
  std::exception_ptr thrown;
  std::mutex mutex;
  const auto guarded = [&](size_t i) {
    try {
      work(i);
    } catch (...) {
      const std::lock_guard lock(mutex);
      if (!thrown) thrown = std::current_exception();
    }
  };
  {
    std::vector<std::jthread> workers;
    workers.reserve(count);
    for (size_t i = 1; i < count; ++i) {
      try {
        workers.emplace_back(guarded, i);
      } catch (const std::system_error&) {
        break;  // a limit on processes; those that run do all of the work
      }
    }
    guarded(0);
  }
  if (thrown) std::rethrow_exception(thrown);
}

Result<FileReport> runFile(const Suite& suite, const Settings& settings) {
  FileReport report{.file = std::string(suite.file)};
  LS_TRY(GzipLines lines, GzipLines::open(pathOf(settings, suite.file), kMostFileBytes));
  const unsigned wanted = settings.threads > 0 ? settings.threads : std::max(1u, std::thread::hardware_concurrency());
  const unsigned threads = std::min(wanted, kMostThreads);
  std::vector<std::unique_ptr<Judge>> judges;
  for (unsigned i = 0; i < threads; ++i) {
    LS_TRY(std::unique_ptr<Judge> judge, suite.make(settings));
    judges.push_back(std::move(judge));
  }
  for (uint64_t line_number = 0;;) {
    std::vector<NumberedLine> block;
    uint64_t bytes = 0;
    while (block.size() < kBlock && bytes < kMostLineBytes) {
      LS_TRY(std::optional<std::string> line, lines.next());
      if (!line) break;
      if (line_number++ % settings.parts != settings.part) continue;
      bytes += line->size();
      block.push_back({.number = line_number, .text = std::move(*line)});
    }
    if (block.empty()) return report;
    std::vector<std::optional<Result<Outcome>>> outcomes(block.size());
    std::atomic<size_t> next = 0;
    runParallel(judges.size(), [&](size_t judge) {
      for (size_t i = next++; i < block.size(); i = next++) outcomes[i] = judgeLine(*judges[judge], block[i].text, settings.only);
    });
    for (size_t i = 0; i < block.size(); ++i) {
      if (!outcomes[i]->ok()) {
        Failure failure = outcomes[i]->failure();
        failure.diagnostics.front().where = {.file = pathOf(settings, suite.file).string(), .line = static_cast<uint32_t>(block[i].number)};
        return failure;
      }
      count(report, **outcomes[i], settings.differences);
    }
  }
}

}  // namespace

void Counts::add(Verdict verdict) { ++(verdict == Verdict::Agree ? agree : verdict == Verdict::Disagree ? disagree : unsupported); }

std::string familyOf(std::string_view test) {
  const size_t begin = std::min(test.find(':'), test.size() - 1) + 1;
  std::string_view group = test.substr(begin, test.find(':', begin) - begin);
  for (const std::string_view prefix : {"shader,validation,", "shader,execution,"}) {
    if (group.starts_with(prefix)) group.remove_prefix(prefix.size());
  }
  return std::string(group);
}

std::vector<std::string> knownFiles() {
  std::vector<std::string> files;
  for (const Suite& suite : kSuites) files.emplace_back(suite.file);
  return files;
}

Status run(const Settings& settings, const std::function<void(const FileReport&)>& report) {
  std::error_code error;
  if (!fs::is_directory(settings.folder, error)) {
    return fail("conformance.folder", fmt::format("'{}' is not a folder", settings.folder.string()), {},
                "give the folder that has the recorded files");
  }
  bool any = false;
  for (const Suite& suite : kSuites) {
    const bool wanted = settings.files.empty() || std::ranges::find(settings.files, suite.file) != settings.files.end();
    if (!wanted || (settings.files.empty() && !fs::exists(pathOf(settings, suite.file), error))) continue;
    any = true;
    LS_TRY(const FileReport result, runFile(suite, settings));
    report(result);
  }
  if (!any) {
    return fail("conformance.folder", fmt::format("'{}' has none of the files that can be replayed", settings.folder.string()), {},
                fmt::format("it should have files such as {}.jsonl.gz", kSuites.front().file));
  }
  return Success{};
}

}  // namespace lockstep::conformance
