// SPDX-License-Identifier: Apache-2.0
// The code points of identifiers.
#pragma once

#include <cstdint>

namespace lockstep::wgsl {

/// Unicode properties; '_' is only in the second.
bool isXidStart(uint32_t c);
bool isXidContinue(uint32_t c);

}  // namespace lockstep::wgsl
