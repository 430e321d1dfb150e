// SPDX-License-Identifier: Apache-2.0
// map: one invocation per element. All values are made before the first store, because a result may share an operand's bytes.
#include "passes/emit/emitters.h"

namespace lockstep::passes {

using kernel::Op;

Result<kernel::Module> emitKernel(const program::MapPlan& plan, const EmitQuery& query) {
  const graph::Graph& body = query.body;
  kernel::Builder b;
  BodyEmitter emitter(body, b, query.bindings);
  auto lanes = static_cast<uint32_t>(plan.lanes);
  Entry entry = beginEntry(b, query, lanes);
  kernel::ValueId index = b.make(Op::Add, {b.make(Op::Mul, {entry.group, b.u32(lanes)}), entry.lane});
  auto elements = static_cast<uint32_t>(body.shapeOf(body.outputs[0].value).elementCount());
  b.ifThen(b.make(Op::Lt, {index, b.u32(elements)}), [&] { emitter.storeAll(index); });
  return b.take();
}

}  // namespace lockstep::passes
