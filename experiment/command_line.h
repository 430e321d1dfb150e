// SPDX-License-Identifier: Apache-2.0
// A recipe as a program: `lockstep train` and the main function of a program of one's own.
#pragma once

#include <span>
#include <string>

#include "experiment/experiment.h"
#include "ir/support/result.h"

namespace lockstep {

namespace experiment {

/// By name or alias; the failure suggests the nearest one.
Result<const Recipe*> findRecipe(std::span<const Recipe> recipes, const std::string& name);

/// Error "usage.data" for the --data of a recipe that makes its own; the remedy names those that take some.
Status checkData(std::span<const Recipe> recipes, const Recipe& recipe, const std::string& data);

/// Options as `lockstep train --help` lists them; of several recipes one is named. `command` is what comes before the arguments in help and
/// errors ("lockstep train"), `started_as` what was typed there ("build/dev/tools/lockstep train").
Result<ExitCode> trainCommand(std::span<const Recipe> recipes, std::span<const std::string> arguments, const std::string& command,
                              const std::string& started_as);

}  // namespace experiment

/// The whole of main(): trains as the arguments say, prints errors on stderr, gives the exit code. Ctrl-C, SIGTERM, SIGHUP, SIGPIPE and
/// SIGXFSZ stop the run cleanly: what was reached is written.
int train(int argc, char** argv, const Recipe& recipe);

}  // namespace lockstep
