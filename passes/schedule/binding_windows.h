// SPDX-License-Identifier: Apache-2.0
// Tensors larger than a device binds at once: a kernel that cannot run in slices binds them as several windows and picks the right one for
// each access.
#pragma once

#include <vector>

#include "ir/program/program.h"

namespace lockstep::passes {

/// Words of all windows but the last one: a power of two, so that the window and the place in it are a shift and a mask.
int64_t windowWords(const program::DeviceProfile& profile);

/// The windows of a range, in order; the range itself where one is enough.
std::vector<program::Range> windowsOf(const program::Range& range, const program::DeviceProfile& profile);

/// The bindings that emit makes of those of a symbolic kernel: windows of operands, then those of results that are not an operand's bytes.
size_t countBindings(const std::vector<program::Range>& ranges, size_t inputs, const program::DeviceProfile& profile);

}  // namespace lockstep::passes
