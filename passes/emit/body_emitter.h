// SPDX-License-Identifier: Apache-2.0
// Elemental emission: the kernel value of any graph value of a group's body at any position. Chains fuse because operands are asked for
// recursively; (value, position) pairs are remembered, so shared sub-expressions are emitted once per scope.
#pragma once

#include <array>
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "ir/graph/kernel_scalar.h"
#include "ir/graph/op_def.h"
#include "ir/kernel/builder.h"

namespace lockstep::passes {

using PositionId = uint32_t;

/// Which bindings each input and each result of the body uses, in the order of their elements: one, or the windows of a tensor that is too
/// large for one. A result that shares an input's bytes has its bindings.
struct BodyBindings {
  std::vector<std::vector<uint32_t>> inputs;
  std::vector<std::vector<uint32_t>> results;
  int64_t window = 0;  ///< words of every window but a last one; a power of two
};

class BodyEmitter {
 public:
  /// Declares the bindings as storage variables of group 0 in the builder's module.
  BodyEmitter(const graph::Graph& body, kernel::Builder& builder, const BodyBindings& bindings);

  kernel::Builder& builder() { return builder_; }
  const graph::Graph& body() { return body_; }

  // Positions: where in a tensor of a shape. Axes are derived on demand, so unused ones cost nothing.
  PositionId flat(const graph::Shape& shape, kernel::ValueId linear);
  PositionId atAxes(const graph::Shape& shape, std::vector<kernel::ValueId> axes, bool proven = true);
  /// Element `column` of row `row`, where rows are the trailing `columns` elements of the shape.
  PositionId inRow(const graph::Shape& shape, kernel::ValueId row, kernel::ValueId column, int64_t columns);
  /// Position of a view's operand.
  PositionId through(const graph::IndexMap& map, const graph::Shape& source, PositionId position);
  kernel::ValueId axis(PositionId position, size_t axis);
  kernel::ValueId linear(PositionId position);

  kernel::ValueId value(graph::ValueId value, PositionId position);
  /// From now on (until the scope ends) `value` is this kernel value at every position: a row's reduction, a contraction's sum.
  void define(graph::ValueId value, kernel::ValueId emitted);
  /// Stores result `index` of the body.
  void store(size_t index, PositionId position, kernel::ValueId emitted);
  /// Every result at its element `linear`, in a scope of its own. All values are computed before any is stored.
  void storeAll(kernel::ValueId linear) { storeAll(std::span(&linear, 1)); }
  /// The same at several elements: all of their values come before the first store.
  void storeAll(std::span<const kernel::ValueId> linears);
  /// Every result at the elements from width * place on, `count` of them, in a scope of its own. The words of packed results are whole:
  /// past the last element they are 0. `width` is a multiple of the elements per word of every result.
  void storeVector(kernel::ValueId place, int64_t width, int64_t count);

  /// What was emitted since pushScope is not visible after popScope (a loop body, an if arm).
  void pushScope() { scopes_.emplace_back(); }
  void popScope() { scopes_.pop_back(); }

 private:
  /// Where the model says so; unknown where it does not.
  [[nodiscard]] Location locationOf(graph::ValueId value) const;
  struct Position {
    graph::Shape shape;
    kernel::ValueId linear;
    kernel::ValueId row, column;  // with `columns`
    int64_t columns = 0;
    bool proven = true;  // in range by construction
    // Of a view's operand: where in it an index of position `root` points. Kept as a map, so that what a chain of views divides and
    // multiplies again is never emitted.
    std::optional<PositionId> root = {};
    graph::IndexMap map = {};
  };
  struct Scope {
    std::map<std::pair<graph::ValueId, PositionId>, kernel::ValueId> values;
    std::map<graph::ValueId, kernel::ValueId> defined;
    std::map<std::pair<PositionId, size_t>, kernel::ValueId> axes;
    std::map<PositionId, kernel::ValueId> linears;
    std::map<std::pair<graph::ValueId, kernel::ValueId>, kernel::ValueId> words;  // of packed inputs, by the index of the word
    std::map<std::array<int64_t, 3>, kernel::ValueId> word_indices;               // by place, words per place and number
  };
  class Element;

  /// The storage variables of one tensor.
  using Windows = std::vector<kernel::ValueId>;
  /// Where a linear index is known to lie: element `lane` of those from width * place on.
  struct Neighbour {
    kernel::ValueId place;
    int64_t width = 1, lane = 0;
  };
  /// The word of an element of packed ones, and its place in it.
  struct WordPlace {
    kernel::ValueId word, place;
  };
  kernel::ValueId packed(graph::DType dtype, std::span<const kernel::ValueId> elements);
  WordPlace wordPlace(kernel::ValueId linear, int64_t per_word);
  kernel::ValueId load(graph::ValueId input, kernel::ValueId linear, bool proven);
  kernel::ValueId loadPacked(graph::ValueId input, kernel::ValueId linear, bool proven);
  /// Element `index` of the windows as memory has it; of packed ones the word of this number.
  kernel::ValueId loadWord(graph::ValueId input, kernel::ValueId index, bool proven);
  /// Calls `use` with the variable that holds word `index` and its index there, once in each arm that chooses among several windows.
  void inWindow(const Windows& windows, kernel::ValueId index, const std::function<void(kernel::ValueId, kernel::ValueId)>& use);
  /// The result of a view with guards: its operand's element where they hold, its fill elsewhere.
  kernel::ValueId guarded(graph::ValueId value, const graph::IndexMap& map, PositionId position);
  kernel::ValueId expression(const graph::IndexExpr& expr, PositionId position);
  kernel::ValueId quotientRemainder(kernel::ValueId value, int64_t divide, int64_t modulo);
  PositionId newPosition(Position position);

  const graph::Graph& body_;
  kernel::Builder& builder_;
  std::vector<Windows> input_windows_, result_windows_;
  int64_t window_;
  std::map<graph::ValueId, size_t> inputs_;
  std::vector<Position> positions_;
  std::map<std::pair<kernel::ValueId, std::vector<int64_t>>, PositionId> flat_positions_;
  std::map<kernel::ValueId, Neighbour> neighbours_;  // by linear index
  std::vector<Scope> scopes_{1};
};

}  // namespace lockstep::passes
