// SPDX-License-Identifier: Apache-2.0
#include "examples/recipes.h"
#include "experiment/command_line.h"
#include "tools/verb.h"

namespace lockstep::tools {

Result<ExitCode> trainVerb(Arguments arguments) {
  return experiment::trainCommand(examples::recipes(), arguments, "lockstep train", startedAs() + " train");
}

}  // namespace lockstep::tools
