// SPDX-License-Identifier: Apache-2.0
// What the templates of contractions have in common: their extents, and the hook that stores.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "passes/emit/emitters.h"
#include "passes/schedule/seed_nodes.h"

namespace lockstep::passes {

/// The overrides that every one of them has.
std::vector<std::pair<std::string, double>> extentOverrides(const graph::ContractShape& shape);

/// The hook that stores `run` neighbours along n: 1, 2 or 4.
std::string_view storeOf(int64_t run);

/// Fills it in. Words and vectors of the results are stored whole.
void storeHook(kernel::Builder& b, BodyEmitter& emitter, const ContractNode& contract, int64_t run);

/// The hook store_quads, which stores four quads along n: what is fused into the stores is loaded for all of them before the first store.
void storeQuadsHook(kernel::Builder& b, BodyEmitter& emitter, const ContractNode& contract);

/// The template whose operands are read by quads.
Result<kernel::Module> emitQuads(const program::TemplatePlan& plan, const EmitQuery& query);

}  // namespace lockstep::passes
