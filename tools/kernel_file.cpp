// SPDX-License-Identifier: Apache-2.0
#include "tools/kernel_file.h"

#include <fmt/format.h>

#include <filesystem>

#include "frontend/io/file.h"
#include "frontend/wgsl/wgsl.h"

namespace lockstep::tools {

Result<kernel::Module> readKernelFile(const std::string& path) {
  const std::string ending = std::filesystem::path(path).extension().string();
  if (ending != ".kir" && ending != ".wgsl") {
    return fail("run.file", fmt::format("'{}' is neither a .wgsl nor a .kir file", path), {}, "the ending says how a kernel is read");
  }
  LS_TRY(const std::string text, io::readTextFile(path));
  return ending == ".kir" ? kernel::parse(text, path) : wgsl::read(text, path);
}

}  // namespace lockstep::tools
