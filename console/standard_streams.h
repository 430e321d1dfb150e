// SPDX-License-Identifier: Apache-2.0
// The three streams that a program is started with.
#pragma once

#include <optional>
#include <string>

namespace lockstep::console {

/// Fills the numbers 0 to 2 where a caller left them closed, so that no file that is opened later gets one of them and is then printed
/// into. Reading and writing there fails, as it did before.
void reserveStandardStreams();

/// Why something that was printed on stdout did not arrive; nothing when all of it did.
std::optional<std::string> flushStandardOutput();

}  // namespace lockstep::console
