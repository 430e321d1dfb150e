// SPDX-License-Identifier: Apache-2.0
#include "passes/schedule/row_chain.h"

#include <algorithm>
#include <set>
#include <span>

#include "ir/graph/group_kind.h"
#include "passes/fuse/views.h"
#include "passes/schedule/plan_rounds.h"

namespace lockstep::passes {

using namespace graph;

namespace {

using Arrays = std::set<size_t>;

/// What is known of a value.
struct Known {
  bool is_of_rows = false;  ///< made of a contraction or a reduction: only the rows of a workgroup are there
  bool is_made = false;     ///< some op computes it, so that a right operand would compute it again and again
  Arrays reads;             ///< the arrays that its elements are computed from
};

/// Whether an expression has one of the axes before `end`.
bool usesAxes(const IndexExpr& expr, int32_t end) {
  return std::ranges::any_of(expr.terms,
                             [&](const IndexTerm& term) { return term.axis < 0 ? usesAxes(term.inner.front(), end) : term.axis < end; });
}

/// Whether each row of an index space of `shape` reads the same row of `source` and no other.
bool staysInRow(const IndexMap& map, const Shape& shape, const Shape& source, int64_t rows) {
  if (isLinearIdentity(map, shape, source)) return true;
  IndexExpr wanted;
  if (!map.guards.empty() || !rowOffset(shape, shape.elementCount() / rows, wanted)) return false;
  const int64_t columns = source.elementCount() / rows;
  for (IndexTerm& term : wanted.terms) term.coefficient *= columns;
  auto outer = static_cast<int32_t>(shape.rank());  // axes of rows
  for (int64_t inside = 1; inside < shape.elementCount() / rows;) inside *= shape.extent(static_cast<size_t>(--outer));
  // What is left is an offset in the row, as no index is out of range.
  std::vector<IndexTerm> terms = linearOffset(map, shape, source).terms;
  const auto is_inside = [&](const IndexTerm& term) { return !usesAxes(IndexExpr{.terms = {term}}, outer); };
  std::erase_if(terms, is_inside);
  return terms == wanted.terms;
}

class Search {
 public:
  explicit Search(const Graph& body) : body_(body), known_(body.values.size()) {}

  std::optional<RowChain> run() {
    for (const NodeId id : body_.body().nodes) {
      if (const auto* contract = std::get_if<ContractLowering>(&*body_[id].op->lower)) {
        const ContractShape shape = contract->shape(body_, body_[id]);
        chain_.rows = shape.batch * shape.m;
        break;
      }
    }
    if (chain_.rows == 0) return std::nullopt;
    for (const NodeId id : body_.body().nodes) {
      if (!add(id)) return std::nullopt;
    }
    if (!addStores()) return std::nullopt;
    place();
    return std::move(chain_);
  }

 private:
  [[nodiscard]] int64_t countOf(ValueId value) const { return body_.shapeOf(value).elementCount(); }
  [[nodiscard]] bool hasRows(ValueId value) const { return countOf(value) % chain_.rows == 0 && countOf(value) > 0; }
  Known& known(ValueId value) { return known_[value.index()]; }

  bool add(NodeId id) {
    const Node& node = body_[id];
    const auto isPackedValue = [&](ValueId value) { return isPacked(body_.typeOf(value).dtype); };
    if (std::ranges::any_of(node.results, isPackedValue)) return false;
    const Lowering& lowering = *node.op->lower;
    if (leafName(node) != nullptr) return true;
    if (std::holds_alternative<ContractLowering>(lowering)) return addProduct(id);
    if (std::holds_alternative<ReduceLowering>(lowering)) return addReduce(id);
    if (const auto* view = std::get_if<ViewLowering>(&lowering)) return addView(node, view->map(body_, node));
    if (const auto* element = std::get_if<ElementLowering>(&lowering)) return addElement(node, *element);
    return false;
  }

  bool addView(const Node& node, const IndexMap& map) {
    const ValueId source = node.operands[0], result = node.results[0];
    known(result) = known(source);
    if (!known(source).is_of_rows) return true;
    if (!hasRows(result)) return false;
    return staysInRow(map, body_.shapeOf(result), body_.shapeOf(source), chain_.rows);
  }

  bool addElement(const Node& node, const ElementLowering& element) {
    Known& result = known(node.results[0]);
    result.is_made = !element.cheap;
    for (size_t i = 0; i < node.operands.size(); ++i) {
      const Known& operand = known(node.operands[i]);
      result.is_made = result.is_made || operand.is_made;
      if (!operand.is_of_rows) continue;
      result.is_of_rows = true;
      result.reads.insert(operand.reads.begin(), operand.reads.end());
      if (element.scalar_only && (i > 0 || !picksInRow(node, element))) return false;
    }
    return !result.is_of_rows || hasRows(node.results[0]);
  }

  /// Whether what is read of the first operand lies in the row that the result is of.
  [[nodiscard]] bool picksInRow(const Node& node, const ElementLowering& element) const {
    if (element.within_row == nullptr || !element.within_row(body_, node)) return false;
    const Shape& line = body_.shapeOf(node.operands[0]);
    return countOf(node.results[0]) * line.extent(line.rank() - 1) == countOf(node.operands[0]);
  }

  size_t addStep(ChainStep step, ValueId value) {
    const bool is_left = step.work == ChainWork::Load;
    const int64_t columns = is_left ? divideUp(step.columns, RowChain::kVector) * RowChain::kVector : step.columns;
    step.made = chain_.arrays.size();
    chain_.arrays.push_back({.value = value, .columns = columns, .first = chain_.steps.size(), .is_left = is_left});
    chain_.steps.push_back(std::move(step));
    return chain_.arrays.size() - 1;
  }

  void makeRows(ValueId value, size_t array) { known(value) = {.is_of_rows = true, .is_made = true, .reads = {array}}; }

  bool addReduce(NodeId id) {
    const Node& node = body_[id];
    const ValueId operand = node.operands[0], result = node.results[0];
    const bool fits = reducesRows(body_, node) && countOf(result) == chain_.rows && hasRows(operand);
    if (!fits || body_.typeOf(operand).dtype != DType::F32 || body_.typeOf(result).dtype != DType::F32) return false;
    const Arrays& reads = known(operand).reads;
    makeRows(result, addStep({.work = ChainWork::Reduce, .node = id, .reads = {reads.begin(), reads.end()}}, result));
    return true;
  }

  bool addProduct(NodeId id) {
    const Node& node = body_[id];
    const ContractShape shape = contractOf(body_, id);
    const ValueId left = node.operands[0], right = node.operands[1], result = node.results[0];
    const auto isFloat = [&](ValueId value) { return body_.typeOf(value).dtype == DType::F32; };
    if (shape.batch * shape.m != chain_.rows || !isFloat(left) || !isFloat(right) || !isFloat(result)) return false;
    // The right operand is the same for all rows, and computing its elements for each workgroup would take longer than reading them.
    const bool is_shared =
        shape.batch == 1 || std::ranges::none_of(shape.b.source, [](const IndexExpr& expr) { return usesAxes(expr, 1); });
    if (!is_shared || known(right).is_of_rows || known(right).is_made || !shape.a.guards.empty() || !shape.b.guards.empty()) return false;
    const Shape space{shape.batch, shape.m, shape.k};
    if (known(left).is_of_rows && !staysInRow(shape.a, space, body_.shapeOf(left), chain_.rows)) return false;
    const size_t array = leftOf(id, shape);
    makeRows(result, addStep({.work = ChainWork::Product, .node = id, .left = array, .reads = {array}, .columns = shape.n}, result));
    return true;
  }

  /// The array of a contraction's left operand, which several contractions may have in common.
  size_t leftOf(NodeId id, const ContractShape& shape) {
    const ValueId left = body_[id].operands[0];
    for (const ChainStep& step : chain_.steps) {
      if (step.work == ChainWork::Load && body_[step.node].operands[0] == left && contractOf(body_, step.node).a == shape.a)
        return step.made;
    }
    const Arrays& reads = known(left).reads;
    return addStep({.work = ChainWork::Load, .node = id, .reads = {reads.begin(), reads.end()}, .columns = shape.k}, left);
  }

  /// Results are stored as soon as they can be made, so that the memory of what they are made of is free again.
  bool addStores() {
    struct Store {
      size_t after;
      int64_t columns;
      std::vector<size_t> results;
      Arrays reads;
    };
    std::vector<Store> stores;
    for (size_t i = 0; i < body_.outputs.size(); ++i) {
      const ValueId value = body_.outputs[i].value;
      if (!hasRows(value)) return false;
      const Known& made = known(value);
      size_t after = 0;
      for (const size_t array : made.reads) after = std::max(after, chain_.arrays[array].first);
      const int64_t columns = countOf(value) / chain_.rows;
      auto same = std::ranges::find_if(stores, [&](const Store& store) { return store.after == after && store.columns == columns; });
      if (same == stores.end()) same = stores.insert(stores.end(), {after, columns, {}, {}});
      same->results.push_back(i);
      same->reads.insert(made.reads.begin(), made.reads.end());
    }
    std::vector<ChainStep> steps;
    for (size_t s = 0; s < chain_.steps.size(); ++s) {
      const size_t number = steps.size();
      ChainStep& step = chain_.steps[s];
      if (step.work != ChainWork::Store) chain_.arrays[step.made].first = number;
      steps.push_back(std::move(step));
      for (const Store& store : stores) {
        if (store.after != s) continue;
        steps.push_back({.work = ChainWork::Store,
                         .node = {},
                         .results = store.results,
                         .reads = {store.reads.begin(), store.reads.end()},
                         .columns = store.columns});
      }
    }
    chain_.steps = std::move(steps);
    for (ChainArray& array : chain_.arrays) array.last = array.first;
    for (size_t s = 0; s < chain_.steps.size(); ++s) {
      for (const size_t array : chain_.steps[s].reads) chain_.arrays[array].last = std::max(chain_.arrays[array].last, s);
    }
    return true;
  }

  /// Arrays in the order in which they are made, each at the lowest place that is free as long as it is needed.
  void place() {
    for (size_t i = 0; i < chain_.arrays.size(); ++i) {
      ChainArray& array = chain_.arrays[i];
      const auto meets = [&](const ChainArray& other) {
        return other.is_left == array.is_left && other.last >= array.first && other.offset < array.offset + array.columns &&
               array.offset < other.offset + other.columns;
      };
      const auto before = std::span(chain_.arrays).first(i);
      for (auto met = std::ranges::find_if(before, meets); met != before.end(); met = std::ranges::find_if(before, meets))
        array.offset = met->offset + met->columns;
      int64_t& elements = array.is_left ? chain_.left_elements : chain_.made_elements;
      elements = std::max(elements, array.offset + array.columns);
    }
  }

  const Graph& body_;
  std::vector<Known> known_;
  RowChain chain_;
};

}  // namespace

ContractShape contractOf(const Graph& body, NodeId node) {
  return std::get<ContractLowering>(*body[node].op->lower).shape(body, body[node]);
}

std::optional<RowChain> findRowChain(const Graph& body) { return Search(body).run(); }

}  // namespace lockstep::passes
