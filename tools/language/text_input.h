// SPDX-License-Identifier: Apache-2.0
// Text that a verb is given as a file.
#pragma once

#include <string>

#include "ir/support/result.h"

namespace lockstep::tools {

/// All of a file, or of stdin for "-". code "file.read"
Result<std::string> readTextInput(const std::string& path);

}  // namespace lockstep::tools
