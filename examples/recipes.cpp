// SPDX-License-Identifier: Apache-2.0
#include "examples/recipes.h"

#include <vector>

namespace lockstep::examples {

std::span<const Recipe> recipes() {
  static const std::vector<Recipe> all{
#define LS_RECIPE(name) name(),
#include "examples/recipes.def"
#undef LS_RECIPE
  };
  return all;
}

}  // namespace lockstep::examples
