// SPDX-License-Identifier: Apache-2.0
// What the templates of the selective scan share. An invocation has one channel of one chunk, or one state of one chunk, so no sum crosses
// invocations: every template runs on every device, and gives the same bits every time.
#pragma once

#include <initializer_list>

#include "ir/ops/support/common.h"

namespace lockstep::graph {

/// What an operand of such a template is.
enum class ScanRole : uint8_t {
  OfChannels,  ///< [B, L, D]
  Rates,       ///< a [D, N]
  OfStates,    ///< [B, L, N]
  OfChunks     ///< a state per chunk, [B, C, N, D]: neighbouring invocations have neighbouring channels
};

struct ScanLines {
  int64_t batch = 1, length = 1, channels = 1, states = 1, chunk = 1;
  bool hold = false;
  [[nodiscard]] int64_t chunks() const { return (length + chunk - 1) / chunk; }
  [[nodiscard]] Shape ofChannels() const { return {batch, length, channels}; }
  [[nodiscard]] Shape ofStates() const { return {batch, length, states}; }
  [[nodiscard]] Shape ofChunks() const { return {batch, chunks(), states, channels}; }
};
/// The first operand is over channels and the third is a.
ScanLines scanLines(const Shape& x, const Shape& a, const Attributes& attributes);

inline constexpr ConstantList<Constraint> kScanTemplateConstraints{
    {"C1", "operands are f32"},    {"C2", "operands over channels are [B, L, D]"},
    {"C3", "a is [D, N]"},         {"C4", "operands over states are [B, L, N]"},
    {"C5", "chunk is at least 1"}, {"C6", "states of chunks are [B, ceil(L / chunk), N, D], of at most 2^31 - 1 elements"}};

/// C1 to C6; `roles`: of the operands.
Result<ScanLines> checkScanTemplate(std::string_view op, const InferContext& context, std::initializer_list<ScanRole> roles);

/// The tensors by the names of their hooks, each in its own shape, and the numbers that all of these templates have.
TemplateShape scanTemplate(const Graph& graph, const Node& node, const ScanLines& lines, std::initializer_list<std::string_view> operands,
                           std::initializer_list<std::string_view> results);

/// For the evaluators: the gradients of all chunks from u, delta, a, b, c, d_y, the states before them and what flows back after them.
struct ScanChunkGradients {
  std::vector<double> u, delta, rates;  ///< rates [B, C, N, D]
  std::vector<double> b, c;             ///< [parts, B, L, N]
};
ScanChunkGradients evaluateChunkGradients(const EvaluateContext& context, int64_t part);

/// Operands of a case by their roles, of which the second one is delta.
std::vector<OperandCase> scanTemplateOperands(const ScanLines& lines, std::initializer_list<ScanRole> roles);

}  // namespace lockstep::graph
