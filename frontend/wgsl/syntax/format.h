// SPDX-License-Identifier: Apache-2.0
// The layout of WGSL text: one statement per line, two spaces per level, one space around operators. Tokens and comments stay as they are,
// and so do line breaks within a statement and single empty lines.
#pragma once

#include <string>
#include <string_view>

#include "ir/support/result.h"

namespace lockstep::wgsl {

/// The text in standard layout; format(format(t)) == format(t). A text with syntax errors fails with their diagnostics.
Result<std::string> format(std::string_view source, const std::string& file_name = "kernel.wgsl");

}  // namespace lockstep::wgsl
