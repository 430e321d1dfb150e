// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <array>
#include <filesystem>

#include "frontend/io/file.h"
#include "frontend/io/temporary_folder.h"
#include "frontend/train/tuning.h"
#include "ir/support/nearest.h"
#include "runtime/device.h"
#include "tools/verb.h"
#include "tools/verify/bisect.h"
#include "tools/verify/kernel_check.h"
#include "tools/verify/output_distance.h"
#include "tools/verify/program_verify.h"
#include "tools/verify/replay.h"

namespace lockstep::tools {
namespace {

namespace fs = std::filesystem;

struct BisectOptions {
  std::string device = "auto", against = "reference", inputs;
  double tolerance = 1e-4;
  bool json = false;
};

Diagnostic diagnosticOf(const std::string& name, const std::string& device, const Bisection& found) {
  Diagnostic diagnostic;
  diagnostic.code = "bisect.pass";
  if (found.outcome == Bisection::Outcome::EveryBuild) {
    diagnostic.message = fmt::format("{} is wrong on {} without any optional pass{} as well", name, device,
                                     found.keeps_kernel_passes ? " but kernel passes" : "");
    diagnostic.remedy =
        "a required pass, the lowering of an op or the device is at fault: 'lockstep verify train' compares kernel by kernel";
  } else {
    diagnostic.message = fmt::format("the pass '{}' makes {} wrong on {}", found.pass, name, device);
    diagnostic.remedy = found.alone ? fmt::format("--disable-pass {} avoids it", found.pass)
                                    : "leaving out this pass alone is not enough: another one does the same";
  }
  for (const Culprit& culprit : found.culprits) {
    const bool first = !diagnostic.where.known();
    for (const OpOrigin& op : culprit.origin.ops) {
      if (first && op.where.known()) diagnostic.where = op.where;
    }
    diagnostic.notes.push_back(
        {.message = fmt::format("it is in kernel {}, which computes {}", culprit.kernel, culprit.label), .where = {}});
    for (const std::string& place : placesOf(culprit.origin)) diagnostic.notes.push_back({.message = place, .where = {}});
  }
  return diagnostic;
}

std::string toText(const Trial& trial) {
  if (!trial.refused.empty()) return fmt::format("{:<6}{:<44}the device refuses it: {}", "", trial.what, trial.refused);
  return fmt::format("{:<6}{:<44}{:.3g} of what is allowed", trial.wrong() ? "wrong" : "right", trial.what, trial.distance);
}

io::Json toJson(const std::string& name, const std::string& device, const Bisection& found) {
  io::Json trials = io::Json::array(), culprits = io::Json::array();
  for (const Trial& trial : found.trials)
    trials.add(io::Json::object()
                   .add("what", trial.what)
                   .add("distance", trial.refused.empty() ? io::Json(trial.distance) : io::Json())
                   .add("wrong", trial.wrong())
                   .add("refused", trial.refused.empty() ? io::Json() : io::Json(trial.refused)));
  for (const Culprit& culprit : found.culprits) {
    io::Json places = io::Json::array();
    for (const std::string& place : placesOf(culprit.origin)) places.add(place);
    culprits.add(io::Json::object().add("kernel", culprit.kernel).add("label", culprit.label).add("places", places));
  }
  return io::Json::object()
      .add("name", name)
      .add("device", device)
      .add("outcome", toString(found.outcome))
      .add("pass", found.pass.empty() ? io::Json() : io::Json(found.pass))
      .add("alone", found.alone)
      .add("culprits", culprits)
      .add("trials", trials);
}

Result<ExitCode> bisectStage(const std::string& name, const fs::path& path, const fs::path& inputs, const BisectOptions& options) {
  LS_TRY(const std::string text, io::readTextFile(path));
  LS_TRY(const passes::Form form, passes::parseForm(text, path.string()));
  LS_TRY(const io::TensorFile values, io::readSafetensors(inputs));
  LS_TRY(const detail::Device device, detail::tryOpenDevice(options.device));
  LS_TRY(const detail::Device against, detail::tryOpenDevice(options.against));
  LS_TRY(const passes::Stage stage, stageOf(form));
  passes::CompileOptions compile_options;
  compile_options.profile = device.chosen.info.profile;
  LS_TRY(compile_options.measured, detail::tuningOf(device.chosen.info));
  BisectRequest request;
  request.passes = optionalPassesAfter(stage);
  request.build = [&](const PassChoice& choice) { return buildFrom(form, compile_options, choice); };

  // A graph says what is right in f64; a program only what another device makes of it, as plain as it gets.
  io::TensorFile want;
  if (const auto* graph = std::get_if<graph::Graph>(&form)) {
    LS_TRY(want, evaluateStage(*graph, values));
  } else {
    LS_TRY(BuiltProgram plain, request.build({.disabled = request.passes}));
    LS_TRY(Replayed right, runStage(std::move(plain.program), values, against));
    want = std::move(right.outputs);
  }
  request.measure = [&](const program::Program& program) -> Result<double> {
    LS_TRY(const Replayed got, runStage(program, values, device));
    return distanceOf(got.outputs, want).relative / options.tolerance;
  };
  request.first_wrong_command = [&](const program::Program& program) -> Result<std::optional<size_t>> {
    LS_TRY(KernelCheck check, KernelCheck::make(program, values));
    LS_TRY(const std::optional<KernelDifference> difference, check.run(*against.backend, *device.backend));
    return difference ? std::optional(difference->command) : std::nullopt;
  };
  LS_TRY(const Bisection found, bisectPasses(request));
  const std::string& id = device.chosen.info.id;
  if (options.json) {
    fmt::print("{}\n", toJson(name, id, found).text());
  } else {
    for (const Trial& trial : found.trials) fmt::print("{}\n", toText(trial));
    if (found.outcome == Bisection::Outcome::NoDifference) {
      fmt::print("{} is right on {} with all passes\n", name, id);
    } else {
      fmt::print(stderr, "{}\n", toString(diagnosticOf(name, id, found)));
    }
  }
  return found.outcome == Bisection::Outcome::NoDifference ? ExitCode::Ok : ExitCode::NumericCheck;
}

Result<ExitCode> bisectTrain(const std::string& sample, const BisectOptions& options) {
  LS_TRY(const io::TemporaryFolder folder, io::TemporaryFolder::make("lockstep-bisect"));
  ExperimentOptions dumped;
  dumped.device = options.device;
  LS_CHECK(dumpSample(sample, std::move(dumped), folder.path()));
  LS_TRY(const fs::path stage, findStage(folder.path(), "-optimizer.located"));
  return bisectStage(sample, stage, folder.path() / "inputs.safetensors", options);
}

}  // namespace

Result<ExitCode> bisectVerb(Arguments arguments) {
  std::string what, name;
  BisectOptions bisect;
  Options options("lockstep bisect", "Finds the optional pass, and the kernel of it, that makes a training step wrong on a device.");
  options.argument(what, "WHAT", "train or program");
  options.choices("WHAT", {"train", "program"});
  options.argument(
      name, "NAME",
      "train: a sample, whose first step is run; program: a stage of a --dump-ir folder, after optimizer (.graph, .located, .program)");
  options.value(bisect.device, "--device", console::kDevices);
  options.choices("--device", {"auto", "reference", "vulkan"});
  options.value(bisect.against, "--against", "the device that is right, where there is no graph to evaluate in f64");
  options.value(bisect.inputs, "--inputs", "of program: its parameters, states and inputs; by default the inputs.safetensors beside it");
  options.value(bisect.tolerance, "--tolerance", "the relative L2 distance that an output may have");
  options.flag(bisect.json, "--json", "one JSON object for scripts");
  LS_TRY(const bool go, options.parse(arguments));
  if (!go) return ExitCode::Ok;
  constexpr std::array<std::string_view, 2> kKinds = {"train", "program"};
  if (!(bisect.tolerance > 0)) return usage("value", "--tolerance is more than 0");
  if (what == kKinds[0]) return bisectTrain(name, bisect);
  if (what != kKinds[1]) return usage("verify", fmt::format("there is nothing named '{}' to bisect", what), suggest(what, kKinds));
  const fs::path path = name;
  return bisectStage(path.stem().string(), path,
                     bisect.inputs.empty() ? path.parent_path() / "inputs.safetensors" : fs::path(bisect.inputs), bisect);
}

}  // namespace lockstep::tools
