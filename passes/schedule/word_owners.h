// SPDX-License-Identifier: Apache-2.0
// Who may store packed elements: a word has several of them, and only one invocation may write it.
#pragma once

#include "passes/schedule/choose_plan.h"

namespace lockstep::passes {

/// Whether the plan of the work has whole words of this packed result in one invocation: maps always, others where their kernels have as
/// many neighbours in one invocation, or bring them together. packStores sees to all others.
bool ownsWords(const PlanQuery& query, size_t result);

}  // namespace lockstep::passes
