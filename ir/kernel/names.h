// SPDX-License-Identifier: Apache-2.0
// The names that a module's text uses: hints made plain and unique, numbers for the rest. Shared by the printer and `canonical`.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ir/kernel/module.h"

namespace lockstep::kernel {

/// Texts without the sigil, by id; what the text never names has an empty one. Numbers name what has no hint.
struct Names {
  std::vector<std::string> values;  ///< variables, parameters and results
  std::vector<std::string> functions;
  std::vector<std::string> types;  ///< structs
  std::vector<TypeId> structs;     ///< used ones, in print order: parts before wholes
};

/// Tolerates invalid modules: what cannot be reached gets no name.
Names nameModule(const Module& module);

/// A name that the reader accepts: letters, digits, '_' and '.', not starting with a digit; empty stays empty.
std::string plainName(std::string_view name);
/// A member's name in the text; "_" for an empty one.
std::string memberName(std::string_view name);
/// True for a name that only stands for a missing hint.
bool isNumber(std::string_view name);

}  // namespace lockstep::kernel
