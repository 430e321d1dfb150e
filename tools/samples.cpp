// SPDX-License-Identifier: Apache-2.0
// The table of samples.
#include "tools/sample.h"

namespace lockstep::tools {

std::span<const Sample> allSamples() { return {}; }

}  // namespace lockstep::tools
