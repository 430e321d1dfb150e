// SPDX-License-Identifier: Apache-2.0
// Private to the front end: the part of a dump folder that passes cannot write, as they know neither WGSL nor a device.
#pragma once

#include <filesystem>

#include "backends/backend.h"
#include "ir/program/program.h"
#include "ir/support/result.h"

namespace lockstep::detail {

/// Writes program.json, and each kernel of the program as NAME.wgsl, and as NAME.spvasm or the like where the backend has a listing, into
/// the folder, which exists. Failure "file.write".
Status dumpProgram(const std::filesystem::path& folder, const program::ValidProgram& program, const Backend& backend);

}  // namespace lockstep::detail
