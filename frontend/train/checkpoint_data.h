// SPDX-License-Identifier: Apache-2.0
// What a program keeps in a checkpoint besides the trainer's own state.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "ir/support/variant.h"

namespace lockstep {

namespace io {
struct TensorFile;
}

/// The caller's place in its data: {{"epoch", 3}, {"file", "b.txt"}}. The trainer only stores it.
using DataCursor = std::map<std::string, Variant<int64_t, std::string>, std::less<>>;

}  // namespace lockstep
