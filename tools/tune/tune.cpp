// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "frontend/io/file.h"
#include "frontend/io/jsonl.h"
#include "frontend/train/templates.h"
#include "frontend/train/tuning.h"
#include "passes/pipeline.h"
#include "passes/schedule/choose_plan.h"
#include "runtime/device.h"
#include "tools/tune/common_work.h"
#include "tools/tune/sample_kernels.h"
#include "tools/tune/tuner.h"
#include "tools/verb.h"

namespace lockstep::tools {
namespace {

namespace fs = std::filesystem;

struct TuneOptions {
  std::vector<std::string> names;
  std::string device = "auto", output, only;
  bool json = false, dry_run = false;
};

Result<std::vector<NamedKernel>> kernelsOf(graph::Graph graph, const program::DeviceProfile& profile) {
  passes::CompileOptions options;
  options.profile = profile;
  options.templates = detail::templateSource();
  LS_TRY(const passes::Form form, passes::compileTo(passes::Stage::Scheduled, std::move(graph), options));
  return tools::kernelsOf(std::get<program::Program>(form));
}

std::string toText(const TunedWork& work) {
  const double ratio = work.estimate_seconds / work.best_seconds;
  std::string text = fmt::format("{:<40} {:>10.1f} µs  {:>5.2f} x", work.work, work.best_seconds * 1e6, ratio);
  text += work.best == work.estimate ? "  the estimate is best" : "  " + program::print(work.best);
  if (work.refused > 0) text += fmt::format("; {} plans were refused", work.refused);
  for (const TimedPlan& one : work.finalists) {
    if (one.plan == work.best && !one.facts.empty()) text += "\n    " + one.facts;
  }
  if (work.wrong > 0) text += fmt::format("; {} plans with other results were left out", work.wrong);
  return text;
}

io::Json toJson(const TunedWork& work) {
  io::Json finalists = io::Json::array();
  for (const TimedPlan& one : work.finalists) {
    finalists.add(io::Json::object().add("plan", program::print(one.plan)).add("seconds", one.seconds).add("driver", one.facts));
  }
  return io::Json::object()
      .add("work", work.work)
      .add("plan", program::print(work.best))
      .add("seconds", work.best_seconds)
      .add("estimate", program::print(work.estimate))
      .add("estimate_seconds", work.estimate_seconds)
      .add("measured", static_cast<int64_t>(work.measured))
      .add("refused", static_cast<int64_t>(work.refused))
      .add("wrong", static_cast<int64_t>(work.wrong))
      .add("finalists", finalists);
}

Result<program::TuningTable> tableBefore(const fs::path& file, const DeviceInfo& device) {
  std::error_code ignored;
  if (!fs::exists(file, ignored)) return program::TuningTable{.device = device.name, .plans = {}};
  LS_TRY(const std::string text, io::readTextFile(file));
  LS_TRY(program::TuningTable table, program::parseTuning(text, file.string()));
  if (table.device == device.name) return table;
  return fail("tuning.device", fmt::format("'{}' was measured on '{}', and the device is '{}'", file.string(), table.device, device.name),
              {}, "name another file with --output");
}

Result<ExitCode> tune(const TuneOptions& options) {
  LS_TRY(const detail::Device device, detail::tryOpenDevice(options.device));
  const DeviceInfo& info = device.chosen.info;
  const fs::path file = options.output.empty() ? detail::tuningFile(info) : fs::path(options.output);
  if (file.empty() && !options.dry_run)
    return fail("file.write", "there is no folder for caches", {}, "set XDG_CACHE_HOME, or name a file with --output");
  program::TuningTable table{.device = info.name, .plans = {}};
  if (!options.dry_run) {
    LS_TRY(table, tableBefore(file, info));
    LS_CHECK(io::makeDirectories(file.parent_path().empty() ? fs::path(".") : file.parent_path()));
  }
  // After each measurement, so that nothing is lost when the command is stopped; before the first one, so that a file that cannot be
  // written costs no time.
  const auto write = [&](const program::TuningTable& now) -> Status {
    return options.dry_run ? Status(Success{}) : io::writeFileAtomically(file, std::string_view(program::print(now)));
  };
  LS_CHECK(write(table));
  std::vector<NamedKernel> kernels;
  if (options.names.empty()) {
    for (graph::Graph& graph : commonWork(info.profile.style)) {
      LS_TRY(const std::vector<NamedKernel> more, kernelsOf(std::move(graph), info.profile));
      kernels.insert(kernels.end(), more.begin(), more.end());
    }
  }
  for (const std::string& name : options.names) {
    ExperimentOptions sample;
    sample.device = info.id;
    LS_TRY(const std::vector<NamedKernel> more, kernelsOfSample(name, sample));
    kernels.insert(kernels.end(), more.begin(), more.end());
  }
  std::set<std::string> seen;
  io::Json works = io::Json::array();
  for (const auto& [name, kernel] : kernels) {
    const std::string work = passes::describeWork({kernel.body, program::kindOf(kernel.plan), info.profile, true});
    if (work.empty() || work.find(options.only) == std::string::npos || !seen.insert(work).second) continue;
    LS_TRY(const std::optional<TunedWork> tuned, tuneKernel(*device.backend, kernel));
    if (!tuned) continue;
    // Also where the estimate is best: the user's own measurement counts more than the library's.
    table.plans.insert_or_assign(tuned->work, tuned->best);
    LS_CHECK(write(table));
    if (options.json) {
      works.add(toJson(*tuned));
    } else {
      fmt::print("{}\n", toText(*tuned));
      std::fflush(stdout);
    }
  }
  if (seen.empty() && !options.only.empty())
    return usage("usage.value", fmt::format("no kernel has '{}' in its name", options.only), "leave out --only to see the names of all");
  if (options.json) {
    fmt::print(
        "{}\n",
        io::Json::object().add("device", info.id).add("device_name", info.name).add("file", file.string()).add("work", works).text());
  } else if (!options.dry_run) {
    fmt::print("{} plans for {} in {}\n", table.plans.size(), info.name, file.string());
  }
  return ExitCode::Ok;
}

}  // namespace

Result<ExitCode> tuneVerb(Arguments arguments) {
  TuneOptions options;
  Options parser("lockstep tune", "Measures plans of kernels on a device and keeps the fastest ones for every later compilation.");
  parser.arguments(options.names, "NAME", "samples whose kernels are measured; none: kernels of common kinds and sizes", false);
  parser.value(options.device, "--device", console::kDevices);
  parser.value(options.output, "--output",
               "the table that is written; by default one in the cache folder, where later compilations find it");
  parser.value(options.only, "--only", "measure only work whose name contains this text, such as 'rows' or 'bf16'");
  parser.flag(options.dry_run, "--dry-run", "measure and print, and write nothing");
  parser.flag(options.json, "--json", "one JSON object for scripts");
  LS_TRY(const bool go, parser.parse(arguments));
  return go ? tune(options) : ExitCode::Ok;
}

}  // namespace lockstep::tools
