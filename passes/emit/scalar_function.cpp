// SPDX-License-Identifier: Apache-2.0
#include "passes/emit/scalar_function.h"

#include <map>

#include "ir/graph/op_def.h"

namespace lockstep::passes {

using namespace graph;

namespace {

/// An operation of the function: its operands are values, wherever they are.
class ScalarElement : public ElementEmitter {
 public:
  ScalarElement(kernel::Builder& builder, const Graph& function, const Node& node, const std::map<ValueId, kernel::ValueId>& values)
      : builder_(builder), function_(function), node_(node), values_(values) {}
  kernel::Builder& builder() override { return builder_; }
  const Graph& graph() override { return function_; }
  const Node& node() override { return node_; }
  std::span<const kernel::ValueId> index() override { return {}; }
  uint32_t width() override { return 1; }
  kernel::ValueId operand(size_t i) override { return values_.at(node_.operands[i]); }
  kernel::ValueId operandAt(size_t i, std::vector<kernel::ValueId>) override { return operand(i); }

 private:
  kernel::Builder& builder_;
  const Graph& function_;
  const Node& node_;
  const std::map<ValueId, kernel::ValueId>& values_;
};

}  // namespace

std::vector<kernel::ValueId> emitScalars(kernel::Builder& b, const Graph& function, std::span<const kernel::ValueId> inputs) {
  std::map<ValueId, kernel::ValueId> values;
  size_t next = 0;
  for (const NodeId id : function.body().nodes) {
    const Node& node = function[id];
    if (leafKind(node) == LeafKind::Input) {
      values.emplace(node.results[0], inputs[next++]);
      continue;
    }
    ScalarElement element(b, function, node, values);
    const kernel::ValueId value = std::get<ElementLowering>(*node.op->lower).emit(element);
    values.emplace(node.results[0], value);
  }
  std::vector<kernel::ValueId> results;
  for (const Output& output : function.outputs) results.push_back(values.at(output.value));
  return results;
}

}  // namespace lockstep::passes
