// SPDX-License-Identifier: Apache-2.0
// The viewer's files, made a part of the command by tools/CMakeLists.txt.
#pragma once

#include <string_view>

namespace lockstep::tools {

struct ViewerFiles {
  std::string_view page, style, script;
};
const ViewerFiles& viewerFiles();

}  // namespace lockstep::tools
