// SPDX-License-Identifier: Apache-2.0
// Diagnostics as a terminal shows them.
#pragma once

#include <cstdio>
#include <string>
#include <vector>

#include "ir/support/diagnostic.h"

namespace lockstep::console {

/// The text of one diagnostic or warning with its words "error:", "warning:" and "help:" in colour where `stream` has colours.
std::string paintDiagnostic(std::string text, std::FILE* stream);

/// Each diagnostic in its one form; below it, where the place is in a text file that can be read, the line and a caret.
/// In colour where `stream` has colours.
std::string renderWithSource(const std::vector<Diagnostic>& diagnostics, std::FILE* stream = stderr);

}  // namespace lockstep::console
