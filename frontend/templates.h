// SPDX-License-Identifier: Apache-2.0
// Private to the front end: the kernel templates of shaders/, embedded when this was built and read on first use.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/kernel/module.h"
#include "ir/support/result.h"
#include "passes/pipeline.h"

namespace lockstep::detail {

/// A template under override values, which become constants; read once for each set of values. Failure "template.name" when there is
/// none of the name, "wgsl.override" when it has no such override.
Result<kernel::Module> readTemplate(std::string_view name, const std::vector<std::pair<std::string, double>>& overrides);
/// readTemplate, or null when no template is embedded.
passes::TemplateSource templateSource();

}  // namespace lockstep::detail
