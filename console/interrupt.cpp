// SPDX-License-Identifier: Apache-2.0
#include "console/interrupt.h"

#include <signal.h>

namespace lockstep::console {
namespace {

// A signal handler can reach nothing else.
std::atomic<bool> interrupted{false};

void onInterrupt(int signal) {
  interrupted.store(true);
  ::signal(signal, SIG_DFL);
}

/// A pipe without a reader and a file beyond the limit send a signal with every write; the writes that save what was reached come after the
/// first.
void onFailedWrite(int) { interrupted.store(true); }

struct Row {
  int signal;
  void (*handler)(int);
  bool may_be_ignored;  ///< whoever started us with it ignored (nohup) meant it
};
constexpr Row kRows[] = {{SIGINT, onInterrupt, false},
                         {SIGTERM, onInterrupt, false},
                         {SIGHUP, onInterrupt, true},
                         {SIGPIPE, onFailedWrite, true},
                         {SIGXFSZ, onFailedWrite, true}};

}  // namespace

const std::atomic<bool>& catchInterrupts() {
  for (const Row& row : kRows) {
    struct sigaction action{}, before{};
    action.sa_handler = row.handler;
    ::sigaction(row.signal, nullptr, &before);
    if (!row.may_be_ignored || before.sa_handler != SIG_IGN) ::sigaction(row.signal, &action, nullptr);
  }
  return interrupted;
}

}  // namespace lockstep::console
