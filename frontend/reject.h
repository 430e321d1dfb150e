// SPDX-License-Identifier: Apache-2.0
// How the front end refuses what no line of a trace stands for.
#pragma once

#include <string>
#include <utility>

#include "ir/support/diagnostic.h"

namespace lockstep::detail {

/// Throws an Error without a place.
[[noreturn]] inline void reject(std::string code, std::string message, std::string remedy = {}) {
  throw Error({.code = std::move(code), .message = std::move(message), .where = {}, .notes = {}, .remedy = std::move(remedy)});
}

}  // namespace lockstep::detail
