// SPDX-License-Identifier: Apache-2.0
#include "ir/support/narrate.h"

#include <atomic>

namespace lockstep {
namespace {

std::atomic<Listener> listening{nullptr};

}  // namespace

void narrateTo(Listener listener) { listening.store(listener); }

void narrate(const std::function<std::string()>& line) {
  if (const Listener listener = listening.load()) listener(line());
}

}  // namespace lockstep
