// SPDX-License-Identifier: Apache-2.0
// Letters of identifiers (Unicode Standard Annex 31).
#pragma once

#include <cstdint>

namespace lockstep::wgsl {

/// Has the property XID_Start.
bool isXidStart(uint32_t code_point);
/// Has the property XID_Continue.
bool isXidContinue(uint32_t code_point);

}  // namespace lockstep::wgsl
