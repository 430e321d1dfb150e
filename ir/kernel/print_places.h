// SPDX-License-Identifier: Apache-2.0
// The printer with its map: where each part of a module stands in its text, so that the validator can point there.
#pragma once

#include <string>
#include <vector>

#include "ir/kernel/module.h"

namespace lockstep::kernel {

/// A position in a text, 1-based; line 0 means that the part is not printed.
struct Place {
  uint32_t line = 0, column = 0;
};

struct PrintedModule {
  std::string text;
  std::vector<Place> types;      ///< of structs, by type id
  std::vector<Place> globals;    ///< by index
  std::vector<Place> functions;  ///< by function id
  std::vector<std::vector<Place>> parameters;
  std::vector<Place> instructions;           ///< the mnemonic's line, by instruction id
  std::vector<std::vector<Place>> operands;  ///< by instruction id
  std::vector<Place> cases;                  ///< of a switch: by the block of the case
};

PrintedModule printWithPlaces(const Module& module, bool with_locations);

}  // namespace lockstep::kernel
