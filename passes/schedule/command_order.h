// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "ir/program/program.h"

namespace lockstep::passes {

/// Assigns levels again so that few bytes of workspace live at a time: a level takes the commands whose operands are there, first those
/// that do not add bytes, then those that most others wait for, while at most `living_bytes` live; one command runs whatever it takes.
/// Commands that touch the same bytes, where one writes, keep their order. Without a limit (UINT64_MAX) every command is in the earliest
/// level that it can be in.
program::Program orderCommands(const program::Program& program, uint64_t living_bytes);

}  // namespace lockstep::passes
