// SPDX-License-Identifier: Apache-2.0
#include "tools/tune/sample_kernels.h"

#include <filesystem>

#include "frontend/io/file.h"
#include "frontend/io/temporary_folder.h"
#include "passes/stage.h"
#include "tools/verify/program_verify.h"

namespace lockstep::tools {

std::vector<NamedKernel> kernelsOf(const program::Program& scheduled) {
  std::vector<NamedKernel> kernels;
  for (const program::Kernel& kernel : scheduled.kernels) {
    if (const auto* symbolic = std::get_if<program::SymbolicKernel>(&kernel.code)) kernels.push_back({kernel.name, *symbolic});
  }
  return kernels;
}

Result<std::vector<NamedKernel>> kernelsOfSample(const std::string& name, const std::string& device) {
  LS_TRY(const io::TemporaryFolder folder, io::TemporaryFolder::make("lockstep-kernels"));
  LS_CHECK(dumpSample(name, device, folder.path()));
  LS_TRY(const std::filesystem::path stage, findStage(folder.path(), "-splitDispatches.program"));
  LS_TRY(const std::string text, io::readTextFile(stage));
  LS_TRY(const passes::Form form, passes::parseForm(text, stage.string()));
  return kernelsOf(std::get<program::Program>(form));
}

}  // namespace lockstep::tools
