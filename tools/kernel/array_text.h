// SPDX-License-Identifier: Apache-2.0
// Arrays as the verbs print them.
#pragma once

#include <string>

#include "frontend/io/array.h"
#include "frontend/io/jsonl.h"

namespace lockstep::tools {

/// Its name and type, then its values, eight per line.
void printArray(const std::string& name, const io::Array& array);
/// {"name", "dtype", "shape", "values", "file"}; `file` is where it was written to, or null.
io::Json arrayJson(const std::string& name, const io::Array& array, const io::Json& file);

}  // namespace lockstep::tools
