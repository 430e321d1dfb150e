// SPDX-License-Identifier: Apache-2.0
// Private to the front end: what to do about an op's rule that does not hold, where the one who noticed does not say.
#pragma once

#include <string>
#include <string_view>

namespace lockstep::detail {

/// For a code "<op>.<label>" the usual way out, or else the rule itself in words; "" for other codes.
std::string remedyFor(std::string_view code);

}  // namespace lockstep::detail
