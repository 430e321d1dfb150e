// SPDX-License-Identifier: Apache-2.0
// The bytes of a variable of any WGSL type, for people and for scripts.
#pragma once

#include <string>

#include "backends/dispatch.h"
#include "frontend/io/jsonl.h"
#include "ir/kernel/module.h"

namespace lockstep::tools {

/// One line per element of an array or a member of a struct, else one line: "  [0] {position: (1.0, 2.0, 3.0), mass: 0.5}".
/// Matrices are lists of columns. A runtime-sized array has as many elements as the bytes hold.
std::string valueLines(const kernel::Module& module, kernel::TypeId type, const Bytes& bytes);

/// Structs as objects, the others as (lists of) numbers.
io::Json valueJson(const kernel::Module& module, kernel::TypeId type, const Bytes& bytes);

}  // namespace lockstep::tools
