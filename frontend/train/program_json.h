// SPDX-License-Identifier: Apache-2.0
// A program as JSON with its kernels as WGSL: for a runtime of somebody else, such as a page in a browser.
#pragma once

#include <string>

#include "ir/program/program.h"

namespace lockstep {

/// What the member "lockstep_program" of the text says. It grows when a reader of older texts would misread a newer one.
inline constexpr int kProgramJsonVersion = 2;

/// One line of JSON as docs/schemas/program.json describes it. The program is emitted: InternalError for a symbolic kernel.
[[nodiscard]] std::string programJson(const program::Program& program);

}  // namespace lockstep
