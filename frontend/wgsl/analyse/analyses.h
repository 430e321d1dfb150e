// SPDX-License-Identifier: Apache-2.0
// Analyses of whole checked programs. They need a program without errors and report what they find; they change nothing.
#pragma once

#include "frontend/wgsl/check/program.h"

namespace lockstep::wgsl {

/// Reports calls that give a function two ways to one variable of which one writes (WGSL, "Alias analysis"): two pointer arguments with the
/// same root, or one whose root the function also uses by its name. Code wgsl.alias.
void checkAliases(const Ast& ast, const Program& program, Reporter& reporter);

/// Reports calls that need uniform control flow, or a uniform value, and may not have it (WGSL, "Uniformity"): barriers, subgroup
/// functions, derivatives. The severity of all but barriers follows the module's diagnostic filters. Code wgsl.uniformity.
void checkUniformity(const Ast& ast, const Program& program, Reporter& reporter);

}  // namespace lockstep::wgsl
