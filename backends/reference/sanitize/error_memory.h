// SPDX-License-Identifier: Apache-2.0
// Bounds of errors take many times the memory of the buffers that they are kept for. What does not fit is refused before it is begun:
// a system that runs out of memory kills the process without a word.
#pragma once

#include <cstdint>
#include <filesystem>

#include "backends/sanitize.h"
#include "ir/program/program.h"
#include "ir/support/result.h"

namespace lockstep::reference {

/// Bytes that the process may still take: of the system, and of its control group where that has a limit. 0: not known. `root` is where
/// /proc and /sys are.
uint64_t availableMemory(const std::filesystem::path& root = "/");

/// Bytes for each word of a buffer while these checks run, the word itself and what is made of its bounds at the end included.
uint64_t bytesPerWord(const SanitizeChecks& checks);

/// Fails with backend.out_of_memory where a program needs more than `available` bytes under these checks; 0: not known.
Status checkErrorMemory(const program::ValidProgram& program, const SanitizeChecks& checks, uint64_t available);

}  // namespace lockstep::reference
