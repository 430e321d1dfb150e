// SPDX-License-Identifier: Apache-2.0
#include "passes/graph/whole_word_updates.h"

#include <algorithm>
#include <map>
#include <vector>

#include "ir/graph/op_def.h"
#include "passes/graph/rewrite.h"

namespace lockstep::passes {

using namespace graph;

namespace {

/// At a place that the node names. Rows at a place that is a value are whole words.
bool isUpdate(const Node& node) {
  const auto* update = std::get_if<AliasUpdate>(&*node.op->alias);
  return update != nullptr && !update->at_index;
}

int64_t offsetOf(const Node& update) { return update.attributes.get<int64_t>("offset"); }

/// Elements from `begin` to `end` of a state in row-major order.
struct Elements {
  int64_t begin = 0, end = 0;
  [[nodiscard]] int64_t count() const { return end - begin; }
};

Elements writtenBy(const Graph& graph, const Node& update) {
  return {offsetOf(update), offsetOf(update) + graph.shapeOf(update.operands[1]).elementCount()};
}

/// All updates of one state.
struct Updates {
  Elements written;  ///< by any of them, in whole words
  bool is_split = false;
};

class WholeWords {
 public:
  explicit WholeWords(const Graph& in) : in_(in), rewriter_(in) {
    for (const NodeId id : in.body().nodes) {
      if (isUpdate(in[id])) note(in[id]);
    }
  }

  Graph run() {
    for (const NodeId id : in_.body().nodes) {
      const Node& node = in_[id];
      if (isUpdate(node) && isSplit(node)) {
        choose(node);
      } else {
        rewriter_.copy(node);
      }
    }
    for (const Output& output : in_.outputs) addOutput(output);
    return removeDead(rewriter_.take());
  }

 private:
  [[nodiscard]] ValueId stateOf(const Node& update) const {
    const auto found = states_.find(update.operands[0]);
    return found == states_.end() ? update.operands[0] : found->second;
  }
  [[nodiscard]] bool isSplit(const Node& update) const { return updates_.at(stateOf(update)).is_split; }

  void note(const Node& update) {
    const ValueId state = stateOf(update);
    states_[update.results[0]] = state;
    const int64_t per_word = elementsPerWord(in_.typeOf(state).dtype), room = in_.shapeOf(state).elementCount();
    const Elements own = writtenBy(in_, update);
    const Elements words{own.begin / per_word * per_word, std::min(room, (own.end + per_word - 1) / per_word * per_word)};
    const auto [known, is_first] = updates_.try_emplace(state, Updates{.written = words});
    Updates& all = known->second;
    if (!is_first) all.written = {std::min(all.written.begin, words.begin), std::max(all.written.end, words.end)};
    all.is_split = all.is_split || !writesWholeWords(in_, update);
  }

  /// The elements of a version that any update writes, flat.
  ValueId windowOf(ValueId version, const Elements& window) {
    if (const auto found = windows_.find(version); found != windows_.end()) return found->second;
    Builder& b = rewriter_.builder();
    const int64_t room = in_.shapeOf(version).elementCount();
    return windows_[version] = narrowed(b.reshape(rewriter_[version], Shape{room}), window);
  }

  ValueId narrowed(ValueId flat, const Elements& part) {
    Builder& b = rewriter_.builder();
    if (part.count() == b.shapeOf(flat).elementCount()) return flat;
    return b.make("narrow", {flat}, {{"axis", int64_t{0}}, {"start", part.begin}, {"length", part.count()}});
  }

  ValueId padded(ValueId flat, const Elements& own, const Elements& window) {
    const int64_t before = own.begin - window.begin, after = window.end - own.end;
    return rewriter_.builder().make("pad", {flat}, {{"axis", int64_t{0}}, {"before", before}, {"after", after}, {"value", 0.0}});
  }

  /// The update's elements where it writes, the earlier version's elsewhere.
  void choose(const Node& update) {
    Builder& b = rewriter_.builder();
    b.setLocation(update.location);
    const Elements own = writtenBy(in_, update), window = updates_.at(stateOf(update)).written;
    const ValueId old = windowOf(update.operands[0], window);
    const ValueId value = b.reshape(rewriter_[update.operands[1]], Shape{own.count()});
    const ValueId is_written = padded(b.constant(1, TensorType{DType::Bool, Shape{own.count()}}), own, window);
    const ValueId chosen = b.make("where", {is_written, padded(value, own, window), old});
    windows_[update.results[0]] = chosen;
    rewriter_.set(update.results[0], versionOf(update, chosen));
  }

  /// The whole state after an update, as a value of its own: for whoever reads it in the same step.
  ValueId versionOf(const Node& update, ValueId chosen) {
    Builder& b = rewriter_.builder();
    const ValueId state = stateOf(update);
    const Shape& shape = in_.shapeOf(state);
    const Elements window = updates_.at(state).written, all{0, shape.elementCount()};
    if (window.count() == all.count()) return b.reshape(chosen, shape);
    const ValueId is_written = padded(b.constant(1, TensorType{DType::Bool, Shape{window.count()}}), window, all);
    const ValueId leaf = b.reshape(rewriter_[state], Shape{all.count()});
    return b.reshape(b.make("where", {is_written, padded(chosen, window, all), leaf}), shape);
  }

  void addOutput(const Output& output) {
    const Node& maker = in_.definition(output.value);
    if (output.kind != OutputKind::NextState || !isUpdate(maker) || !isSplit(maker)) return rewriter_.copyOutput(output);
    const ValueId state = stateOf(maker);
    Builder& b = rewriter_.builder();
    b.setLocation(maker.location);
    b.output(output.kind, output.name,
             b.make("update_slice", {rewriter_[state], windows_.at(output.value)}, {{"offset", updates_.at(state).written.begin}}));
  }

  const Graph& in_;
  Rewriter rewriter_;
  std::map<ValueId, ValueId> states_;   // by version: what its first update was of
  std::map<ValueId, Updates> updates_;  // by state
  std::map<ValueId, ValueId> windows_;  // by version
};

}  // namespace

bool writesWholeWords(const Graph& graph, const Node& update) {
  const ValueId state = update.operands[0];
  const int64_t per_word = elementsPerWord(graph.typeOf(state).dtype);
  const Elements own = writtenBy(graph, update);
  return own.begin % per_word == 0 && (own.end % per_word == 0 || own.end == graph.shapeOf(state).elementCount());
}

Graph updateWholeWords(const Graph& graph) {
  const bool is_whole =
      std::ranges::all_of(graph.body().nodes, [&](NodeId id) { return !isUpdate(graph[id]) || writesWholeWords(graph, graph[id]); });
  return is_whole ? graph : WholeWords(graph).run();
}

}  // namespace lockstep::passes
