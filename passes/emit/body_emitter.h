// SPDX-License-Identifier: Apache-2.0
// Elemental emission: the kernel value of any graph value of a group's body at any position. Chains fuse because operands are asked for
// recursively; (value, position) pairs are remembered, so shared sub-expressions are emitted once per scope.
#pragma once

#include <array>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "ir/graph/kernel_scalar.h"
#include "ir/graph/op_def.h"
#include "ir/kernel/builder.h"
#include "passes/fuse/lanes.h"

namespace lockstep::passes {

using PositionId = uint32_t;

/// Which bindings each input and each result of the body uses, in the order of their elements: one, or the windows of a tensor that is too
/// large for one. A result that shares an input's bytes has its bindings.
struct BodyBindings {
  std::vector<std::vector<uint32_t>> inputs;
  std::vector<std::vector<uint32_t>> results;
  int64_t window = 0;  ///< words of every window but a last one; a power of two
  /// Elements that invocations read and write side by side: arrays of vectors of so many are bound, where a tensor is whole ones.
  int64_t width = 1;
  std::set<uint32_t> scalars = {};  ///< bindings that are arrays of single words all the same
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
  /// The numbers from width * place on, `count` of them, which is at most `width`. What is loaded at all of them is loaded at once, where
  /// its place follows from them.
  std::vector<kernel::ValueId> neighbours(kernel::ValueId place, int64_t width, int64_t count);
  /// Element `column` of row `row`, where rows are the trailing `columns` elements of the shape.
  PositionId inRow(const graph::Shape& shape, kernel::ValueId row, kernel::ValueId column, int64_t columns);
  /// Position of a view's operand.
  PositionId through(const graph::IndexMap& map, const graph::Shape& source, PositionId position);
  kernel::ValueId axis(PositionId position, size_t axis);
  kernel::ValueId linear(PositionId position);
  /// Whether the position is in range by construction. One that an op computes may not be.
  [[nodiscard]] bool isProven(PositionId position) const { return positions_[position].proven; }

  kernel::ValueId value(graph::ValueId value, PositionId position);
  /// From now on (until the scope ends) `value` is this kernel value at every position: a row's reduction, a contraction's sum.
  void define(graph::ValueId value, kernel::ValueId emitted);
  /// From now on elements of `value` are what `load` gives for their positions: of a value that lies in workgroup memory.
  void keep(graph::ValueId value, std::function<kernel::ValueId(PositionId)> load) { kept_[value] = std::move(load); }
  /// Stores result `index` of the body.
  void store(size_t index, PositionId position, kernel::ValueId emitted);
  /// Stores `values` of result `index`, which are those of neighbours from number `first` on.
  void storeFrom(size_t index, kernel::ValueId first, std::span<const kernel::ValueId> values);
  /// Results `which` at neighbouring places, of which each one's number gives the position: all values, then the stores.
  void storeNeighbours(std::span<const size_t> which, std::span<const kernel::ValueId> numbers,
                       const std::function<PositionId(const graph::Shape&, kernel::ValueId)>& at);
  /// Word `number` of packed result `index`, which has these elements.
  void storeWord(size_t index, kernel::ValueId number, std::span<const kernel::ValueId> elements);
  /// Every result at its element `linear`, in a scope of its own. All values are computed before any is stored.
  void storeAll(kernel::ValueId linear) { storeAll(std::span(&linear, 1)); }
  /// The same at several elements: all of their values come before the first store.
  void storeAll(std::span<const kernel::ValueId> linears);
  /// Every result at the elements from width * place on, `count` of them, in a scope of its own. The words of packed results are whole:
  /// past the last element they are 0. `width` is a multiple of the elements per word of every result.
  void storeVector(kernel::ValueId place, int64_t width, int64_t count);

  /// Bindings of vectors of which elements were read or written one by one so far.
  [[nodiscard]] const std::set<uint32_t>& readByElement() const { return read_by_element_; }

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
    // Of several neighbours the first one, whose number is a multiple of `width`, and how far this one is from it.
    std::optional<PositionId> first = {};
    int64_t lane = 0, width = 1;
  };
  struct Scope {
    std::map<std::pair<graph::ValueId, PositionId>, kernel::ValueId> values;
    std::map<graph::ValueId, kernel::ValueId> defined;
    std::map<std::pair<PositionId, size_t>, kernel::ValueId> axes;
    std::map<PositionId, kernel::ValueId> linears;
    std::map<std::pair<graph::ValueId, kernel::ValueId>, kernel::ValueId> entries;                // of inputs, by the index of the entry
    std::map<std::pair<kernel::ValueId, std::array<int64_t, 2>>, kernel::ValueId> entry_indices;  // by number, elements and how far on
    std::map<std::pair<graph::ValueId, PositionId>, kernel::ValueId> held;                        // by view: whether its guards hold
    std::map<std::pair<kernel::ValueId, kernel::ValueId>, kernel::ValueId> within;                // by index and whether it is inside
  };
  class Element;

  /// The storage variables of one tensor: arrays of words, or of vectors of them.
  struct Memory {
    graph::DType dtype = graph::DType::F32;
    std::vector<uint32_t> bindings;
    std::vector<kernel::ValueId> windows;
    int64_t words = 1;  ///< per entry
    [[nodiscard]] int64_t perWord() const { return graph::elementsPerWord(dtype); }
    [[nodiscard]] int64_t perEntry() const { return words * perWord(); }
  };
  /// One of the numbers that neighbours() gave.
  struct Neighbour {
    kernel::ValueId first;
    int64_t width = 1, lane = 0;
  };
  /// A number that is `factor` times another.
  struct Multiple {
    kernel::ValueId of;
    int64_t factor = 1;
  };
  /// Where an element lies: the entry, of a vector the word, and of packed elements the place in it.
  struct Place {
    kernel::ValueId entry, word, element;
  };
  /// What the elements beside a position read.
  struct Lanes {
    LaneForm form = LaneForm::Other;
    PositionId first = 0;
    int64_t lane = 0, width = 1;
  };

  Lanes lanesOf(PositionId position);
  /// The position of these numbers, which is made where it is new.
  PositionId known(std::vector<kernel::ValueId> numbers, const graph::Shape& shape, int64_t kind,
                   const std::function<Position()>& position);
  /// Remembers of a position which one the first of its neighbours has.
  PositionId amongNeighbours(PositionId position, kernel::ValueId number, const std::function<PositionId(kernel::ValueId)>& at);
  PositionId viewed(PositionId root, const graph::Shape& source, graph::IndexMap map, bool proven);
  Memory declare(const std::vector<uint32_t>& bindings, const graph::TensorType& type, kernel::Access access, const std::string& name,
                 const BodyBindings& how);

  /// number / per_entry + further.
  kernel::ValueId entryIndex(kernel::ValueId number, int64_t per_entry, int64_t further);
  kernel::TypeId entryType(const Memory& memory);
  /// A word of up to as many elements as it holds, the first one in the lowest bits.
  kernel::ValueId encoded(graph::DType dtype, std::span<const kernel::ValueId> elements);
  kernel::ValueId decoded(graph::DType dtype, kernel::ValueId word, kernel::ValueId place);
  Place placeOf(const Memory& memory, kernel::ValueId linear);
  /// The index where it is inside, else 0. Without a condition it is.
  kernel::ValueId within(kernel::ValueId index, kernel::ValueId inside);
  /// The element at a position, or any element where that is not `inside`.
  kernel::ValueId loadAt(graph::ValueId input, PositionId position, kernel::ValueId inside = {});
  /// The element of this number.
  kernel::ValueId load(graph::ValueId input, kernel::ValueId linear, bool proven);
  /// The entry of this index, or a word of it.
  kernel::ValueId loadEntry(graph::ValueId input, kernel::ValueId index, kernel::ValueId word, bool proven);
  void storeEntry(const Memory& memory, kernel::ValueId index, std::span<const kernel::ValueId> words);
  /// Calls `use` with the variable that holds entry `index` and its index there, once in each arm that chooses among several windows.
  void inWindow(const Memory& memory, kernel::ValueId index, const std::function<void(kernel::ValueId, kernel::ValueId)>& use);
  /// Whether the guards of a view hold.
  kernel::ValueId holds(graph::ValueId value, const graph::IndexMap& map, PositionId position);
  /// The result of a view with guards: its operand's element where they hold, its fill elsewhere.
  kernel::ValueId guarded(graph::ValueId value, const graph::IndexMap& map, PositionId position);
  kernel::ValueId expression(const graph::IndexExpr& expr, PositionId position);
  kernel::ValueId quotientRemainder(kernel::ValueId value, int64_t divide, int64_t modulo);
  PositionId newPosition(Position position);

  const graph::Graph& body_;
  kernel::Builder& builder_;
  std::vector<Memory> input_memory_, result_memory_;
  std::map<uint32_t, kernel::ValueId> variables_;  // by binding
  int64_t window_;
  std::map<graph::ValueId, size_t> inputs_;
  std::vector<Position> positions_;
  std::map<std::pair<std::vector<kernel::ValueId>, std::vector<int64_t>>, PositionId> known_positions_;  // by their numbers and shape
  std::map<PositionId, std::vector<PositionId>> views_;                                                  // by root
  std::map<kernel::ValueId, Neighbour> neighbours_;
  std::map<kernel::ValueId, Multiple> multiples_;
  std::set<uint32_t> read_by_element_;
  std::map<graph::ValueId, std::function<kernel::ValueId(PositionId)>> kept_;
  std::vector<Scope> scopes_{1};
};

}  // namespace lockstep::passes
