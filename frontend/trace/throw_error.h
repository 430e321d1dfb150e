// SPDX-License-Identifier: Apache-2.0
// How the front end refuses what no line of a trace stands for.
#pragma once

#include <string>
#include <utility>

#include "frontend/trace/at_call.h"
#include "ir/support/diagnostic.h"
#include "ir/support/where.h"

namespace lockstep::detail {

/// Throws an Error without a place; atCall() gives it that of the user's call.
[[noreturn]] inline void reject(std::string code, std::string message, std::string remedy = {}) {
  throw Error({.code = std::move(code), .message = std::move(message), .where = {}, .notes = {}, .remedy = std::move(remedy)});
}

/// The same at a place.
[[noreturn]] inline void rejectAt(const Where& where, std::string code, std::string message, std::string remedy = {}) {
  throw Error(
      {.code = std::move(code), .message = std::move(message), .where = toLocation(where), .notes = {}, .remedy = std::move(remedy)});
}

}  // namespace lockstep::detail
