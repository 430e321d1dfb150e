// SPDX-License-Identifier: Apache-2.0
// Private to the front end: the kernel templates of shaders/, embedded when this was built and read on first use.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/kernel/module.h"
#include "ir/support/result.h"
#include "passes/pipeline.h"

namespace lockstep::detail {

/// How many read templates are kept: about 0.2 MB each, and more than the programs of a large model use.
constexpr size_t kMostTemplates = 64;

/// A template under override values, which become constants; the last kMostTemplates sets of values are not read again. Failure
/// "template.name" when there is none of the name, "wgsl.override" when it has no such override.
Result<kernel::Module> readTemplate(std::string_view name, const std::vector<std::pair<std::string, double>>& overrides);
[[nodiscard]] size_t templatesKept();
/// readTemplate, or null when no template is embedded.
passes::TemplateSource templateSource();

}  // namespace lockstep::detail
