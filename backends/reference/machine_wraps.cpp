// SPDX-License-Identifier: Apache-2.0
// Indices that are computed once more without wrapping. First for all lanes at once, in intervals; only where one of these does not fit 32
// bits, lane by lane.
#include <algorithm>
#include <array>
#include <cmath>

#include "backends/reference/machine.h"
#include "backends/reference/sanitize/watch.h"
#include "backends/reference/wraps.h"

namespace lockstep::reference {
namespace {

using Node = IndexExpression::Node;

constexpr double kTwo32 = 4294967296.0;

struct Range {
  double low = 0, high = 0;
};

/// One operation: in numbers, and in 32 bits.
struct Row {
  Opcode op;
  double (*exact)(double a, double b);
  uint32_t (*wrapping)(uint32_t a, uint32_t b);
};
constexpr Row kRows[] = {
    {Opcode::AddI, [](double a, double b) { return a + b; }, [](uint32_t a, uint32_t b) { return a + b; }},
    {Opcode::SubI, [](double a, double b) { return a - b; }, [](uint32_t a, uint32_t b) { return a - b; }},
    {Opcode::MulI, [](double a, double b) { return a * b; }, [](uint32_t a, uint32_t b) { return a * b; }},
    {Opcode::Shl, [](double a, double b) { return std::ldexp(a, static_cast<int>(static_cast<int64_t>(b) & 31)); },
     [](uint32_t a, uint32_t b) { return a << (b & 31); }},
    {Opcode::NegI, [](double a, double) { return -a; }, [](uint32_t a, uint32_t) { return 0 - a; }},
    {Opcode::RemU, nullptr, [](uint32_t a, uint32_t b) { return b == 0 ? 0 : a % b; }},
    {Opcode::RemI, nullptr,
     [](uint32_t a, uint32_t b) {
       return b == 0 || b == ~0u ? 0 : static_cast<uint32_t>(static_cast<int32_t>(a) % static_cast<int32_t>(b));
     }},
};
const Row& rowOf(Opcode op) { return *std::ranges::find(kRows, op, &Row::op); }

/// Corners give the extremes of what is monotone in each operand.
Range rangeOf(const Node& node, const Range& a, const Range& b) {
  Range range{HUGE_VAL, -HUGE_VAL};
  for (const double left : {a.low, a.high}) {
    for (const double right : {b.low, b.high}) {
      const double value = rowOf(node.op).exact(left, right);
      range = {std::min(range.low, value), std::max(range.high, value)};
    }
  }
  return range;
}

}  // namespace

double withoutWrapping(Opcode op, double a, double b) { return rowOf(op).exact(a, b); }

void Machine::watchIndex(const Instruction& x) {
  const MemoryAccess& leaves = code_.accesses[x.access];
  const std::vector<Node>& nodes = code_.expressions[leaves.expression].nodes;
  const auto leafOf = [&](const Node& node, uint32_t lane, bool negatives = true) {
    const MemoryValue& value = leaves.values[node.a];
    const uint32_t bits = r_[value.slot + (value.varying ? lane : 0)];
    const bool negative = negatives && !value.varying && !node.is_signed && bits > kNegativeConstants;
    return numberOf(bits, node.is_signed || negative);
  };
  std::array<Range, IndexExpression::kMost> ranges;
  bool all_fit = true;
  for (size_t k = 0; k < nodes.size() && all_fit; ++k) {
    const Node& node = nodes[k];
    if (node.is_leaf) {
      const MemoryValue& value = leaves.values[node.a];
      if (value.varying) {
        const MinMax found = routines_.minMax(r_ + value.slot, lanes_, node.is_signed);
        ranges[k] = {numberOf(found.min, node.is_signed), numberOf(found.max, node.is_signed)};
      } else {
        ranges[k] = {leafOf(node, 0), leafOf(node, 0)};
      }
      continue;
    }
    const bool remains = rowOf(node.op).exact == nullptr;
    ranges[k] =
        remains ? Range{node.is_signed ? -ranges[node.b].high : 0, ranges[node.b].high} : rangeOf(node, ranges[node.a], ranges[node.b]);
    all_fit = remains || (fits32(ranges[k].low, node.is_signed) && fits32(ranges[k].high, node.is_signed));
  }
  if (!all_fit) watchIndexOfLanes(x, leafOf);
}

template <class Leaf>
void Machine::watchIndexOfLanes(const Instruction& x, const Leaf& leafOf) {
  const MemoryAccess& leaves = code_.accesses[x.access];
  const IndexExpression& expression = code_.expressions[leaves.expression];
  const MemoryValue& result = leaves.values.back();
  std::array<double, IndexExpression::kMost> values{};
  std::array<uint32_t, IndexExpression::kMost> bits{};
  const bool is_signed = expression.nodes.back().is_signed;
  struct Wrapped {
    const Node* node = nullptr;  // null where what is left is the index all the same
    double value = 0;
  };
  const auto firstWrapped = [&](uint32_t lane, bool negatives) {
    Wrapped first;
    for (size_t k = 0; k < expression.nodes.size(); ++k) {
      const Node& node = expression.nodes[k];
      if (node.is_leaf) {
        const MemoryValue& value = leaves.values[node.a];
        bits[k] = r_[value.slot + (value.varying ? lane : 0)];
        values[k] = leafOf(node, lane, negatives);
        continue;
      }
      const double a = values[node.a], b = values[node.b];
      const Row& row = rowOf(node.op);
      bits[k] = row.wrapping(bits[node.a], bits[node.b]);
      // The remainder of a number below 0 is meant to be one from the end; that of a number that is much too large is one of a hash.
      if (row.exact == nullptr) {
        const bool below = node.op == Opcode::RemU && a < 0 && a > -kTwo32 / 2 && b > 0;
        values[k] = below ? std::fmod(std::fmod(a, b) + b, b) : numberOf(bits[k], node.is_signed);
        continue;
      }
      values[k] = row.exact(a, b);
      if (first.node == nullptr && !fits32(values[k], node.is_signed)) first = {&node, values[k]};
    }
    const uint32_t index = r_[result.slot + (result.varying ? lane : 0)];
    return values[expression.nodes.size() - 1] == numberOf(index, is_signed) ? Wrapped{} : first;
  };
  for (uint32_t lane = 0; lane < (result.varying ? lanes_ : 1); ++lane) {
    if (result.varying && !isActive(lane)) continue;
    const Wrapped first = firstWrapped(lane, true);
    // A constant that may stand for a negative number may also be a large one: 4294967295u + 0u does not wrap.
    if (first.node == nullptr || firstWrapped(lane, false).node == nullptr) continue;
    options_.watch->add({.code = FindingCode::Wrap,
                         .site = first.node->site,
                         .other_site = x.site,
                         .invocation = options_.watch->invocation(result.varying ? lane : firstActive()),
                         .variable = expression.variable,
                         .op = first.node->op,
                         .exact = first.value});
  }
}

}  // namespace lockstep::reference
