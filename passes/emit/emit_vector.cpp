// SPDX-License-Identifier: Apache-2.0
// vector: an invocation has some neighbouring elements. It loads and stores them at once where they are proven to lie side by side, and
// stores whole words of packed ones.
#include "passes/emit/emitters.h"

namespace lockstep::passes {

using kernel::Op;

Result<kernel::Module> emitKernel(const program::VectorPlan& plan, const EmitQuery& query) {
  const int64_t elements = query.body.shapeOf(query.body.outputs[0].value).elementCount(), whole = elements / plan.width;
  return withVectors(query, plan.width, [&](kernel::Builder& b, BodyEmitter& emitter) {
    const auto lanes = static_cast<uint32_t>(plan.lanes);
    const Entry entry = beginEntry(b, query, lanes);
    const kernel::ValueId place = b.make(Op::Add, {b.make(Op::Mul, {entry.group, b.u32(lanes)}), entry.lane});
    const auto storeWhole = [&] { emitter.storeVector(place, plan.width, plan.width); };
    const auto storeRest = [&] { emitter.storeVector(place, plan.width, elements % plan.width); };
    const auto isBelow = [&](int64_t count) { return b.make(Op::Lt, {place, b.u32(static_cast<uint32_t>(count))}); };
    const auto isLast = [&] { return b.make(Op::Eq, {place, b.u32(static_cast<uint32_t>(whole))}); };
    if (elements % plan.width == 0) {
      b.ifThen(isBelow(whole), storeWhole);
    } else if (whole == 0) {
      b.ifThen(isLast(), storeRest);
    } else {
      b.ifThen(isBelow(whole), storeWhole, [&] { b.ifThen(isLast(), storeRest); });
    }
  });
}

}  // namespace lockstep::passes
