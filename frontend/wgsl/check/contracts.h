// SPDX-License-Identifier: Apache-2.0
// Reads the contracts of a text. Internal to the reader.
#pragma once

#include <vector>

#include "frontend/wgsl/check/program.h"
#include "frontend/wgsl/contract.h"

namespace lockstep::wgsl {

/// Those of all comments, in order. Mistakes in them are reported with code wgsl.contract; `program` says what names there are and which
/// constants and overrides have values.
std::vector<Contract> readContracts(const Source& source, const Ast& ast, const Program& program, Reporter& reporter);

}  // namespace lockstep::wgsl
