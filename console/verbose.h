// SPDX-License-Identifier: Apache-2.0
// -v: what the library decides, as it does so.
#pragma once

namespace lockstep::console {

/// From now on a line on stderr for each decision and each stage: the device, the passes and their times, the pipelines, the cache.
void speakUp();

}  // namespace lockstep::console
