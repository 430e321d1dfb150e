// SPDX-License-Identifier: Apache-2.0
// docs/errors.md, as CMake put it into the command.
#pragma once

#include <string_view>

namespace lockstep::tools {

extern const std::string_view kErrorPage;

}  // namespace lockstep::tools
