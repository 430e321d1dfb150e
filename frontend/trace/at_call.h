// SPDX-License-Identifier: Apache-2.0
// Private to the front end: errors of functions that record nothing in a trace name the user's call all the same.
#pragma once

#include <filesystem>
#include <utility>

#include "ir/support/diagnostic.h"
#include "ir/support/where.h"

namespace lockstep::detail {

Location toLocation(const Where& where);

/// Throws the error again. Its diagnostics without a place get that of the call; those about a file keep the file and get the call as a
/// note. `declared`, if known, is where the inputs of a program were declared: a note of errors "batch.*".
[[noreturn]] void throwAt(const Error& error, const Location& call, const Location& declared);

/// The result of `function`; an Error that it throws names the user's call.
template <class Function>
decltype(auto) atCall(const Where& where, Function&& function) {
  try {
    return std::forward<Function>(function)();
  } catch (const Error& error) {
    throwAt(error, toLocation(where), {});
  }
}

/// The same for a call that gets a batch of a program whose inputs were declared at `declared`.
template <class Function>
decltype(auto) atCall(const Where& where, const Where& declared, Function&& function) {
  try {
    return std::forward<Function>(function)();
  } catch (const Error& error) {
    throwAt(error, toLocation(where), toLocation(declared));
  }
}

/// The same for what a file holds: an error without a place names the file.
template <class Function>
decltype(auto) inFile(const std::filesystem::path& path, Function&& function) {
  try {
    return std::forward<Function>(function)();
  } catch (const Error& error) {
    throwAt(error, {.file = path.string()}, {});
  }
}

}  // namespace lockstep::detail
