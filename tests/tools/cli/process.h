// SPDX-License-Identifier: Apache-2.0
// Runs the command and keeps what it printed.
#pragma once

#include <sys/wait.h>

#include <cstdio>
#include <string>

#include "frontend/io/file.h"
#include "tests/frontend/io/scratch.h"

namespace lockstep::testing {

struct Outcome {
  int status = -1;  ///< exit code; -1 when it was killed
  std::string out = {}, err = {};
};

/// `arguments` go through the shell, so quote what needs it; `input` is the file that is its stdin.
inline Outcome runTool(const ScratchDirectory& scratch, const std::string& arguments, const std::string& input = "/dev/null") {
  const std::string out = scratch / "stdout", err = scratch / "stderr";
  const int raw = std::system((std::string(LOCKSTEP_TOOL) + " " + arguments + " >" + out + " 2>" + err + " <" + input).c_str());
  Outcome outcome{.status = WIFEXITED(raw) ? WEXITSTATUS(raw) : -1};
  outcome.out = *io::readTextFile(out);
  outcome.err = *io::readTextFile(err);
  return outcome;
}

}  // namespace lockstep::testing
