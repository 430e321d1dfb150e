// SPDX-License-Identifier: Apache-2.0
// The main function of every sample: LOCKSTEP_RECIPE is the name of its function.
#include "examples/recipes.h"
#include "experiment/command_line.h"

int main(int argc, char** argv) { return lockstep::train(argc, argv, lockstep::examples::LOCKSTEP_RECIPE()); }
