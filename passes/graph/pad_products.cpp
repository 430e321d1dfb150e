// SPDX-License-Identifier: Apache-2.0
#include "passes/graph/pad_products.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "ir/graph/op_def.h"
#include "passes/cost.h"
#include "passes/fuse/views.h"
#include "passes/graph/rewrite.h"
#include "passes/schedule/quad_operands.h"

namespace lockstep::passes {

using namespace graph;

namespace {

/// Half of the smallest tile: units leave fewer rows or columns to other templates.
constexpr int64_t kShortestSide = 32;

/// An operand as views of what lies in memory: casts to f32 of packed numbers, permutations, and reshapes that keep the axes that matter.
struct Chain {
  ValueId base;
  std::vector<NodeId> views;  ///< from the base up
};

/// Whether the node gives the elements of its operand in their order, in another shape.
bool isReshape(const Graph& graph, const Node& node) {
  const auto* view = std::get_if<ViewLowering>(&*node.op->lower);
  if (view == nullptr) return false;
  const IndexMap map = view->map(graph, node);
  return map.guards.empty() && isLinearIdentity(map, graph.shapeOf(node.results[0]), graph.shapeOf(node.operands[0]));
}
bool isPermute(const Node& node) { return *node.op->name == "permute"; }

/// Whether views read elements several times, as the windows of a convolution do: a copy would be larger than what is in memory.
bool repeats(const Graph& graph, ValueId value) {
  return graph.shapeOf(throughViews(graph, value).base).elementCount() < graph.shapeOf(value).elementCount();
}

/// The axis of `to` that is axis `axis` of `from`, where a reshape leaves it as it is.
std::optional<size_t> sameAxis(const Shape& from, size_t axis, const Shape& to) {
  const std::vector<int64_t> strides = from.strides(), new_strides = to.strides();
  for (size_t i = 0; i < to.rank(); ++i) {
    if (to.extent(i) == from.extent(axis) && new_strides[i] == strides[axis] && to.extent(i) > 1) return i;
  }
  return std::nullopt;
}

Chain chainOf(const Graph& graph, ValueId value) {
  Chain chain{.base = value, .views = {}};
  for (;;) {
    const NodeId id = graph[chain.base].node;
    const Node& node = graph[id];
    const auto keepsRows = [&] {
      const Shape& below = graph.shapeOf(node.operands[0]);
      return below.rank() > 0 && sameAxis(below, below.rank() - 1, graph.shapeOf(node.results[0]));
    };
    const bool is_view = isPermute(node) || (isReshape(graph, node) && keepsRows()) || widens(graph, node);
    if (!is_view) break;
    chain.views.push_back(id);
    chain.base = node.operands[0];
  }
  std::ranges::reverse(chain.views);
  return chain;
}

/// Where an axis of a view's operand is in the view.
std::optional<size_t> axisAbove(const Graph& graph, const Node& view, size_t axis) {
  if (isPermute(view)) {
    const auto& order = view.attributes.get<std::vector<int64_t>>("permutation");
    return static_cast<size_t>(std::ranges::find(order, static_cast<int64_t>(axis)) - order.begin());
  }
  if (isReshape(graph, view)) return sameAxis(graph.shapeOf(view.operands[0]), axis, graph.shapeOf(view.results[0]));
  return axis;
}

/// Where an axis of a view is in its operand.
std::optional<size_t> axisBelow(const Graph& graph, const Node& view, size_t axis) {
  if (isPermute(view)) return static_cast<size_t>(view.attributes.get<std::vector<int64_t>>("permutation")[axis]);
  if (isReshape(graph, view)) return sameAxis(graph.shapeOf(view.results[0]), axis, graph.shapeOf(view.operands[0]));
  return axis;
}

std::optional<size_t> topAxis(const Graph& graph, const Chain& chain, size_t axis) {
  std::optional<size_t> at = axis;
  for (const NodeId view : chain.views) {
    if (at) at = axisAbove(graph, graph[view], *at);
  }
  return at;
}

std::optional<size_t> baseAxis(const Graph& graph, const Chain& chain, size_t axis) {
  std::optional<size_t> at = axis;
  for (size_t i = chain.views.size(); at && i-- > 0;) at = axisBelow(graph, graph[chain.views[i]], *at);
  return at;
}

int64_t roundedUp(int64_t extent) { return (extent + kQuad - 1) / kQuad * kQuad; }

/// What an operand grows by: axes of its base with their new extents.
using Growth = std::map<size_t, int64_t>;

class ProductPadder {
 public:
  ProductPadder(const Graph& graph, const program::DeviceProfile& profile) : in_(graph), profile_(profile), rewriter_(graph) {}

  Graph run() {
    for (const NodeId id : in_.body().nodes) {
      if (*in_[id].op->name != "matmul" || !pad(in_[id])) rewriter_.copy(in_[id]);
    }
    for (const Output& output : in_.outputs) rewriter_.copyOutput(output);
    return removeDead(rewriter_.take());
  }

 private:
  Builder& b() { return rewriter_.builder(); }

  bool pad(const Node& node) {
    const Shape &a = in_.shapeOf(node.operands[0]), &right = in_.shapeOf(node.operands[1]), &y = in_.shapeOf(node.results[0]);
    const std::array chains{chainOf(in_, node.operands[0]), chainOf(in_, node.operands[1])};
    const std::array ranks{a.rank(), right.rank()};
    std::array<Growth, 2> growth;
    bool grows_inner = false;
    for (size_t i = 0; i < 2; ++i) {
      const Shape& base = in_.shapeOf(chains[i].base);
      if (base.rank() == 0 || repeats(in_, chains[i].base)) return false;
      const size_t last = base.rank() - 1;
      if (std::ranges::any_of(base.dims(), [](const Dim& dim) { return dim.isSymbol(); })) return false;
      const std::optional<size_t> top = topAxis(in_, chains[i], last);
      // Other axes are those of batches, or merged with them.
      if (!top || *top + 2 < ranks[i]) return false;
      if (base.extent(last) % kQuad == 0) continue;
      growth[i][last] = roundedUp(base.extent(last));
      grows_inner = grows_inner || *top == (i == 0 ? ranks[0] - 1 : ranks[1] - 2);
    }
    if (growth[0].empty() && growth[1].empty()) return false;
    const int64_t k = a.extent(ranks[0] - 1);
    if (grows_inner) {
      for (size_t i = 0; i < 2; ++i) {
        const std::optional<size_t> axis = baseAxis(in_, chains[i], i == 0 ? ranks[0] - 1 : ranks[1] - 2);
        if (!axis) return false;
        growth[i][*axis] = roundedUp(k);
      }
    }
    if (!pays(chains, growth, y, k)) return false;
    b().setLocation(node.location);
    const ValueId product = b().make("matmul", {grown(chains[0], growth[0]), grown(chains[1], growth[1])}, node.attributes);
    ValueId result = product;
    for (size_t axis = y.rank() - 2; axis < y.rank(); ++axis) {
      if (b().shapeOf(product).extent(axis) == y.extent(axis)) continue;
      result = b().make("narrow", {result}, {{"axis", static_cast<int64_t>(axis)}, {"start", int64_t{0}}, {"length", y.extent(axis)}});
    }
    rewriter_.set(node.results[0], result);
    b().name(result, in_[node.results[0]].name);
    return true;
  }

  /// Whether the units save more than the copies take.
  [[nodiscard]] bool pays(const std::array<Chain, 2>& chains, const std::array<Growth, 2>& growth, const Shape& y, int64_t k) const {
    const int64_t results = y.elementCount(), shorter = std::min(y.extent(y.rank() - 1), y.extent(y.rank() - 2));
    if (shorter < kShortestSide || k < cost::kMatrixDepth || results * k < cost::kLeastMatrixProducts * profile_.parallel_units)
      return false;
    std::array<DType, 2> types{};
    for (size_t i = 0; i < 2; ++i) {
      types[i] = in_.typeOf(chains[i].base).dtype;
      if (types[i] != DType::F32 && types[i] != DType::BF16 && types[i] != DType::F16) return false;
    }
    const bool halves = types[0] == types[1] && types[0] != DType::F32;
    const program::MatrixShape& unit = halves && types[0] == DType::BF16 ? profile_.matrix_bf16 : profile_.matrix_f16;
    if (unit == program::MatrixShape{} || !profile_.f16 || (!halves && k < cost::kLeastSplitDepth)) return false;
    if (results < cost::kLeastPaddedResults * profile_.parallel_units) return false;
    double seconds = 0;
    for (size_t i = 0; i < 2; ++i) {
      if (growth[i].empty()) continue;
      const double bytes = static_cast<double>(in_.shapeOf(chains[i].base).elementCount()) * (types[i] == DType::F32 ? 4 : 2);
      seconds += 2 * bytes / (1e6 * profile_.memory_mb_per_second) + 1e-9 * (profile_.dispatch_ns + profile_.level_ns);
    }
    const double operations = 2.0 * static_cast<double>(results) * static_cast<double>(k);
    const double plain = operations / (1e6 * profile_.f32_mflops);
    return seconds < plain * (halves ? cost::kSavedByPaddedHalves : cost::kSavedByPaddedSplit);
  }

  /// The operand with its base copied into larger rows, once for all products that want the same.
  ValueId grown(const Chain& chain, const Growth& growth) {
    ValueId value = rewriter_[chain.views.empty() ? chain.base : in_[chain.views.back()].results[0]];
    if (growth.empty()) return value;
    const auto [known, is_new] = copies_.try_emplace({chain.base, growth});
    if (is_new) {
      ValueId padded = rewriter_[chain.base];
      for (const auto& [axis, extent] : growth) {
        const int64_t more = extent - b().shapeOf(padded).extent(axis);
        if (more == 0) continue;
        padded = b().make("pad", {padded}, {{"axis", static_cast<int64_t>(axis)}, {"before", int64_t{0}}, {"after", more}, {"value", 0.0}});
      }
      known->second = b().make("barrier", {padded});
    }
    value = known->second;
    Growth above = growth;
    for (const NodeId id : chain.views) {
      const Node& view = in_[id];
      Growth next;
      for (const auto& [axis, extent] : above) next[*axisAbove(in_, view, axis)] = extent;
      above = std::move(next);
      if (isReshape(in_, view)) {
        std::vector<int64_t> extents = in_.shapeOf(view.results[0]).extents();
        for (const auto& [axis, extent] : above) extents[axis] = extent;
        value = b().reshape(value, Shape(extents));
      } else {
        value = b().make(std::string(*view.op->name), {value}, view.attributes);
      }
    }
    return value;
  }

  const Graph& in_;
  const program::DeviceProfile& profile_;
  Rewriter rewriter_;
  std::map<std::pair<ValueId, Growth>, ValueId> copies_;
};

}  // namespace

Result<Graph> padProducts(const Graph& graph, const PadProductsConfig& config) {
  const program::DeviceProfile& profile = config.profile;
  const bool has_units = profile.matrix_f16 != program::MatrixShape{} || profile.matrix_bf16 != program::MatrixShape{};
  if (profile.style == program::ExecutionStyle::Cpu || !profile.fixed_subgroups || !has_units) return graph;
  return ProductPadder(graph, profile).run();
}

}  // namespace lockstep::passes
