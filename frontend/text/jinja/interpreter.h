// SPDX-License-Identifier: Apache-2.0
// Private: runs a template.
#pragma once

#include <map>
#include <string>

#include "frontend/text/jinja/syntax.h"

namespace lockstep::text::jinja {

/// The text of the template with these variables. Throws TemplateFailure with a line: also when the template takes more steps or nests its
/// macros deeper than any honest one, so that none hangs.
std::string run(const Statements& statements, const std::map<std::string, Value>& variables);

}  // namespace lockstep::text::jinja
