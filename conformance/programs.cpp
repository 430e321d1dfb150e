// SPDX-License-Identifier: Apache-2.0
// Programs whose results were recorded: execution traces (one run each) and consensus programs (one run for each fill of the buffers).
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "backends/dispatch.h"
#include "backends/reference/reference.h"
#include "conformance/order_probe.h"
#include "conformance/recorded_program.h"
#include "conformance/suite.h"
#include "frontend/wgsl/wgsl.h"
#include "ir/kernel/isolate_entry.h"
#include "passes/kernel/make_robust.h"

namespace lockstep::conformance {
namespace {

class ProgramRunner {
 public:
  /// `subgroup_lanes`: the size of the subgroups that the results were recorded with, when they may depend on it.
  explicit ProgramRunner(std::unique_ptr<Backend> backend, std::optional<uint32_t> subgroup_lanes = {})
      : backend_(std::move(backend)), subgroup_lanes_(subgroup_lanes) {}

  /// Reads, compiles and runs; the verdict and its reason go to `outcome`.
  void run(KernelDispatch dispatch, const std::string& text, const wgsl::ReadOptions& options, std::vector<RecordedRun> runs,
           Outcome& outcome) {
    Result<kernel::Module> module = wgsl::read(text, options);
    if (!module.ok()) {
      const bool unsupported = module.diagnostics().front().code == "wgsl.unsupported";
      return disagree(outcome, unsupported ? Verdict::Unsupported : Verdict::Disagree,
                      wgsl::renderDiagnostics(module.diagnostics(), text) + text);
    }
    Result<kernel::Module> entry = kernel::isolateEntry(*module, dispatch.entry);
    if (!entry.ok()) return disagree(outcome, Verdict::Disagree, toString(entry.diagnostics()) + text);
    dispatch.module = passes::makeRobust(std::move(*entry), kernel::OutOfBounds::Clamp);
    dispatch.entry.clear();
    const Result<program::ValidProgram> program = makeProgram(dispatch);
    if (!program.ok()) return disagree(outcome, Verdict::Disagree, toString(program.diagnostics()) + text);
    Result<PreparedDispatch> prepared = PreparedDispatch::make(*backend_, *program);
    if (!prepared.ok()) {
      const bool unsupported = prepared.diagnostics().front().code == "vulkan.feature";
      return disagree(outcome, unsupported ? Verdict::Unsupported : Verdict::Disagree, toString(prepared.diagnostics()) + text);
    }
    const bool other_subgroups = hasOtherSubgroups(dispatch.module);
    if (other_subgroups) {
      if (const Status status = runOnReference(*program, runs); !status.ok()) {
        return disagree(outcome, Verdict::Unsupported, toString(status.diagnostics()) + text);
      }
    }
    for (const RecordedRun& run : runs) {
      std::vector<Bytes> buffers = run.before;
      if (const Status status = prepared->run(buffers); !status.ok()) {
        return disagree(outcome, Verdict::Disagree, toString(status.diagnostics()) + text);
      }
      std::vector<WordDifference> differences = compareBuffers(run.after, buffers);
      if (!differences.empty() && showsOrder(dispatch.module)) {
        differences = unexplainedByOrder(*program, run.before, std::move(differences));
      }
      if (differences.empty()) continue;
      return disagree(outcome, other_subgroups ? Verdict::Unsupported : Verdict::Disagree,
                      fmt::format("{} {}\n{}", run.name, toString(differences.front()), text));
    }
  }

 private:
  static void disagree(Outcome& outcome, Verdict verdict, std::string why) {
    outcome.verdict = verdict;
    outcome.why = std::move(why);
  }
  /// A device with another size splits a workgroup in another way. The reference has the size that traces are recorded with; for another
  /// one it can tell what is right where the device takes invocations in the order of their indices. Where it need not, nobody can tell, so
  /// a test that gives something else is unsupported there.
  [[nodiscard]] bool hasOtherSubgroups(const kernel::Module& module) const {
    const DeviceInfo& device = backend_->device();
    return subgroup_lanes_ && std::ranges::count(module.capabilities, kernel::Capability::Subgroups) != 0 &&
           device.kind != DeviceKind::Reference && device.profile.subgroup_size != *subgroup_lanes_;
  }

  Status runOnReference(const program::ValidProgram& program, std::vector<RecordedRun>& runs) {
    const std::unique_ptr<Backend> reference = makeReference({.max_threads = 1, .subgroup_size = backend_->device().profile.subgroup_size});
    LS_TRY(PreparedDispatch prepared, PreparedDispatch::make(*reference, program));
    for (RecordedRun& run : runs) {
      run.after = run.before;
      LS_CHECK(prepared.run(run.after));
    }
    return Success{};
  }

  std::unique_ptr<Backend> backend_;
  std::optional<uint32_t> subgroup_lanes_;
};

template <RecordedProgram (*Read)(const std::string&)>
class ProgramJudge : public Judge {
 public:
  explicit ProgramJudge(ProgramRunner runner) : runner_(std::move(runner)) {}

  Outcome judge(const std::string& line) override {
    RecordedProgram program = Read(line);
    Outcome outcome{.family = std::move(program.family), .test = std::move(program.name), .why = {}};
    runner_.run(std::move(program.dispatch), program.text, program.options, std::move(program.runs), outcome);
    return outcome;
  }

 private:
  ProgramRunner runner_;
};

template <RecordedProgram (*Read)(const std::string&)>
Result<std::unique_ptr<Judge>> makeOnDevice(const Settings& settings, std::optional<uint32_t> subgroup_lanes) {
  LS_TRY(const ChosenDevice chosen, chooseDevice(settings.device));
  LS_TRY(std::unique_ptr<Backend> backend, openDevice(chosen.info));
  return std::unique_ptr<Judge>(std::make_unique<ProgramJudge<Read>>(ProgramRunner(std::move(backend), subgroup_lanes)));
}

}  // namespace

Result<std::unique_ptr<Judge>> makeTraceJudge(const Settings& settings) { return makeOnDevice<readTrace>(settings, 4); }
Result<std::unique_ptr<Judge>> makeConsensusJudge(const Settings& settings) { return makeOnDevice<readConsensus>(settings, std::nullopt); }

}  // namespace lockstep::conformance
