// SPDX-License-Identifier: Apache-2.0
// For programs that use an installed Lockstep: recipes, and train(), which is the whole of a main function.
#pragma once

#include "experiment/command_line.h"
#include "experiment/experiment.h"
#include "frontend/data/loader.h"
#include "frontend/data/random.h"
