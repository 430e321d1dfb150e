// SPDX-License-Identifier: Apache-2.0
#include "passes/graph/open_extents.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "ir/graph/builder.h"
#include "ir/graph/op_def.h"
#include "passes/graph/rewrite.h"

namespace lockstep::passes {

using namespace graph;

namespace {

/// Attributes that say no more than the shape of the result does.
constexpr std::array<std::string_view, 3> kOfShape{"shape", "n", "length"};

/// Thrown, and caught in openExtents(), where extents have no program in common.
struct Closed {
  std::string why;
};

[[noreturn]] void hasNoForm(const Node& node) { throw Closed{fmt::format("{} has no form along an extent that changes", *node.op->name)}; }

class Opening {
 public:
  Opening(Builder& builder, int64_t capacity, int64_t extent, ValueId length, OpenExtents& numbers)
      : b_(builder), capacity_(capacity), extent_(extent), length_(length), numbers_(numbers) {}

  /// Makes the nodes that have no results in `now` yet. Throws Closed.
  void walk(const Graph& wide, const Graph& narrow, std::map<ValueId, Opened>& now) {
    if (wide.body().nodes.size() != narrow.body().nodes.size()) throw Closed{"the number of its ops depends on the extent"};
    for (size_t i = 0; i < wide.body().nodes.size(); ++i) {
      const Node &node = wide[wide.body().nodes[i]], &other = narrow[narrow.body().nodes[i]];
      if (!node.results.empty() && now.contains(node.results[0])) continue;
      visit(wide, node, narrow, other, now);
    }
  }
  /// Whether sums or numbers had to be made others, or all nodes may stay as they are.
  [[nodiscard]] bool hasChanged() const { return changed_; }

 private:
  /// Which axes differ.
  std::vector<bool> differing(const Node& node, const TensorType& wide, const TensorType& narrow) const {
    std::vector<bool> differ;
    bool same = wide.dtype == narrow.dtype && wide.shape.rank() == narrow.shape.rank();
    for (size_t axis = 0; same && axis < wide.shape.rank(); ++axis) {
      const int64_t a = wide.shape.extent(axis), b = narrow.shape.extent(axis);
      differ.push_back(a != b);
      // Whole multiples, so that positions of the axis belong to positions of the dynamic one.
      same = a == b || (a * extent_ == b * capacity_ && a % capacity_ == 0);
    }
    if (!same) throw Closed{fmt::format("{} has an extent that is not a multiple of the dynamic one", *node.op->name)};
    return differ;
  }

  static bool isSame(const Graph& wide, const Attribute& mine, const Graph& narrow, const Attribute& theirs) {
    const auto* constant = std::get_if<ConstantId>(&mine);
    const auto* other = std::get_if<ConstantId>(&theirs);
    return constant != nullptr && other != nullptr ? wide[*constant] == narrow[*other] : mine == theirs;
  }
  static void compareAttributes(const Graph& wide, const Node& node, const Graph& narrow, const Node& other) {
    const auto &mine = node.attributes.items(), &theirs = other.attributes.items();
    const bool is_constant = leafKind(node) == LeafKind::Constant;
    bool same = mine.size() == theirs.size();
    for (size_t i = 0; same && i < mine.size(); ++i) {
      same = mine[i].first == theirs[i].first &&
             (isSame(wide, mine[i].second, narrow, theirs[i].second) || std::ranges::find(kOfShape, mine[i].first) != kOfShape.end() ||
              (is_constant && mine[i].first == "value"));
      if (!same) throw Closed{fmt::format("the attribute '{}' of {} depends on the extent", mine[i].first, *node.op->name)};
    }
    if (!same) throw Closed{fmt::format("the attributes of {} depend on the extent", *node.op->name)};
  }

  void visit(const Graph& wide, const Node& node, const Graph& narrow, const Node& other, std::map<ValueId, Opened>& now) {
    if (node.op != other.op || node.operands != other.operands || node.results != other.results || !node.regions.empty())
      throw Closed{fmt::format("which ops it has depends on the extent ({} and {})", *node.op->name, *other.op->name)};
    compareAttributes(wide, node, narrow, other);
    std::vector<std::vector<bool>> differ;
    bool closed = true;
    for (const ValueId result : node.results) {
      differ.push_back(differing(node, wide.typeOf(result), narrow.typeOf(result)));
      closed = closed && std::ranges::none_of(differ.back(), std::identity());
    }
    std::vector<Opened> operands;
    for (const ValueId operand : node.operands) {
      operands.push_back(now.at(operand));
      closed = closed && !isOpen(operands.back().axes);
    }
    b_.setLocation(b_.addLocation(wide, node));
    std::vector<Opened> results;
    if (const bool number_differs = leafKind(node) == LeafKind::Constant && numberOf(node) != numberOf(other); number_differs) {
      results = givenNumber(node, other, wide.typeOf(node.results[0]), differ[0]);
    } else if (closed) {
      std::vector<OpenAxes> axes;
      for (const std::vector<bool>& of_result : differ) axes.emplace_back(of_result.size(), 0);
      results = kept(wide, node, valuesOf(operands), axes);
    } else {
      results = open(wide, node, narrow, other, operands, differ);
    }
    for (size_t i = 0; i < results.size(); ++i) {
      const auto is_open = [](int64_t inner) { return inner != 0; };
      if (!std::ranges::equal(results[i].axes, differ[i], {}, is_open)) hasNoForm(node);
      if (const std::string& name = wide[node.results[i]].name; !name.empty()) b_.name(results[i].value, name);
      now[node.results[i]] = results[i];
    }
  }

  static double numberOf(const Node& node) { return node.attributes.get<double>("value"); }

  /// The host gives it at each extent.
  std::vector<Opened> givenNumber(const Node& node, const Node& other, const TensorType& type, const std::vector<bool>& differ) {
    if (isPacked(type.dtype) || type.dtype == DType::Bool)
      throw Closed{fmt::format("the {} number {} becomes {} at another extent", toString(type.dtype), numberOf(node), numberOf(other))};
    changed_ = true;
    const ValueId number = b_.make(
        "input", {}, {{"name", extentNumber(numbers_.wide_numbers.size())}, {"dtype", type.dtype}, {"shape", std::vector<int64_t>{}}});
    numbers_.wide_numbers.push_back(numberOf(node));
    numbers_.narrow_numbers.push_back(numberOf(other));
    OpenAxes axes;
    for (const bool is_open : differ) axes.push_back(is_open ? kAnyInner : 0);
    return {{b_.broadcastTo(number, type.shape), std::move(axes)}};
  }

  static std::vector<ValueId> valuesOf(const std::vector<Opened>& opened) {
    std::vector<ValueId> values;
    for (const Opened& one : opened) values.push_back(one.value);
    return values;
  }
  [[nodiscard]] OpenContext context(const Node& node, const std::vector<Opened>& operands) const {
    return {b_, node, operands, capacity_, length_};
  }
  std::vector<Opened> kept(const Graph& wide, const Node& node, std::vector<ValueId> operands, const std::vector<OpenAxes>& axes) {
    std::vector<Opened> results;
    for (const ValueId result : b_.makeAll(*node.op->name, std::move(operands), b_.addAttributes(wide, node)))
      results.push_back({result, axes[results.size()]});
    return results;
  }

  std::vector<Opened> open(const Graph& wide, const Node& node, const Graph& narrow, const Node& other, const std::vector<Opened>& operands,
                           const std::vector<std::vector<bool>>& differ) {
    const Lowering& lowering = *node.op->lower;
    if (node.op->open != nullptr) {
      const size_t before = b_.graph().nodes.size();  // one more, and the node is as it was
      std::optional<std::vector<Opened>> made = node.op->open(context(node, operands));
      if (!made) hasNoForm(node);
      changed_ = changed_ || b_.graph().nodes.size() != before + 1;
      return *made;
    }
    if (leafKind(node) == LeafKind::Input) return openInput(wide, node, differ[0]);
    if (leafKind(node) != LeafKind::None && leafKind(node) != LeafKind::Constant)
      throw Closed{fmt::format("the shape of a {} depends on the extent", *node.op->name)};
    if (std::holds_alternative<ElementLowering>(lowering)) return openElements(wide, node, operands, differ[0]);
    if (const auto* view = std::get_if<ViewLowering>(&lowering)) return openView(wide, node, *view, operands[0], differ[0]);
    if (const auto* reduce = std::get_if<ReduceLowering>(&lowering)) return openReduction(wide, node, *reduce, operands[0]);
    if (const auto* scan = std::get_if<ScanLowering>(&lowering)) return openScan(wide, node, *scan, operands);
    if (std::holds_alternative<DecomposeLowering>(lowering)) return openDecomposed(wide, node, narrow, other, operands);
    hasNoForm(node);
  }

  std::vector<Opened> openInput(const Graph& wide, const Node& node, const std::vector<bool>& differ) {
    OpenAxes axes;
    for (const bool is_open : differ) axes.push_back(is_open ? 1 : 0);
    return kept(wide, node, {}, {axes});
  }

  /// Constants and random numbers are as good at any position, and positions (arange) count from the first.
  std::vector<Opened> openElements(const Graph& wide, const Node& node, const std::vector<Opened>& operands,
                                   const std::vector<bool>& differ) {
    const Shape& shape = wide.shapeOf(node.results[0]);
    std::optional<OpenAxes> axes;
    for (const Opened& operand : operands) {
      if (b_.shapeOf(operand.value) != shape) {
        if (isOpen(operand.axes)) throw Closed{fmt::format("{} reads other places of an extent that changes", *node.op->name)};
        continue;
      }
      axes = axes ? joinedAxes(*axes, operand.axes) : operand.axes;
      if (!axes) throw Closed{fmt::format("the operands of {} count at different positions", *node.op->name)};
    }
    const bool reads_elements = axes.has_value();
    if (const auto& lowering = std::get<ElementLowering>(*node.op->lower); reads_elements && lowering.scalar_only)
      throw Closed{fmt::format("{} reads other places of an extent that changes", *node.op->name)};
    if (!axes) {
      const bool is_same = leafKind(node) == LeafKind::Constant || !operands.empty();
      axes.emplace();
      for (size_t axis = 0; axis < shape.rank(); ++axis)
        axes->push_back(!differ[axis] ? 0 : is_same ? kAnyInner : shape.extent(axis) / capacity_);
    }
    return kept(wide, node, valuesOf(operands), {*axes});
  }

  /// Axes that come through as they are stay open, and the first part of another axis becomes one.
  std::vector<Opened> openView(const Graph& wide, const Node& node, const ViewLowering& view, const Opened& operand,
                               const std::vector<bool>& differ) {
    const IndexMap map = view.map(wide, node);
    const Shape& shape = wide.shapeOf(node.results[0]);
    std::vector<bool> guarded(shape.rank(), false), read(shape.rank(), false);
    for (const IndexGuard& guard : map.guards) {
      for (const IndexTerm& term : guard.expr.terms) {
        if (term.axis < 0) throw Closed{fmt::format("{} pads an extent that changes", *node.op->name)};
        guarded[static_cast<size_t>(term.axis)] = true;
      }
    }
    OpenAxes axes(shape.rank(), 0);
    for (size_t source = 0; source < map.source.size(); ++source) {
      const IndexExpr& expr = map.source[source];
      const bool is_axis = expr.terms.size() == 1 && expr.terms[0].axis >= 0 && expr.terms[0].coefficient == 1 &&
                           expr.terms[0].divide == 1 && expr.terms[0].modulo == 0;
      const auto target = is_axis ? static_cast<size_t>(expr.terms[0].axis) : 0;
      const bool comes_through = is_axis && expr.offset == 0 && !guarded[target];
      const int64_t inner = operand.axes[source];
      if (inner != 0) {
        const int64_t extent = b_.shapeOf(operand.value).extent(source);
        const bool is_first = countsFirst(inner, extent, capacity_);
        // Places that the narrow trace has, too, count at every extent.
        const bool is_part = expr.terms.empty() || (is_axis && !differ[target] && !guarded[target]);
        if (comes_through && differ[target] && axes[target] == 0) {
          axes[target] = inner;
        } else if (!(is_part && is_first)) {
          throw Closed{fmt::format("{} moves an extent that changes", *node.op->name)};
        }
      } else if (comes_through && differ[target]) {
        if (axes[target] != 0) throw Closed{fmt::format("{} takes a diagonal of an extent that changes", *node.op->name)};
        axes[target] = shape.extent(target) / capacity_;
      }
      for (const IndexTerm& term : expr.terms) {
        if (term.axis >= 0) read[static_cast<size_t>(term.axis)] = true;
      }
    }
    for (size_t axis = 0; axis < shape.rank(); ++axis) {
      if (differ[axis] && !read[axis]) axes[axis] = kAnyInner;
    }
    return kept(wide, node, {operand.value}, {axes});
  }

  std::vector<Opened> openReduction(const Graph& wide, const Node& node, const ReduceLowering& reduce, const Opened& operand) {
    const std::vector<int64_t> reduced = reduce.axes(wide, node);
    Opened filled = operand;
    OpenAxes axes;
    for (size_t axis = 0; axis < operand.axes.size(); ++axis) {
      const bool is_reduced = std::ranges::find(reduced, static_cast<int64_t>(axis)) != reduced.end();
      if (is_reduced && operand.axes[axis] != 0) {
        filled.value = context(node, {}).filled(filled, axis, reduce.neutral(b_.typeOf(operand.value).dtype));
        changed_ = true;
      }
      if (!is_reduced) axes.push_back(operand.axes[axis]);
      if (is_reduced && reduce.keep_dims(node)) axes.push_back(0);
    }
    return kept(wide, node, {filled.value}, {axes});
  }

  /// A prefix of what counts reads nothing that does not.
  std::vector<Opened> openScan(const Graph& wide, const Node& node, const ScanLowering& scan, const std::vector<Opened>& operands) {
    OpenAxes axes = operands[0].axes;
    for (const Opened& operand : operands) {
      const std::optional<OpenAxes> joined = joinedAxes(axes, operand.axes);
      if (!joined) throw Closed{fmt::format("the operands of {} count at different positions", *node.op->name)};
      axes = *joined;
    }
    const auto along = static_cast<size_t>(scan.axis(wide, node));
    const int64_t extent = b_.shapeOf(operands[0].value).extent(along);
    if (axes[along] != 0 && (scan.is_total || scan.reverse(node) || !countsFirst(axes[along], extent, capacity_)))
      throw Closed{fmt::format("{} runs from the end of an extent that changes", *node.op->name)};
    axes[along] = fromFirst(axes[along], extent, capacity_);
    if (scan.is_total) axes.erase(axes.begin() + static_cast<ptrdiff_t>(along));
    return kept(wide, node, valuesOf(operands), std::vector<OpenAxes>(node.results.size(), axes));
  }

  /// The ops that a node stands for, at one of the extents.
  static Graph spelled(const Graph& graph, const Node& node, std::vector<ValueId>& results) {
    std::vector<ValueId> operands;
    Builder builder = leavesFor(graph, node, operands);
    Node alone = node;
    alone.attributes = builder.addAttributes(graph, node);
    results = std::get<DecomposeLowering>(*node.op->lower).decompose(builder, alone, operands);
    return builder.take();
  }

  /// The node itself where none of the ops that it stands for has to change, else these.
  std::vector<Opened> openDecomposed(const Graph& wide, const Node& node, const Graph& narrow, const Node& other,
                                     const std::vector<Opened>& operands) {
    std::vector<ValueId> results, others;
    const Graph mine = spelled(wide, node, results), theirs = spelled(narrow, other, others);
    if (results != others) throw Closed{fmt::format("what {} is made of depends on the extent", *node.op->name)};
    const auto spellOut = [&](Builder& builder, const std::vector<Opened>& leaves, ValueId length, OpenExtents& numbers, bool& changed) {
      std::map<ValueId, Opened> now;
      for (size_t i = 0; i < leaves.size(); ++i) now[mine[mine.body().nodes[i]].results[0]] = leaves[i];
      Opening inside(builder, capacity_, extent_, length, numbers);
      inside.walk(mine, theirs, now);
      changed = inside.hasChanged();
      std::vector<Opened> made;
      for (const ValueId result : results) made.push_back(now.at(result));
      return made;
    };
    std::vector<ValueId> values;
    Builder trial = leavesFor(wide, node, values);
    std::vector<Opened> leaves;
    for (size_t i = 0; i < operands.size(); ++i) leaves.push_back({values[i], operands[i].axes});
    const ValueId length =
        trial.make("input", {}, {{"name", std::string(kExtentInput)}, {"dtype", DType::I32}, {"shape", std::vector<int64_t>{}}});
    OpenExtents trial_numbers;
    bool changed = false;
    const std::vector<Opened> tried = spellOut(trial, leaves, length, trial_numbers, changed);
    if (!changed) {
      std::vector<OpenAxes> axes;
      for (const Opened& result : tried) axes.push_back(result.axes);
      return kept(wide, node, valuesOf(operands), axes);
    }
    // Which elements of an index are right is known of the op alone.
    if (node.op->index != nullptr) hasNoForm(node);
    changed_ = true;
    return spellOut(b_, operands, length_, numbers_, changed);
  }

  Builder& b_;
  int64_t capacity_, extent_;
  ValueId length_;
  OpenExtents& numbers_;
  bool changed_ = false;
};

}  // namespace

std::string extentNumber(size_t i) { return fmt::format("step.number{}", i); }

OpenExtents openExtents(const Graph& wide, const Graph& narrow, int64_t capacity, int64_t extent, std::string& why) {
  Builder builder;
  builder.mutableGraph().parameters = wide.parameters;
  const ValueId length =
      builder.make("input", {}, {{"name", std::string(kExtentInput)}, {"dtype", DType::I32}, {"shape", std::vector<int64_t>{}}});
  std::map<ValueId, Opened> now;
  OpenExtents open;
  try {
    Opening(builder, capacity, extent, length, open).walk(wide, narrow, now);
    if (wide.outputs != narrow.outputs) throw Closed{"what it returns depends on the extent"};
    for (const Output& output : wide.outputs) {
      const Opened& value = now.at(output.value);
      if (isOpen(value.axes) && output.kind != OutputKind::Result)
        throw Closed{fmt::format("the {} '{}' has an extent that changes", toString(output.kind), output.name)};
      builder.output(output.kind, output.name, value.value);
      open.outputs.push_back(value.axes);
    }
  } catch (const Closed& closed) {
    why = closed.why;
    return {};
  }
  open.graph = builder.take();
  return open;
}

}  // namespace lockstep::passes
