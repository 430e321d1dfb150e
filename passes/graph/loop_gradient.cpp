// SPDX-License-Identifier: Apache-2.0
#include "passes/graph/loop_gradient.h"

#include <map>
#include <optional>
#include <string>

#include "ir/graph/loop.h"
#include "ir/graph/op_def.h"
#include "passes/graph/grad.h"
#include "passes/graph/rewrite.h"

namespace lockstep::passes {

using namespace graph;

namespace {

bool isFloat(const Graph& graph, ValueId value) { return graph::isFloat(graph.typeOf(value).dtype); }

ValueId input(Builder& b, const std::string& name, const TensorType& type) {
  return b.make("input", {}, {{"name", name}, {"dtype", type.dtype}, {"shape", type.shape.extents()}});
}

/// The gradient of a body, and the loop that is made of it.
class Reverse {
 public:
  Reverse(Builder& outer, const Node& node, std::span<const ValueId> cotangents, const std::vector<bool>& wanted)
      : outer_(outer), node_(node), loop_(node), cotangents_(cotangents), wanted_(wanted), body_(loop_.body()) {}

  LoopGradient run() {
    takeLeaves();
    const std::vector<ValueId> wrt = seedAndTargets();
    const AppendedGradients gradients = appendGradients(body_, outputs_, seeds_, wrt);
    LoopGradient result{.operands = std::vector<ValueId>(node_.operands.size()),
                        .stopped = std::vector<bool>(node_.operands.size(), false)};
    for (size_t i = 0; i < wrt.size(); ++i) result.stopped[targets_[i]] = gradients.stops[i].valid();
    finish(gradients.values, result);
    return result;
  }

 private:
  /// The leaves of the old body become slices and captures of the new one: its carries are the cotangents.
  void takeLeaves() {
    Graph& graph = body_.mutableGraph();
    for (const Output& output : graph.outputs) old_outputs_.push_back(output.value);
    graph.outputs.clear();
    const int64_t first_read = loop_.rowRead(0);
    std::vector<ValueId> leaves;
    for (size_t i = 0; i < loop_.carries; ++i) leaves.push_back(findLeaf(graph, carryName(i)));
    for (size_t i = 0; i < loop_.slices; ++i) leaves.push_back(findLeaf(graph, sliceName(i)));
    for (size_t i = 0; i < leaves.size(); ++i) {
      const bool is_carry = i < loop_.carries;
      const ValueId stack = is_carry ? rowsOf(outer_, node_.results[i], first_read, loop_.iterations) : node_.operands[i];
      rename(leaves[i], addSlice(stack));
      stacks_[leaves[i]] = stack;
    }
    for (size_t i = 0; i < loop_.captures; ++i) {
      leaves.push_back(findLeaf(graph, captureName(i)));
      operands_.captures.push_back(node_.operands[loop_.firstCapture() + i]);
    }
    leaves_ = leaves;
  }

  void rename(ValueId leaf, const std::string& name) {
    body_.mutableGraph().nodes[body_.graph()[leaf].node.index()].attributes.set("name", name);
  }
  std::string addSlice(ValueId stack) {
    operands_.slices.push_back(stack);
    return sliceName(operands_.slices.size() - 1);
  }

  /// New leaves for what flows back; the operands whose gradients are made.
  std::vector<ValueId> seedAndTargets() {
    std::vector<ValueId> wrt;
    const auto target = [&](size_t operand) {
      wrt.push_back(leaves_[operand]);
      targets_.push_back(operand);
    };
    for (size_t i = 0; i < loop_.carries; ++i) {
      if (!isFloat(body_.graph(), leaves_[i])) continue;
      const TensorType type = body_.typeOf(leaves_[i]);
      outputs_.push_back(old_outputs_[i]);
      seeds_.push_back(input(body_, carryName(operands_.carries.size()), type));
      const bool flows = cotangents_[i].valid();
      operands_.carries.push_back(flows ? rowOf(outer_, cotangents_[i], loop_.lastRow()) : outer_.constant(0, type));
      target(i);
    }
    for (size_t i = loop_.carries; i < cotangents_.size(); ++i) {
      if (!cotangents_[i].valid()) continue;
      outputs_.push_back(old_outputs_[i]);
      seeds_.push_back(input(body_, addSlice(cotangents_[i]), body_.typeOf(old_outputs_[i])));
    }
    for (size_t i = loop_.carries; i < node_.operands.size(); ++i) {
      if (wanted_[i]) target(i);
    }
    return wrt;
  }

  void finish(const std::vector<ValueId>& gradients, LoopGradient& result) {
    size_t carried = 0;
    for (size_t i = 0; i < targets_.size() && targets_[i] < loop_.carries; ++i, ++carried) {
      ValueId total = gradients[i].valid() ? gradients[i] : body_.constant(0, body_.typeOf(leaves_[targets_[i]]));
      if (const ValueId all = cotangents_[targets_[i]]; all.valid()) {
        const ValueId read = rowsOf(outer_, all, loop_.rowRead(0), loop_.iterations);
        const std::string name = addSlice(read);
        total = body_.add(total, input(body_, name, body_.typeOf(total)));
      }
      body_.output(OutputKind::Result, carryName(i), total);
    }
    for (size_t i = carried; i < targets_.size(); ++i) {
      if (gradients[i].valid() && targets_[i] < loop_.firstCapture()) stackOf(gradients[i]);
    }
    for (size_t i = carried; i < targets_.size(); ++i) {
      if (gradients[i].valid() && targets_[i] >= loop_.firstCapture()) prepareSum(gradients[i]);
    }
    for (size_t i = 0; i < stacked_.size(); ++i) body_.output(OutputKind::Result, resultName(i), stacked_[i]);
    results_ = carried + stacked_.size() == 0
                   ? std::vector<ValueId>{}
                   : makeLoop(outer_, operands_, loop_.iterations, !loop_.reverse, removeDead(Graph(body_.graph())));
    for (size_t i = 0; i < stacked_.size(); ++i) stacks_[stacked_[i]] = results_[carried + i];
    const int64_t last = loop_.reverse ? loop_.iterations : 0;
    for (size_t i = 0; i < targets_.size(); ++i) {
      ValueId& gradient = result.operands[targets_[i]];
      if (i < carried) {
        if (wanted_[targets_[i]]) gradient = rowOf(outer_, results_[i], last);
      } else if (gradients[i].valid()) {
        gradient = targets_[i] < loop_.firstCapture() ? stack(gradients[i]) : sum(gradients[i]);
      }
    }
  }

  const Node& definition(ValueId value) const { return body_.graph().definition(value); }

  /// The same op on the whole stack, outside of the loop.
  [[nodiscard]] bool isLifted(ValueId value) const {
    const Node& node = definition(value);
    return node.op->lift != nullptr && node.operands.size() == 1 && std::holds_alternative<ViewLowering>(*node.op->lower);
  }

  /// Sees to it that there is a stack of the values that all iterations have.
  void stackOf(ValueId value) {
    if (stacks_.contains(value) || widened_.contains(value)) return;
    if (isLifted(value)) return stackOf(definition(value).operands[0]);
    if (byteSize(body_.typeOf(value).dtype) != 4) {  // stacks have elements of 32 bits, which hold fewer bits as they are
      const ValueId wide = widened_[value] = body_.make("cast", {value}, {{"dtype", DType::F32}});
      return stackOf(wide);
    }
    stacks_[value] = ValueId();
    stacked_.push_back(value);
  }
  ValueId stack(ValueId value) {
    const auto found = stacks_.find(value);
    if (found != stacks_.end()) return found->second;
    if (const auto wide = widened_.find(value); wide != widened_.end())
      return stacks_[value] = outer_.make("cast", {stack(wide->second)}, {{"dtype", body_.typeOf(value).dtype}});
    const Node node = definition(value);
    const std::vector<ValueId> operands{stack(node.operands[0])};
    return stacks_[value] = node.op->lift({outer_, node, operands, {true}, loop_.iterations});
  }

  /// The sum over all iterations: that of views and sums is made of what they read.
  [[nodiscard]] bool isProduct(ValueId value) const {
    const Node& node = definition(value);
    const auto* contract = std::get_if<ContractLowering>(&*node.op->lower);
    if (contract == nullptr || contract->sum_of_rows == nullptr) return false;
    return body_.shapeOf(node.operands[0]).rank() == 2 && body_.shapeOf(node.operands[1]).rank() == 2;
  }
  [[nodiscard]] bool isSum(ValueId value) const {
    const Node& node = definition(value);
    return node.op->lift != nullptr && node.operands.size() == 1 && stacks_.contains(node.operands[0]);
  }
  void prepareSum(ValueId value) {
    const Node& node = definition(value);
    if (isProduct(value)) {
      for (const ValueId operand : node.operands) stackOf(operand);
    } else if (isLifted(value)) {
      prepareSum(node.operands[0]);
    } else if (!isSum(value)) {
      stackOf(value);
    }
  }
  ValueId sum(ValueId value) {
    const Node node = definition(value);
    if (isProduct(value)) {
      const std::vector<ValueId> stacks{stack(node.operands[0]), stack(node.operands[1])};
      return std::get<ContractLowering>(*node.op->lower).sum_of_rows(outer_, node, stacks);
    }
    if (isLifted(value) && !stacks_.contains(value))
      return outer_.makeAll(*node.op->name, {sum(node.operands[0])}, node.attributes).front();
    return outer_.sum(stack(value), 0, false);
  }

  Builder& outer_;
  const Node& node_;
  LoopForm loop_;
  std::span<const ValueId> cotangents_;
  const std::vector<bool>& wanted_;
  Builder body_;
  LoopOperands operands_;
  std::vector<ValueId> leaves_;           // of the old body, by operand
  std::vector<ValueId> old_outputs_;      // of the old body
  std::vector<ValueId> outputs_, seeds_;  // what flows back, and the leaf that it comes from
  std::vector<size_t> targets_;           // the operands whose gradients are made; carries first
  std::vector<ValueId> stacked_;          // results of the new loop besides its carries
  std::map<ValueId, ValueId> widened_;    // f32 by value of fewer bits
  std::map<ValueId, ValueId> stacks_;     // outside of the loop, by value of the body
  std::vector<ValueId> results_;          // of the new loop
};

}  // namespace

LoopGradient loopGradient(Builder& builder, const Node& node, std::span<const ValueId> cotangents, const std::vector<bool>& wanted) {
  if (LoopForm(node).held == 0) return Reverse(builder, node, cotangents, wanted).run();
  return {.operands = std::vector<ValueId>(node.operands.size()), .stopped = wanted};
}

}  // namespace lockstep::passes
