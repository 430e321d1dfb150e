// SPDX-License-Identifier: Apache-2.0
// What the library decides and how long its stages take, for whoever wants to hear it (`lockstep -v`).
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace lockstep {

using Listener = void (*)(std::string_view line);

/// Of the whole process, from any thread; null: nobody listens.
void narrateTo(Listener listener);
/// Calls `line` for one line of text only if somebody listens.
void narrate(const std::function<std::string()>& line);

}  // namespace lockstep
