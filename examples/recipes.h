// SPDX-License-Identifier: Apache-2.0
// The samples as recipes: one function and one file each.
#pragma once

#include <span>

#include "experiment/experiment.h"

namespace lockstep::examples {

#define LS_RECIPE(name) Recipe name();
#include "examples/recipes.def"
#undef LS_RECIPE

/// In the order of recipes.def; the first is the default of `./dev train`.
std::span<const Recipe> recipes();

}  // namespace lockstep::examples
