// SPDX-License-Identifier: Apache-2.0
#include "tools/tune/sample_kernels.h"

#include <algorithm>
#include <filesystem>

#include "frontend/io/file.h"
#include "frontend/io/temporary_folder.h"
#include "passes/cost.h"
#include "passes/plan/command_work.h"
#include "passes/stage.h"
#include "tools/verify/program_verify.h"

namespace lockstep::tools {
namespace {

Result<program::Program> readStage(const std::filesystem::path& folder, const std::string& ending) {
  LS_TRY(const std::filesystem::path stage, findStage(folder, ending));
  LS_TRY(const std::string text, io::readTextFile(stage));
  LS_TRY(passes::Form form, passes::parseForm(text, stage.string()));
  return std::get<program::Program>(std::move(form));
}

}  // namespace

std::vector<NamedKernel> kernelsOf(const program::Program& scheduled) {
  std::vector<NamedKernel> kernels;
  for (const program::Kernel& kernel : scheduled.kernels) {
    if (const auto* symbolic = std::get_if<program::SymbolicKernel>(&kernel.code)) kernels.push_back({kernel.name, *symbolic});
  }
  return kernels;
}

Result<std::vector<NamedKernel>> kernelsOfSample(const std::string& name, const ExperimentOptions& options) {
  LS_TRY(const io::TemporaryFolder folder, io::TemporaryFolder::make("lockstep-kernels"));
  LS_CHECK(dumpSample(name, options, folder.path()));
  LS_TRY(const program::Program scheduled, readStage(folder.path(), "-splitDispatches.program"));
  return kernelsOf(scheduled);
}

Result<std::map<std::string, program::SymbolicKernel>> finalKernelsOfSample(const std::string& name, const ExperimentOptions& options) {
  LS_TRY(const io::TemporaryFolder folder, io::TemporaryFolder::make("lockstep-kernels"));
  LS_CHECK(dumpSample(name, options, folder.path()));
  LS_TRY(const program::Program planned, readStage(folder.path(), "-planBuffers.program"));
  LS_TRY(const program::Program last, readStage(folder.path(), ".program"));
  const std::vector<passes::CommandWork> work = passes::countWork(planned, planned);
  const std::vector<std::vector<size_t>> parts = passes::findParts(planned, last);
  const passes::cost::Rates rates = passes::cost::ratesOf(last.profile);
  const auto secondsOf = [&](size_t part) {
    return passes::cost::floorOf(work[part].bytes, work[part].operations.value_or(0), rates).seconds();
  };
  std::map<std::string, program::SymbolicKernel> kernels;
  for (size_t i = 0; i < last.commands.size(); ++i) {
    const auto* dispatch = std::get_if<program::Dispatch>(&last.commands[i].action);
    if (dispatch == nullptr || parts[i].empty()) continue;
    const size_t most = *std::ranges::max_element(parts[i], {}, secondsOf);
    const auto& code = planned[std::get<program::Dispatch>(planned.commands[most].action).kernel].code;
    if (const auto* symbolic = std::get_if<program::SymbolicKernel>(&code)) kernels.try_emplace(last[dispatch->kernel].name, *symbolic);
  }
  return kernels;
}

}  // namespace lockstep::tools
