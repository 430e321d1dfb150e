// SPDX-License-Identifier: Apache-2.0
#include "passes/graph/split_scans.h"

#include <algorithm>

#include "ir/graph/op_def.h"
#include "ir/graph/scalar_graph.h"
#include "passes/cost.h"
#include "passes/graph/rewrite.h"
#include "passes/schedule/plan_rounds.h"

namespace lockstep::passes {

using namespace graph;

namespace {

using Values = std::vector<ValueId>;

/// Lines of `shape` along `axis`, as a device sees them.
struct Lines {
  Lines(const Shape& shape, int64_t axis)
      : length(shape.extent(static_cast<size_t>(axis))),
        inner(shape.strides()[static_cast<size_t>(axis)]),
        count(shape.elementCount() / length) {}
  int64_t length, inner, count;
};

/// How long the parts of a line are of which all prefixes are wanted; 0: it stays whole.
int64_t partOfScan(const Shape& shape, int64_t axis, const program::DeviceProfile& profile) {
  const auto [length, inner, lines] = Lines(shape, axis);
  const bool is_gpu = profile.style == program::ExecutionStyle::Gpu;
  if (!is_gpu || length < 2 * cost::kScannedPart || lines >= cost::kManyScannedLines * profile.parallel_units) return 0;
  const int64_t parts = std::min(divideUp(length, cost::kScannedPart), cost::kMostScannedParts), part = divideUp(length, parts);
  return parts * part * lines <= INT32_MAX ? part : 0;
}

/// How long the parts of a line are of which the total is wanted; 0: it stays whole. It is cut for units that would be idle.
int64_t partOfTotal(const Shape& shape, int64_t axis, const program::DeviceProfile& profile) {
  const auto [length, inner, lines] = Lines(shape, axis);
  const bool is_shared = inner < cost::kColumnsGpu;  // by the lanes of a workgroup; else a lane has a line
  const int64_t wanted = int64_t{profile.parallel_units} * (is_shared ? cost::kManyScannedLines : cost::kLeastWorkgroup);
  if (lines >= wanted || profile.parallel_units == 1) return 0;
  // The lanes of a workgroup are side by side in a short part, and far apart in a long one.
  const int64_t parts = is_shared ? std::min(length / cost::kScannedPart, cost::kMostScannedParts)
                                  : std::min(length / cost::kFoldedPart, divideUp(wanted, lines));
  if (parts <= 1) return 0;
  // What is left after whole parts would have to be combined with their total in a third step.
  for (int64_t even = parts; 2 * even > parts && is_shared; --even) {
    if (length % even == 0 && even > 1) return length / even;
  }
  return length / parts;
}

struct Splitter {
  Builder& b;
  const Node& node;
  const ScanLowering& scan;
  const Graph& graph;
  const int64_t axis = scan.axis(graph, node);
  const bool reverse = scan.reverse(node);

  /// The results on parts of `part` elements.
  Values cut(const Values& operands, int64_t part) { return scan.is_total ? cutTotal(operands, part) : split(operands, part); }

  ValueId narrow(ValueId x, int64_t at, int64_t start, int64_t length) {
    return b.make("narrow", {x}, {{"axis", at}, {"start", start}, {"length", length}});
  }

  /// x [..., length, ...] as [..., parts, part, ...]. What fills up comes last in the direction of the scan, so it reaches nothing.
  ValueId inParts(ValueId x, int64_t parts, int64_t part) {
    std::vector<int64_t> extents = b.shapeOf(x).extents();
    int64_t& length = extents[static_cast<size_t>(axis)];
    if (const int64_t missing = parts * part - length; missing > 0)
      x = b.make("pad", {x}, {{"axis", axis}, {"before", reverse ? missing : 0}, {"after", reverse ? 0 : missing}, {"value", 0.0}});
    length = parts;
    extents.insert(extents.begin() + axis + 1, part);
    return b.reshape(x, Shape(extents));
  }

  /// The scan of the same kind along another axis.
  Values scanned(const Values& operands, int64_t along) {
    Attributes attributes = node.attributes;
    attributes.set("axis", along);
    return b.makeAll(*node.op->name, operands, attributes);
  }

  /// Of the prefixes of parts [..., parts, 1, ...] those of the part before; of the first part any number.
  ValueId partBefore(ValueId prefixes, const Shape& shape) {
    const int64_t parts = shape.extent(static_cast<size_t>(axis));
    const ValueId padded =
        b.make("pad", {prefixes}, {{"axis", axis}, {"before", int64_t{!reverse}}, {"after", int64_t{reverse}}, {"value", 0.0}});
    return b.broadcastTo(narrow(padded, axis, reverse ? 1 : 0, parts), shape);
  }

  /// Where an element of [..., parts, part, ...] is in the first part.
  ValueId isInFirst(const Shape& shape) {
    const int64_t parts = shape.extent(static_cast<size_t>(axis));
    std::vector<int64_t> alone(shape.rank(), 1);
    alone[static_cast<size_t>(axis)] = parts;
    const ValueId number = b.reshape(b.make("arange", {}, {{"n", parts}, {"dtype", DType::I32}}), Shape(alone));
    const ValueId first = b.constant(static_cast<double>(reverse ? parts - 1 : 0), b.typeOf(number));
    return b.broadcastTo(b.make("equal", {number, first}), shape);
  }

  /// The totals of the parts, then theirs, then what is left at the end of a line.
  Values cutTotal(const Values& operands, int64_t part) {
    const int64_t length = b.shapeOf(operands[0]).extent(static_cast<size_t>(axis)), parts = length / part, whole = parts * part;
    Values front, rest;
    for (const ValueId operand : operands) {
      front.push_back(inParts(whole == length ? operand : narrow(operand, axis, 0, whole), parts, part));
      if (whole < length) rest.push_back(narrow(operand, axis, whole, length - whole));
    }
    Values totals = scanned(scanned(front, axis + 1), axis);
    if (rest.empty()) return totals;
    for (const ValueId total : scanned(rest, axis)) totals.push_back(total);
    return applyScalars(b, scan.combine(graph, node), totals);
  }

  Values split(const Values& operands, int64_t part) {
    const Shape whole = b.shapeOf(operands[0]);
    const int64_t length = whole.extent(static_cast<size_t>(axis)), parts = divideUp(length, part);
    Values cut;
    for (const ValueId operand : operands) cut.push_back(inParts(operand, parts, part));
    const Values local = scanned(cut, axis + 1);
    const Shape shape = b.shapeOf(local[0]);
    Values totals;
    for (const ValueId prefix : local) totals.push_back(narrow(prefix, axis + 1, reverse ? 0 : part - 1, 1));
    const Values prefixes = scanned(totals, axis);
    // Elements are combined where the result has them, so that what fills up is never made.
    std::vector<int64_t> padded = whole.extents();
    padded[static_cast<size_t>(axis)] = parts * part;
    const auto flat = [&](ValueId x) {
      x = b.reshape(x, Shape(padded));
      return parts * part == length ? x : narrow(x, axis, reverse ? parts * part - length : 0, length);
    };
    Values inputs, results;
    for (const ValueId prefix : prefixes) inputs.push_back(flat(partBefore(prefix, shape)));
    for (const ValueId prefix : local) inputs.push_back(flat(prefix));
    const Values combined = applyScalars(b, scan.combine(graph, node), inputs);
    const ValueId first = flat(isInFirst(shape));
    for (size_t i = 0; i < combined.size(); ++i) results.push_back(b.make("where", {first, inputs[combined.size() + i], combined[i]}));
    return results;
  }
};

}  // namespace

Graph splitScans(const Graph& graph, const SplitScansConfig& config) {
  Rewriter rewriter(graph);
  bool any = false;
  for (const NodeId id : graph.body().nodes) {
    const Node& node = graph[id];
    const auto* scan = std::get_if<ScanLowering>(&*node.op->lower);
    const auto partOf = [&] {
      const Shape& shape = graph.shapeOf(node.operands[0]);
      const int64_t axis = scan->axis(graph, node);
      return scan->is_total ? partOfTotal(shape, axis, config.profile) : partOfScan(shape, axis, config.profile);
    };
    const int64_t part = scan == nullptr ? 0 : partOf();
    if (part == 0) {
      rewriter.copy(node);
      continue;
    }
    any = true;
    rewriter.builder().setLocation(node.location);
    Splitter splitter{rewriter.builder(), node, *scan, graph};
    const Values results = splitter.cut(rewriter.mapped(node.operands), part);
    for (size_t i = 0; i < results.size(); ++i) rewriter.set(node.results[i], results[i]);
  }
  for (const Output& output : graph.outputs) rewriter.copyOutput(output);
  // Components that nobody reads are made no longer.
  return any ? removeDead(rewriter.take()) : rewriter.take();
}

}  // namespace lockstep::passes
