// SPDX-License-Identifier: Apache-2.0
#include "conformance/conformance.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <nlohmann/json.hpp>
#include <thread>

#include "conformance/gzip_lines.h"
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

Result<FileReport> runFile(const Suite& suite, const Settings& settings) {
  FileReport report{.file = std::string(suite.file)};
  LS_TRY(GzipLines lines, GzipLines::open(pathOf(settings, suite.file)));
  const unsigned threads = settings.threads > 0 ? settings.threads : std::max(1u, std::thread::hardware_concurrency());
  std::vector<std::unique_ptr<Judge>> judges;
  for (unsigned i = 0; i < threads; ++i) {
    LS_TRY(std::unique_ptr<Judge> judge, suite.make(settings));
    judges.push_back(std::move(judge));
  }
  for (uint64_t line_number = 0;;) {
    std::vector<NumberedLine> block;
    while (block.size() < kBlock) {
      LS_TRY(std::optional<std::string> line, lines.next());
      if (!line) break;
      if (line_number++ % settings.parts == settings.part) block.push_back({.number = line_number, .text = std::move(*line)});
    }
    if (block.empty()) return report;
    std::vector<std::optional<Result<Outcome>>> outcomes(block.size());
    std::atomic<size_t> next = 0;
    {
      std::vector<std::jthread> workers;
      for (const std::unique_ptr<Judge>& judge : judges) {
        workers.emplace_back([&] {
          for (size_t i = next++; i < block.size(); i = next++) outcomes[i] = judgeLine(*judge, block[i].text, settings.only);
        });
      }
    }
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
  if (!fs::is_directory(settings.folder)) {
    return fail("conformance.folder", fmt::format("'{}' is not a folder", settings.folder.string()), {},
                "give the folder that has the recorded files");
  }
  bool any = false;
  for (const Suite& suite : kSuites) {
    const bool wanted = settings.files.empty() || std::ranges::find(settings.files, suite.file) != settings.files.end();
    if (!wanted || (settings.files.empty() && !fs::exists(pathOf(settings, suite.file)))) continue;
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
