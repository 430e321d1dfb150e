// SPDX-License-Identifier: Apache-2.0
// Modules that the kernel IR's tests share.
#pragma once

#include <optional>

#include "ir/kernel/builder.h"

namespace lockstep::kernel::testing {

/// A valid module whose entry point uses `op` with every operand type of a representative set that its rule takes.
/// Nullopt for an op that the samples do not know, so that a new row of ops.def fails a test.
std::optional<Module> moduleUsing(Op op);

/// All of moduleUsing in one module with structs, globals of every address space, helpers, nested control flow, locations and
/// clashing names.
Module wideModule();

/// The text of `lines` as the body of an entry point with some declarations; the first line of the body is line kFirstBodyLine.
std::string inEntryPoint(const std::string& lines);
inline constexpr uint32_t kFirstBodyLine = 15;

bool uses(const Module& module, Op op);

}  // namespace lockstep::kernel::testing
