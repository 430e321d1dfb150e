// SPDX-License-Identifier: Apache-2.0
// A text with what the checker found out about it. Internal to the reader.
#pragma once

#include "frontend/wgsl/check/program.h"

namespace lockstep::wgsl {

/// Complete as long as the reporter has nothing to say.
struct CheckedText {
  Ast ast;
  Program program;
};

/// Syntax, checks and analyses of a module whose overrides have no values (or are constants, if the options say so).
CheckedText checkText(const Source& source, const ReadOptions& options, Reporter& reporter);

}  // namespace lockstep::wgsl
