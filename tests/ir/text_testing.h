// SPDX-License-Identifier: Apache-2.0
// What the tests of the texts share.
#pragma once

#include <random>
#include <string>

#include "ir/support/result.h"

namespace lockstep {

/// The file of tests/ir/data; an empty text when there is none.
std::string readData(const std::string& name);
/// One to four random edits: bytes and words changed, lines swapped, doubled or dropped.
std::string mutate(std::string text, std::mt19937& random);
/// True when one of the diagnostics has this code (and, unless 0, this line).
bool reports(const Failure& failure, const std::string& code, uint32_t line = 0);
/// The number of the first line that holds `part`; 0 when none does.
uint32_t lineOf(const std::string& text, const std::string& part);
/// `text` with the first `from` replaced by `to`; a test that asks for what is not there fails.
std::string replaced(std::string text, const std::string& from, const std::string& to);

}  // namespace lockstep
