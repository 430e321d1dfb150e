// SPDX-License-Identifier: Apache-2.0
#include "passes/graph/flat_states.h"

#include "passes/graph/bind_parameters.h"

namespace lockstep::passes {

using namespace graph;

FlatState flatStateOf(Builder& b, std::string_view name, int64_t elements) {
  const ValueId leaf = flatState(b, name, elements);
  return {std::string(name), leaf, leaf};
}

ValueId slice(Builder& b, ValueId flat, int64_t offset, int64_t length) {
  if (offset == 0 && length == b.shapeOf(flat).elementCount()) return flat;
  return b.make("narrow", {flat}, {{"axis", int64_t{0}}, {"start", offset}, {"length", length}});
}

ValueId before(Builder& b, const FlatState& state, int64_t offset, int64_t length) {
  return b.reshape(slice(b, state.leaf, offset, length), rowsOf(length));
}

void write(Builder& b, FlatState& state, int64_t offset, ValueId rows) {
  const ValueId flat = b.reshape(rows, Shape{b.shapeOf(rows).elementCount()});
  state.newest = b.make("update_slice", {state.newest, flat}, {{"offset", offset}});
}

void finish(Builder& b, const FlatState& state) { b.output(OutputKind::NextState, state.name, state.newest); }

}  // namespace lockstep::passes
