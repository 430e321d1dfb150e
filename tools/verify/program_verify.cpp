// SPDX-License-Identifier: Apache-2.0
#include "tools/verify/program_verify.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "examples/recipes.h"
#include "experiment/command_line.h"
#include "frontend/io/file.h"
#include "frontend/io/temporary_folder.h"
#include "runtime/device.h"
#include "tools/verify/command_origins.h"
#include "tools/verify/kernel_check.h"
#include "tools/verify/output_distance.h"
#include "tools/verify/replay.h"
#include "tools/verify/reproduction.h"

namespace lockstep::tools {
namespace {

namespace fs = std::filesystem;

/// Relative L2. Kernels within their bounds add up to much less in one step, and a kernel that runs too early to much more.
constexpr double kTogether = 1e-2;

/// A difference with the names that the report and the folder need.
struct Judgement {
  std::string name;  ///< of the sample or the file
  std::string device, against;
  const program::Program& program;
  const KernelDifference& difference;
  const CommandOrigin& origin;
  fs::path folder;

  [[nodiscard]] const program::Command& command() const { return program.commands[difference.command]; }
  [[nodiscard]] const program::Dispatch& dispatch() const { return std::get<program::Dispatch>(command().action); }
  [[nodiscard]] const std::string& kernel() const { return program[dispatch().kernel].name; }
  [[nodiscard]] const OpOrigin* maker() const { return origin.makerOf(dispatch().bindings[difference.binding].buffer); }
};

Diagnostic diagnosticOf(const Judgement& judgement) {
  const OpOrigin* maker = judgement.maker();
  Diagnostic diagnostic;
  diagnostic.code = "verify.kernel";
  diagnostic.message = fmt::format("kernel {} gives on {} what {} does not: {}", judgement.kernel(), judgement.device, judgement.against,
                                   toText(judgement.difference.numbers, judgement.difference.element));
  if (maker != nullptr) diagnostic.where = maker->where;
  diagnostic.notes.push_back(
      {.message = fmt::format("command {} of {}, in run {}, computes {}{}", judgement.difference.command + 1,
                              judgement.program.commands.size(), judgement.difference.round + 1, judgement.command().label,
                              maker == nullptr ? "" : fmt::format("; the result is that of {}", maker->op)),
       .where = {}});
  for (const std::string& place : placesOf(judgement.origin)) diagnostic.notes.push_back({.message = place, .where = {}});
  diagnostic.remedy =
      fmt::format("'sh {0}/run.sh' runs this kernel alone, 'sh {0}/run.sh reference' on the reference; edit kernel.kir there",
                  judgement.folder.string());
  return diagnostic;
}

io::Json toJson(const Judgement& judgement) {
  io::Json ops = io::Json::array();
  for (const OpOrigin& one : judgement.origin.ops) {
    ops.add(io::Json::object()
                .add("op", one.op)
                .add("type", one.value)
                .add("file", one.where.known() ? io::Json(one.where.file) : io::Json())
                .add("line", one.where.line));
  }
  return io::Json::object()
      .add("kernel", judgement.kernel())
      .add("label", judgement.command().label)
      .add("command", uint64_t{judgement.difference.command})
      .add("run", uint64_t{judgement.difference.round} + 1)
      .add("binding", uint64_t{judgement.difference.binding})
      .add("name", judgement.difference.element)
      .add("op", judgement.maker() == nullptr ? io::Json() : io::Json(judgement.maker()->op))
      .add("ops", ops)
      .add("numbers", toJson(judgement.difference.numbers))
      .add("folder", judgement.folder.string());
}

Diagnostic diagnosticOf(const std::string& name, const std::string& device, const OutputDistance& together) {
  Diagnostic diagnostic;
  diagnostic.code = "verify.together";
  diagnostic.message = fmt::format("each kernel of {} is right on {}, and all together are not: {} is off by a relative L2 of {:.3g}", name,
                                   device, together.name, together.relative);
  diagnostic.remedy = "something goes wrong between kernels: their order, a barrier, memory that two of them share";
  return diagnostic;
}

Result<ExitCode> judge(const std::string& name, KernelCheck check, const io::TensorFile& inputs, const std::vector<CommandOrigin>& origins,
                       const detail::Device& device, const detail::Device& against, const ProgramVerifyOptions& options) {
  const std::string &own = device.chosen.info.id, &other = against.chosen.info.id;
  if (own == other) fmt::print(stderr, "note: {} is compared with itself; --device names another one\n", own);
  std::optional<KernelDifference> found;
  OutputDistance together;
  for (int64_t round = 0; round < options.rounds && !found; ++round) {
    LS_TRY(found, check.run(*against.backend, *device.backend));
    if (round > 0 || found) continue;
    LS_TRY(together, distanceTogether(check, inputs, device));
  }
  const CheckCounts& counts = check.counts();
  io::Json object = io::Json::object()
                        .add("name", name)
                        .add("device", own)
                        .add("against", other)
                        .add("dispatches", uint64_t{counts.dispatches})
                        .add("elements", uint64_t{counts.elements})
                        .add("closest", counts.closest)
                        .add("chosen", uint64_t{counts.chosen})
                        .add("together", together.relative);
  if (!found && together.relative > kTogether) {
    if (options.json) fmt::print("{}\n", object.add("difference", io::Json()).text());
    if (!options.json) fmt::print(stderr, "{}\n", toString(diagnosticOf(name, own, together)));
    return ExitCode::NumericCheck;
  }
  if (!found) {
    const std::string where = counts.closest > 0 ? " in " + check.program().commands[counts.closest_command].label : "";
    if (options.json) {
      fmt::print("{}\n", object.add("difference", io::Json()).text());
    } else {
      const std::string chosen =
          counts.chosen == 0 ? "" : fmt::format("; {} elements are further off, after choices that rounding decides", counts.chosen);
      fmt::print("{}: {} agrees with {} in {} dispatches, {} elements; the largest distance is {:.2g} of its bound{}{}\n", name, own, other,
                 counts.dispatches, counts.elements, counts.closest, where, chosen);
    }
    return ExitCode::Ok;
  }
  const fs::path folder = options.out.empty() ? fs::path("verify-" + name) : fs::path(options.out);
  const Judgement judgement{name, own, other, check.program(), *found, origins[found->command], folder};
  const std::string report = toString(diagnosticOf(judgement)) + "\n";
  LS_CHECK(writeReproduction(folder, *found, own, report));
  if (options.json) {
    fmt::print("{}\n", object.add("difference", toJson(judgement)).text());
  } else {
    fmt::print(stderr, "{}", report);
  }
  return ExitCode::NumericCheck;
}

Result<ExitCode> verifyFile(const std::string& name, const fs::path& path, const fs::path& inputs, const ProgramVerifyOptions& options) {
  LS_TRY(const detail::Device against, detail::tryOpenDevice(options.against));
  LS_TRY(const detail::Device device, detail::tryOpenDevice(options.device));
  LS_TRY(program::Program program, readProgram(path.string(), device.chosen.info.profile));
  LS_TRY(const io::TensorFile values, io::readSafetensors(inputs));
  const std::vector<CommandOrigin> origins = originsFrom(path.parent_path().empty() ? fs::path(".") : path.parent_path(), program);
  LS_TRY(KernelCheck check, KernelCheck::make(std::move(program), values));
  return judge(name, std::move(check), values, origins, device, against, options);
}

}  // namespace

Status dumpSample(const std::string& sample, ExperimentOptions options, const fs::path& folder) {
  LS_TRY(const Recipe* recipe, experiment::findRecipe(examples::recipes(), sample));
  options.steps = recipe->steps;
  options.seed = recipe->seed;
  options.dump_ir = folder.string();
  const std::unique_ptr<Experiment> experiment = recipe->make(options);
  // The device may be wrong, so its loss may be anything.
  (void)experiment->trainer().step(experiment->batch(1));
  return Success{};
}

Result<fs::path> findStage(const fs::path& folder, const std::string& ending) {
  LS_TRY(std::vector<fs::path> files, io::listFolder(folder));
  std::erase_if(files, [&](const fs::path& path) { return !path.filename().string().ends_with(ending); });
  if (files.empty())
    return fail("verify.dump", fmt::format("'{}' has no file '*{}'", folder.string(), ending), {}, "name a folder that --dump-ir wrote");
  return *std::ranges::max_element(files);
}

Result<ExitCode> verifyProgram(const std::string& path, const ProgramVerifyOptions& options) {
  const fs::path file = path;
  if (file.extension() != ".program")
    return fail("verify.program", fmt::format("'{}' is no .program", path), {},
                "name a program of a folder that --dump-ir wrote, such as 17-kernels.program");
  return verifyFile(file.stem().string(), file,
                    options.inputs.empty() ? file.parent_path() / "inputs.safetensors" : fs::path(options.inputs), options);
}

Result<ExitCode> verifyTrain(const std::string& sample, const ProgramVerifyOptions& options) {
  LS_TRY(const io::TemporaryFolder folder, io::TemporaryFolder::make("lockstep-verify"));
  ExperimentOptions dumped;
  dumped.device = options.device;
  LS_CHECK(dumpSample(sample, std::move(dumped), folder.path()));
  LS_TRY(const fs::path program, findStage(folder.path(), ".program"));
  return verifyFile(sample, program, folder.path() / "inputs.safetensors", options);
}

}  // namespace lockstep::tools
