// SPDX-License-Identifier: Apache-2.0
// The texts of tools/new/, in a source file that CMake writes.
#pragma once

#include <span>
#include <string_view>

namespace lockstep::tools {

/// In `text`, @NAME@ and @VERSION@ stand for those of the project and of Lockstep.
struct ProjectFile {
  std::string_view name;
  std::string_view text;
};
std::span<const ProjectFile> projectFiles();

}  // namespace lockstep::tools
