// SPDX-License-Identifier: Apache-2.0
// Hooks of the templates of shaders/: functions without a body of their own, which emission gives one.
#pragma once

#include <set>
#include <string_view>
#include <vector>

#include "passes/emit/emitters.h"

namespace lockstep::passes {

/// The statements of the largest tile of any template, and of a block of rows and steps where arrays stand for registers.
inline constexpr size_t kUnrolledStream = 1024, kUnrolledTile = 4096, kUnrolledRegisters = 16384, kUnrolledQuads = 65536;
/// Of products by matrix units: all inner loops, and never the one over the inner axis, whose kernel no cache would hold.
inline constexpr size_t kUnrolledMatrices = 8192;
/// Of integer dot products: all inner loops, and not the one over the words of a long row.
inline constexpr size_t kUnrolledDigits = 4096;

/// Gives the function `name` of a template a new, empty body and enters it; its parameters by order.
std::vector<kernel::ValueId> openHook(kernel::Builder& builder, std::string_view name);

/// The place in a result of the body that shows the element `here` of `space`.
PositionId placeInOutput(BodyEmitter& emitter, size_t output, const graph::Shape& space, PositionId here);
/// Computes all results of the body there, and only then stores them: one may lie where an operand was.
void storeOutputs(BodyEmitter& emitter, const graph::Shape& space, PositionId here);

/// Fills in the hook that gives the flat number of a workgroup.
void fillWorkgroupIndex(kernel::Builder& builder, const EmitQuery& query);

/// What `fill` makes of a template: with its loops as they are where the device's rounds allow that, else with those of a constant number
/// of rounds dissolved first, so that only the outer ones are left, whatever the hooks grow to.
Result<kernel::Module> withinRounds(const EmitQuery& query, const std::function<Result<kernel::Module>(bool unrolled)>& fill);

/// What `fill` makes of a template with vectors of `width` elements bound. It gives the bindings of which some element turned out to be
/// read alone; those are bound by elements, and the template is filled once more.
Result<kernel::Module> withVectorBindings(
    const EmitQuery& query, int64_t width,
    const std::function<Result<kernel::Module>(const BodyBindings& bindings, std::set<uint32_t>& by_element)>& fill);

}  // namespace lockstep::passes
