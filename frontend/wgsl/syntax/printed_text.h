// SPDX-License-Identifier: Apache-2.0
// The texts and names of `print("text", a, "name =", b)`.
#pragma once

#include <string>
#include <string_view>

namespace lockstep::wgsl {

// In all of them line breaks and other control characters become blanks.

/// What stands between the quotes of a text; \" and \\ are one character.
std::string unquoted(std::string_view text);
/// As it stands in WGSL, with quotes.
std::string quotedText(std::string_view content);
/// Whether a text (with its quotes) names the value after it: "total =".
bool isPrintedName(std::string_view text);
/// The name that a print gives to an expression: the expression as it is written, on one line and not too long; empty for a literal.
std::string printedName(std::string_view expression);

}  // namespace lockstep::wgsl
