// SPDX-License-Identifier: Apache-2.0
#include "passes/graph/split_reductions.h"

#include <algorithm>
#include <cmath>

#include "ir/graph/op_def.h"
#include "passes/cost.h"
#include "passes/fuse/views.h"
#include "passes/graph/rewrite.h"
#include "passes/graph/row_relations.h"
#include "passes/schedule/choose_plan.h"
#include "passes/schedule/plan_rounds.h"

namespace lockstep::passes {

using namespace graph;
using program::DeviceProfile;

namespace {

constexpr uint64_t kWord = 4;
// Of a tensor: one that is filled up may not pass it.
constexpr int64_t kMostElements = INT32_MAX;

int64_t divideUp(int64_t a, int64_t b) { return (a + b - 1) / b; }

/// How many elements a partial sum takes: the divisor of `length` nearest above its square root, else a little more than the root.
int64_t columnsOf(int64_t length) {
  auto root = static_cast<int64_t>(std::sqrt(static_cast<double>(length)));
  for (int64_t parts = length / root; parts > cost::kMostParts; --parts) {
    if (length % parts == 0) return length / parts;
  }
  return root + 1;
}

/// The same for a tensor that is not bound whole: its slices begin where both the elements and the partial sums have an offset that can be
/// bound, every kParameterAlignment rows.
int64_t columnsWithin(int64_t length, uint64_t max_binding_bytes) {
  const auto most = static_cast<int64_t>(max_binding_bytes / kWord / kParameterAlignment);
  for (int64_t columns = most; columns > 1; --columns) {
    if (length % columns == 0) return columns;
  }
  return most;
}

/// The row lengths of the stages before the last one; none when one stage does.
std::vector<int64_t> stagesOf(int64_t length, const DeviceProfile& profile) {
  auto aboveLimit = [&] { return static_cast<uint64_t>(length) * kWord > profile.max_binding_bytes; };
  std::vector<int64_t> stages;
  if (!aboveLimit() && length >= cost::kShortestSum && profile.parallel_units > 1) stages.push_back(columnsOf(length));
  while (aboveLimit()) {
    stages.push_back(columnsWithin(length, profile.max_binding_bytes));
    length = divideUp(length, stages.back());
  }
  return stages;
}

/// The largest power of two of parts of `length` elements such that each has `shortest` and `groups` workgroups per part stay within
/// `most`.
int64_t partsOf(int64_t length, int64_t shortest, int64_t groups, int64_t most, int64_t most_parts = cost::kMostParts) {
  int64_t parts = 1;
  auto evenly = [&] { return length % (2 * parts) == 0 || length / parts > cost::kLongestUneven; };
  while (parts < most_parts && evenly() && length / (2 * parts) >= shortest && groups * 2 * parts <= most) parts *= 2;
  return parts;
}

struct Splitter {
  const Graph& graph;
  const DeviceProfile& profile;
  Rewriter rewriter;
  const RowRelations rows{graph};
  const int64_t units = profile.parallel_units;

  Builder& b() { return rewriter.builder(); }

  /// `x` with neutral elements after its last one along axis 0, so that `parts` equal parts have room for all.
  ValueId filledUp(ValueId x, int64_t length, double neutral) {
    int64_t missing = length - b().shapeOf(x).extent(0);
    if (missing == 0) return x;
    return b().make("pad", {x}, {{"axis", int64_t{0}}, {"before", int64_t{0}}, {"after", missing}, {"value", neutral}});
  }

  /// A reduction of everything: the rows are free to choose.
  bool splitWhole(const Node& node, double neutral) {
    std::vector<int64_t> stages = stagesOf(graph.shapeOf(node.operands[0]).elementCount(), profile);
    if (stages.empty()) return false;
    ValueId total = rewriter[node.operands[0]];
    for (int64_t columns : stages) {
      int64_t length = b().shapeOf(total).elementCount(), parts = divideUp(length, columns);
      if (parts * columns > kMostElements) return false;
      ValueId flat = parts * columns == length ? total : filledUp(b().reshape(total, Shape{length}), parts * columns, neutral);
      ValueId rows = b().reshape(flat, Shape{parts, columns});
      total = b().make(*node.op->name, {rows}, {{"axes", std::vector<int64_t>{1}}, {"keep_dims", false}});
    }
    total = b().make(*node.op->name, {total}, {{"axes", std::vector<int64_t>{0}}, {"keep_dims", false}});
    rewriter.set(node.results[0], b().reshape(total, graph.shapeOf(node.results[0])));
    return true;
  }

  /// Of a product of one row with weights, made of sums by columns: whether a matrix is the weights with each row times a number, or such
  /// numbers alone, as for the norm of that row.
  [[nodiscard]] bool isOfOneRow(ValueId matrix) const {
    int stored = 0;
    return isOfOneRow(matrix, stored) && stored <= 1;
  }
  bool isOfOneRow(ValueId matrix, int& stored) const {
    const Node& node = graph.definition(matrix);
    const int64_t elements = graph.shapeOf(matrix).elementCount();
    if (std::holds_alternative<ViewLowering>(*node.op->lower))
      return graph.shapeOf(throughViews(graph, matrix).base).elementCount() < elements;
    if (!std::holds_alternative<ElementLowering>(*node.op->lower)) return false;
    const auto isStored = [&](ValueId operand) {
      const Node& its = graph.definition(throughViews(graph, operand).base);
      const Node& made = its.operands.size() == 1 ? graph.definition(throughViews(graph, its.operands[0]).base) : its;  // widened
      // In a loop weights are inputs.
      return leafKind(made) != LeafKind::None && leafKind(made) != LeafKind::Constant;
    };
    return !node.operands.empty() && std::ranges::all_of(node.operands, [&](ValueId operand) {
      if (graph.shapeOf(throughViews(graph, operand).base).elementCount() < elements) return true;
      stored += isStored(operand) ? 1 : 0;
      return isStored(operand) || isOfOneRow(operand, stored);
    });
  }

  /// Beside reductions over the rows of the same space: as many parts as workgroups that stay on their units, so that a kernel that holds
  /// the rows can sum up its own (joinColumns). 1: there are none, or too few rows.
  [[nodiscard]] int64_t partsBesideRows(const Node& node, int64_t length, int64_t results) const {
    const int64_t lanes = divideUp(results, cost::kHeldBesideSums);
    int64_t per_unit = cost::kStayingGroupsPerUnit;
    while (per_unit < cost::kMostStayingGroupsPerUnit && 2 * per_unit * lanes <= cost::kStayingInvocationsPerUnit &&
           length >= 4 * cost::kLeastRowsOfStaying * per_unit * units) {
      per_unit *= 2;
    }
    const int64_t stay = per_unit * units;
    const bool is_long = length * results >= cost::kManyElements && length >= cost::kLeastRowsOfStaying * stay;
    const bool is_held = results >= cost::kVectorElements && results <= cost::kMostHeldColumns;
    if (profile.style != program::ExecutionStyle::Gpu || !is_long || !is_held || !rows.beside(node.operands[0], results) ||
        isOfOneRow(node.operands[0]))
      return 1;
    return std::max(stay, divideUp(length, plannedRounds(profile)));
  }

  /// Whether the lanes of large workgroups take the columns as fast as two stages would.
  [[nodiscard]] bool staysWhole(int64_t length, int64_t results) const {
    const int64_t lanes = profile.max_workgroup_invocations / cost::kColumnsGpu;
    if (profile.style != program::ExecutionStyle::Gpu || lanes <= cost::kFullWorkgroup / cost::kColumnsGpu) return false;
    if (length * cost::kMostLanesPerColumn > cost::kLongestWholeColumn * std::min(lanes, cost::kMostLanesPerColumn)) return false;
    const auto groups = static_cast<double>(divideUp(results, cost::kColumnsGpu));
    const double share = std::min(1.0, groups * cost::kSharesOfWholeColumns / static_cast<double>(units));
    const double seconds = static_cast<double>(length * results * cost::kElementBytes) / (1e6 * profile.memory_mb_per_second);
    return seconds / share <= seconds + 1e-9 * profile.level_ns;
  }

  /// A reduction over leading axes to few results (the gradient of a gain or a bias): blocks of rows, then the blocks.
  bool splitLeading(const Node& node, const ReduceLowering& reduce, double neutral) {
    std::vector<int64_t> axes = reduce.axes(graph, node);
    for (size_t i = 0; i < axes.size(); ++i) {
      if (axes[i] != static_cast<int64_t>(i)) return false;
    }
    int64_t results = graph.shapeOf(node.results[0]).elementCount();
    int64_t length = graph.shapeOf(node.operands[0]).elementCount() / results;
    if (units < cost::kFewUnits || length * results < 2 * cost::kShortestSum) return false;
    int64_t parts = partsBesideRows(node, length, results);
    if (parts == 1 && staysWhole(length, results)) return false;
    if (parts == 1) {
      parts = partsOf(length, cost::kShortestPart, results, cost::kShortGroupsPerUnit * units);
      const int64_t groups = divideUp(results, cost::kColumnsGpu), most = cost::kGroupsPerUnit * units;
      if (profile.style == program::ExecutionStyle::Gpu) parts = std::max(parts, partsOf(length, cost::kLongColumn, groups, most));
    }
    if (parts == 1 || length - length / parts < cost::kLeastSavedRows) return false;
    const int64_t part = divideUp(length, parts);
    parts = divideUp(length, part);
    if (part * parts * results > kMostElements) return false;
    ValueId x = rewriter[node.operands[0]];
    if (part * parts != length) x = filledUp(b().reshape(x, Shape{length, results}), part * parts, neutral);
    ValueId blocks = b().reshape(x, Shape{parts, part, results});
    ValueId partial = b().make(*node.op->name, {blocks}, {{"axes", std::vector<int64_t>{1}}, {"keep_dims", false}});
    ValueId total = b().make(*node.op->name, {partial}, {{"axes", std::vector<int64_t>{0}}, {"keep_dims", false}});
    rewriter.set(node.results[0], b().reshape(total, graph.shapeOf(node.results[0])));
    return true;
  }

  /// A reduction over leading and trailing axes to few results (the bias of a convolution): rows first, whose loads are contiguous.
  bool splitEnds(const Node& node, const ReduceLowering& reduce) {
    std::vector<int64_t> axes = reduce.axes(graph, node), leading = axes, trailing;
    auto rank = static_cast<int64_t>(graph.shapeOf(node.operands[0]).rank());
    while (!leading.empty() && leading.back() == rank - 1 - static_cast<int64_t>(trailing.size())) {
      trailing.insert(trailing.begin(), leading.back());
      leading.pop_back();
    }
    if (leading.empty() || trailing.empty() || units < cost::kFewUnits) return false;
    const Shape& shape = graph.shapeOf(node.operands[0]);
    int64_t columns = 1;
    for (int64_t axis : trailing) columns *= shape.extent(static_cast<size_t>(axis));
    if (columns < cost::kShortestPart || shape.elementCount() < 2 * cost::kShortestSum) return false;
    ValueId rows = b().make(*node.op->name, {rewriter[node.operands[0]]}, {{"axes", trailing}, {"keep_dims", false}});
    ValueId total = b().make(*node.op->name, {rows}, {{"axes", leading}, {"keep_dims", false}});
    rewriter.set(node.results[0], b().reshape(total, graph.shapeOf(node.results[0])));
    return true;
  }

  /// 1 where the device's loops are long enough. Short parts round less, as long as the products take no more memory than the operands.
  [[nodiscard]] int64_t partsWithinRounds(const ContractShape& shape) const {
    int64_t parts = 1;
    auto part = [&] {
      ContractShape one = shape;
      one.batch *= parts;
      one.k = divideUp(shape.k, parts);
      return one;
    };
    while (!sumsWithinRounds(part(), profile)) ++parts;
    const int64_t more = divideUp(shape.k, cost::kLongestPart);
    const bool small = more * shape.m * shape.n <= shape.k * (shape.m + shape.n);
    return parts > 1 && small ? std::max(parts, more) : parts;
  }

  /// Of a product that is large enough for the larger tiles of GPUs and does not fill the units by them.
  [[nodiscard]] int64_t partsOfLarge(const ContractShape& shape, bool is_f32) const {
    if (profile.style != program::ExecutionStyle::Gpu) return 1;
    constexpr const cost::QuadTile& kQuads = cost::kQuadTiles.front();
    int64_t parts = 1;
    if (shape.m >= kQuads.m && shape.n >= kQuads.n) {
      const int64_t tiles = divideUp(shape.m, kQuads.m) * divideUp(shape.n, kQuads.n);
      if (tiles < units) parts = partsOf(shape.k, cost::kShortestQuadPart, tiles, cost::kGroupsPerUnit * units);
    }
    if (shape.m * shape.n * shape.k < cost::kLeastMatrixProducts * units) return parts;
    if (shape.m <= cost::kNarrow && !is_f32) {
      const int64_t tiles = divideUp(shape.n, cost::kFewRowTiles.front().n);
      return std::max(parts,
                      partsOf(shape.k, cost::kShortestFewRowPart, tiles, cost::kFewRowGroupsPerUnit * units, cost::kMostMatrixParts));
    }
    constexpr const cost::MatrixTile& kUnits = cost::kSplitTiles.back();
    const int64_t tiles = divideUp(shape.m, kUnits.m) * divideUp(shape.n, kUnits.n);
    parts = std::max(parts, partsOf(shape.k, cost::kShortestQuadPart, tiles, cost::kMatrixGroupsPerUnit * units, cost::kMostMatrixParts));
    return is_f32 ? filledRounds(shape, parts) : parts;
  }

  /// In f32, twice as many parts where the last round of tiles leaves so many units idle that it takes longer than the sum of more parts.
  [[nodiscard]] int64_t filledRounds(const ContractShape& shape, int64_t parts) const {
    constexpr const cost::MatrixTile& kTile = cost::kSplitTiles.front();
    const int64_t tiles = divideUp(shape.m, kTile.m) * divideUp(shape.n, kTile.n), more = 2 * parts;
    if (tiles * parts < units || shape.k % more != 0 || shape.k / more < cost::kShortestQuadPart) return parts;
    const auto rounds = [&](int64_t count) {
      return static_cast<double>(divideUp(tiles * count, units) * units) / static_cast<double>(tiles * count);
    };
    const double results = static_cast<double>(shape.m * shape.n);
    const double seconds = 2 * results * static_cast<double>(shape.k) / (1e6 * profile.f32_mflops);
    const double of_sum = 2 * 4 * results * static_cast<double>(parts) / (1e6 * profile.memory_mb_per_second);
    return seconds * (rounds(parts) - rounds(more)) > 2 * of_sum ? more : parts;
  }

  /// A small contraction with a long inner axis (the gradient of a weight), or one whose inner axis is too long for a loop of this device:
  /// one product per part, then their sum.
  bool splitInner(const Node& node, const ContractLowering& contract) {
    if (contract.partial == nullptr) return false;
    ContractShape shape = contract.shape(graph, node);
    int64_t parts = 1;
    if (units >= cost::kFewUnits && shape.k >= cost::kShortestInner && shape.batch == 1) {
      int64_t tiles = shape.batch * divideUp(shape.m, cost::kSmallestTile) * divideUp(shape.n, cost::kSmallestTile);
      parts = partsOf(shape.k, cost::kShortestPart, tiles, cost::kGroupsPerUnit * units);
      // Where parts stay long, more than kMostParts are allowed until every unit has a workgroup.
      if (tiles * parts < units) parts = std::max(parts, partsOf(shape.k, cost::kShortestInner, tiles, units, cost::kMostMatrixParts));
      parts = std::max(parts, partsOfLarge(shape, !isPacked(graph.typeOf(throughWidened(graph, node.operands[0]).base).dtype)));
    }
    parts = std::max(parts, partsWithinRounds(shape));
    const int64_t inner = parts * divideUp(shape.k, parts);
    if (parts == 1 || shape.batch * inner * std::max(shape.m, shape.n) > kMostElements) return false;
    ValueId products = contract.partial(b(), node, rewriter.mapped(node.operands), parts);
    if (!products.valid()) return false;
    rewriter.set(node.results[0], b().reshape(b().sum(products, 0, false), graph.shapeOf(node.results[0])));
    return true;
  }

  bool split(const Node& node) {
    b().setLocation(node.location);
    if (const auto* reduce = std::get_if<ReduceLowering>(&*node.op->lower)) {
      const double neutral = reduce->neutral(graph.typeOf(node.operands[0]).dtype);
      return graph.shapeOf(node.results[0]).elementCount() == 1 ? splitWhole(node, neutral)
                                                                : splitLeading(node, *reduce, neutral) || splitEnds(node, *reduce);
    }
    const auto* contract = std::get_if<ContractLowering>(&*node.op->lower);
    return contract != nullptr && splitInner(node, *contract);
  }
};

}  // namespace

Result<Graph> splitReductions(const Graph& graph, const SplitReductionsConfig& config) {
  Splitter splitter{graph, config.profile, Rewriter(graph)};
  for (NodeId id : graph.body().nodes) {
    if (!splitter.split(graph[id])) splitter.rewriter.copy(graph[id]);
  }
  Rewriter& rewriter = splitter.rewriter;
  for (const Output& output : graph.outputs) rewriter.copyOutput(output);
  return rewriter.take();
}

}  // namespace lockstep::passes
