// SPDX-License-Identifier: Apache-2.0
// What a tracer noted of one value, as lines for people.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "backends/reference/sanitize/tracer.h"
#include "backends/why.h"
#include "ir/kernel/module.h"

namespace lockstep::reference {

/// "y[5]", as --why counts: in words of 4 bytes, in a variable that has f16 in halves of 2 bytes.
std::string textOf(const TracedPlace& place, const Bytecode& code);

class Explainer {
 public:
  /// `kernel` is the kernel's name in the program, `module` what `code` was decoded from. Everything outlives the explainer.
  Explainer(const Bytecode& code, const kernel::Module& module, const std::string& kernel, std::array<uint32_t, 3> groups,
            const Tracer& tracer, uint64_t group)
      : code_(code), module_(module), kernel_(kernel), groups_(groups), nodes_(tracer.nodes()), group_(group) {}

  /// The lines of a node and of what it was made of.
  std::vector<WhyLine> explain(uint32_t node);

 private:
  [[nodiscard]] char typeOf(const TraceNode& node) const;
  [[nodiscard]] char typeOfOperand(const TraceNode& node, size_t operand) const;
  [[nodiscard]] kernel::Scalar scalarOf(const TraceNode& node) const;
  [[nodiscard]] std::string formula(const TraceNode& node) const;
  [[nodiscard]] bool isMove(const TraceNode& node) const;
  void line(const TraceNode& node, uint32_t depth, std::string text);
  void visit(uint32_t id, uint32_t depth);

  const Bytecode& code_;
  const kernel::Module& module_;
  const std::string& kernel_;
  std::array<uint32_t, 3> groups_;
  const std::vector<TraceNode>& nodes_;
  uint64_t group_;
  std::vector<WhyLine> lines_;
  std::set<uint32_t> shown_;
  using Round = std::tuple<uint32_t, TraceNode::Kind, uint32_t>;  ///< instruction, what it did and lane
  std::map<Round, uint32_t> rounds_;                              ///< how many lines above are of them
};

}  // namespace lockstep::reference
