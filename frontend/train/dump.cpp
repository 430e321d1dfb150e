// SPDX-License-Identifier: Apache-2.0
#include "frontend/train/dump.h"

#include "frontend/io/file.h"
#include "frontend/train/program_json.h"
#include "frontend/wgsl/wgsl.h"

namespace lockstep::detail {

Status dumpProgram(const std::filesystem::path& folder, const program::ValidProgram& program, const Backend& backend) {
  for (size_t i = 0; i < program->kernels.size(); ++i) {
    const std::string& name = program->kernels[i].name;
    const kernel::ValidModule& module = program.modules()[i];
    LS_CHECK(io::writeFileAtomically(folder / (name + ".wgsl"), wgsl::write(*module)));
    LS_TRY(const std::optional<KernelListing> listing, backend.list(module));
    if (listing) LS_CHECK(io::writeFileAtomically(folder / (name + "." + listing->ending), listing->text));
  }
  return io::writeFileAtomically(folder / "program.json", programJson(*program));
}

}  // namespace lockstep::detail
