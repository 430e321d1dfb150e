// SPDX-License-Identifier: Apache-2.0
// Calls become the bodies of the functions that they call; arguments take the place of parameters.
#pragma once

#include <vector>

#include "ir/kernel/module.h"

namespace lockstep::kernel {

/// For the kernel passes: every call of a function whose only return is its last instruction. Functions that nobody calls afterwards
/// disappear, entry points stay. A call stays when its callee returns from inside, or when the module would grow beyond what validation and
/// backends take.
Module inlineCalls(Module module);

struct InlinedModule {
  Module module;
  /// For each instruction of the module the one that it is a copy of, by its place in the module before; itself where it is none.
  std::vector<InstructionId> sources;
};
/// For backends: the first entry point alone, without any call. A callee that returns from inside becomes a `switch` with one case, which
/// its returns leave by `break`; where a loop or another switch is around a return, a variable says after each of them that it was left for
/// good. checkInlinedSize() tells beforehand how large the entry point becomes.
InlinedModule inlineAllCalls(const Module& module);

/// Whether the function returns anywhere but at its end.
bool returnsFromInside(const Module& module, const Function& function);

}  // namespace lockstep::kernel
