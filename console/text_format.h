// SPDX-License-Identifier: Apache-2.0
// Numbers for people.
#pragma once

#include <cstdint>
#include <string>

namespace lockstep::console {

std::string formatBytes(uint64_t bytes);     ///< "15.2 MiB"
std::string formatDuration(double seconds);  ///< "850 µs", "12.3 ms", "4.1 s", "2 min 5 s", "3 h 12 min"

}  // namespace lockstep::console
