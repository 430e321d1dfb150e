// SPDX-License-Identifier: Apache-2.0
// strips: several elements per invocation. All values are made before the first store, so their loads do not wait for one another.
#include "passes/emit/emitters.h"

namespace lockstep::passes {

using kernel::Op;

Result<kernel::Module> emitKernel(const program::StripsPlan& plan, const EmitQuery& query) {
  kernel::Builder b;
  BodyEmitter emitter(query.body, b, query.bindings);
  const auto lanes = static_cast<uint32_t>(plan.lanes), per_lane = static_cast<uint32_t>(plan.per_lane);
  const Entry entry = beginEntry(b, query, lanes);
  const kernel::ValueId first = b.make(Op::Add, {b.make(Op::Mul, {entry.group, b.u32(lanes * per_lane)}), entry.lane});
  std::vector<kernel::ValueId> places;
  for (uint32_t i = 0; i < per_lane; ++i) places.push_back(i == 0 ? first : b.make(Op::Add, {first, b.u32(i * lanes)}));
  const auto elements = static_cast<uint32_t>(query.body.shapeOf(query.body.outputs[0].value).elementCount());
  const auto isInside = [&](kernel::ValueId place) { return b.make(Op::Lt, {place, b.u32(elements)}); };
  // Only the last workgroup asks for each element whether there is one.
  b.ifThen(
      isInside(places.back()), [&] { emitter.storeAll(places); },
      [&] {
        for (const kernel::ValueId place : places) b.ifThen(isInside(place), [&] { emitter.storeAll(place); });
      });
  return b.take();
}

}  // namespace lockstep::passes
