// SPDX-License-Identifier: Apache-2.0
#include "passes/schedule/row_update.h"

#include <algorithm>

#include "ir/graph/kernel_scalar.h"
#include "passes/cost.h"
#include "passes/schedule/choose_plan.h"

namespace lockstep::passes {

using kernel::Op;

namespace {

uint32_t word(int64_t value) { return static_cast<uint32_t>(value); }

/// By words, where these hold several elements.
kernel::ValueId bind(kernel::Builder& b, std::string name, const graph::TensorType& type, uint32_t binding, kernel::Access access) {
  const kernel::TypeId element = graph::isPacked(type.dtype) ? b.types().u32() : b.types().scalar(graph::memoryScalar(type.dtype));
  return b.global({.name = std::move(name),
                   .value = {},
                   .type = b.types().array(element, word(type.shape.elementCount() / graph::elementsPerWord(type.dtype))),
                   .space = kernel::AddressSpace::Storage,
                   .access = access,
                   .group = 0,
                   .binding = binding,
                   .initializer = {}});
}

}  // namespace

RowUpdate updateRows(const graph::TensorType& state, const graph::TensorType& rows, int64_t places, int64_t axis,
                     const program::DeviceProfile& profile) {
  const int64_t per_word = graph::elementsPerWord(state.dtype);  // what follows counts words
  int64_t inner = 1;
  for (size_t i = static_cast<size_t>(axis) + 1; i < rows.shape.rank(); ++i) inner *= rows.shape.extent(i);
  inner /= per_word;
  const int64_t count = rows.shape.extent(static_cast<size_t>(axis)), extent = state.shape.extent(static_cast<size_t>(axis));
  const int64_t elements = rows.shape.elementCount() / per_word;
  const auto lanes = word(std::min<int64_t>(profile.max_workgroup_invocations, cost::kLeastWorkgroup));
  RowUpdate update;
  update.groups = splitGroups((elements + lanes - 1) / lanes, profile);

  kernel::Builder b;
  const kernel::ValueId target = bind(b, "state", state, 0, kernel::Access::ReadWrite);
  const kernel::ValueId source = bind(b, "rows", rows, 1, kernel::Access::Read);
  const kernel::ValueId place = bind(b, "at", {graph::DType::I32, graph::Shape{places}}, 2, kernel::Access::Read);
  const kernel::FunctionId main = b.function("main", b.types().voidType());
  const kernel::TypeId vec3 = b.types().vector(kernel::Scalar::U32, 3);
  const kernel::ValueId group = b.parameter(main, "group_id", vec3, kernel::Builtin::WorkgroupId);
  const kernel::ValueId lane = b.parameter(main, "lane", b.types().u32(), kernel::Builtin::LocalInvocationIndex);
  b.setWorkgroupSize(main, {lanes, 1, 1});
  b.enterFunction(main);
  kernel::ValueId number = b.extract(group, 0u);
  if (update.groups[1] > 1) number = b.make(Op::Add, {number, b.make(Op::Mul, {b.extract(group, 1u), b.u32(update.groups[0])})});
  const kernel::ValueId element = b.make(Op::Add, {b.make(Op::Mul, {number, b.u32(lanes)}), lane});
  b.ifThen(b.make(Op::Lt, {element, b.u32(word(elements))}), [&] {
    const kernel::ValueId line = b.make(Op::Div, {element, b.u32(word(inner))});
    const kernel::ValueId outer = b.make(Op::Div, {line, b.u32(word(count))});
    const kernel::ValueId own = places == 1 ? b.u32(0) : b.make(Op::Div, {element, b.u32(word(elements / places))});
    const kernel::ValueId at = b.convert(b.types().u32(), b.load(b.access(place, {own})));
    // Modulo 2^32, so that a place before the first row is beyond the last one.
    const kernel::ValueId row = b.make(Op::Add, {at, b.make(Op::Rem, {line, b.u32(word(count))})});
    b.ifThen(b.make(Op::Lt, {row, b.u32(word(extent))}), [&] {
      const kernel::ValueId lines = b.make(Op::Add, {b.make(Op::Mul, {outer, b.u32(word(extent))}), row});
      const kernel::ValueId within = b.make(Op::Rem, {element, b.u32(word(inner))});
      const kernel::ValueId index = b.make(Op::Add, {b.make(Op::Mul, {lines, b.u32(word(inner))}), within});
      const kernel::ValueId value = b.load(b.access(source, {element}));
      b.store(b.access(target, {index}), value);
    });
  });
  b.returnVoid();
  update.module = b.take();
  return update;
}

}  // namespace lockstep::passes
