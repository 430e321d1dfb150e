// SPDX-License-Identifier: Apache-2.0
#include "console/verbose.h"

#include <fmt/format.h>

#include "ir/support/narrate.h"

namespace lockstep::console {

void speakUp() {
  narrateTo([](std::string_view line) { fmt::print(stderr, "lockstep: {}\n", line); });
}

}  // namespace lockstep::console
