// SPDX-License-Identifier: Apache-2.0
// Accesses that are right and slow: neighbouring invocations whose words are far apart, although a loop or another id walks over
// neighbouring words; and one invocation that walks over an array while the others of its workgroup wait. Arrays of a fixed size are left
// alone: whoever knows the size has chosen.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "frontend/wgsl/lint/index_form.h"
#include "frontend/wgsl/lint/lints.h"
#include "frontend/wgsl/lint/range_walk.h"

namespace lockstep::wgsl {
namespace {

using kernel::AddressSpace;
using What = TermKey::What;

/// GPUs move memory in pieces of this many bytes.
constexpr int64_t kPiece = 128;
/// A loop of one invocation over no more elements is short.
constexpr uint64_t kFewRounds = 32;

class AccessPatterns {
 public:
  AccessPatterns(const LintInput& input, const InvocationFlow& flow, LintReporter& reporter)
      : input_(input), flow_(flow), reporter_(reporter), size_(flow.size()) {}

  void run() {
    const auto fastest = std::ranges::find_if(size_, [](uint32_t count) { return count > 1; });
    if (fastest == size_.end()) return;
    const auto axis = static_cast<uint32_t>(fastest - size_.begin());
    for (const MemoryAccess& access : flow_.accesses()) {
      visitStride(access, axis);
      visitSerial(access);
    }
  }

 private:
  void visitStride(const MemoryAccess& access, uint32_t axis) {
    if (flow_.spaceOf(access.root) != AddressSpace::Storage || strided_.contains(access.root)) return;
    const auto form = indexForm(flow_, access.pointer);
    if (!form || !form->runtime_sized || !isFar(*form, axis) || !hasNearTerm(*form, access, axis)) return;
    const auto where = findPlace(input_, flow_.module(), *access.instruction, reporter_.source());
    if (!where) return;
    strided_.insert(access.root);
    reporter_.report(
        DiagnosticRule::AccessPattern, *where,
        fmt::format("neighbouring invocations (local_invocation_id.{}) access elements of '{}' that are a row apart: each needs "
                    "a piece of memory of its own",
                    "xyz"[axis], nameOf(access)),
        "let local_invocation_id.x count neighbouring elements, or go through workgroup memory");
  }

  /// Whether the next invocation is at least a piece away.
  [[nodiscard]] static bool isFar(const IndexForm& form, uint32_t axis) {
    bool found = false;
    for (const auto& [key, times] : form.terms) {
      if (key.what != What::Lane || key.which != axis) continue;
      if (key.factor == 0 && std::abs(times) < kPiece) return false;
      found = true;
    }
    return found;
  }

  /// Whether a loop's counter or another id of the workgroup goes from element to element.
  [[nodiscard]] bool hasNearTerm(const IndexForm& form, const MemoryAccess& access, uint32_t axis) const {
    return std::ranges::any_of(form.terms, [&](const auto& term) {
      const auto& [key, times] = term;
      const bool counts = (key.what == What::Variable && access.loops > 0) || (key.what == What::Lane && key.which != axis);
      return counts && key.factor == 0 && std::abs(times) == int64_t{form.element_bytes};
    });
  }

  void visitSerial(const MemoryAccess& access) {
    const AddressSpace space = flow_.spaceOf(access.root);
    const uint64_t lanes = uint64_t{size_[0]} * size_[1] * size_[2];
    Ids all = 0;
    for (size_t axis = 0; axis < 3; ++axis) all |= size_[axis] > 1 ? laneId(axis) : Ids(0);
    const bool waits = lanes >= kFewRounds && access.loops > 0 && (access.reached.single & kLanes) == all;
    if (!waits || reported_ || (space != AddressSpace::Storage && space != AddressSpace::Workgroup) || access.isStore()) return;
    const auto form = indexForm(flow_, access.pointer);
    if (!form || !form->has(What::Variable) || (space == AddressSpace::Storage && !form->runtime_sized)) return;
    if (const auto most = highest(*form); most && *most < kFewRounds) return;
    const auto where = findPlace(input_, flow_.module(), *access.instruction, reporter_.source());
    if (!where) return;
    reported_ = true;
    reporter_.report(DiagnosticRule::AccessPattern, *where,
                     fmt::format("one invocation walks over '{}' while the other {} of its workgroup wait", nameOf(access), lanes - 1),
                     "let every invocation take a part and add the parts up in log2 steps");
  }

  /// The largest number that the counter of the loop can be.
  [[nodiscard]] std::optional<uint64_t> highest(const IndexForm& form) {
    if (counters_.empty()) {
      RangeWalk(flow_.module()).run([&](const kernel::Instruction& x, const kernel::ValueRanges& ranges) {
        if (x.op != kernel::Op::Access) return;
        for (size_t k = 1; k < x.operands.size(); ++k) {
          const kernel::Instruction* load = kernel::definition(flow_.module(), x.operands[k]);
          if (load == nullptr || load->op != kernel::Op::Load) continue;
          int64_t& known = counters_[load->operands[0].value];
          known = std::max(known, ranges.rangeOf(x.operands[k]).high);
        }
      });
    }
    std::optional<uint64_t> most;
    for (const auto& [key, times] : form.terms) {
      if (key.what != What::Variable) continue;
      const auto counter = counters_.find(key.which);
      if (counter == counters_.end()) return std::nullopt;
      most = std::max(most.value_or(0), static_cast<uint64_t>(counter->second));
    }
    return most;
  }

  [[nodiscard]] std::string_view nameOf(const MemoryAccess& access) const {
    const auto& globals = flow_.module().globals;
    return std::ranges::find(globals, access.root, &kernel::GlobalVariable::value)->name;
  }

  const LintInput& input_;
  const InvocationFlow& flow_;
  LintReporter& reporter_;
  std::array<uint32_t, 3> size_;
  std::set<kernel::ValueId> strided_;
  std::map<uint32_t, int64_t> counters_;  // by variable: the most that it is in an index
  bool reported_ = false;
};

}  // namespace

void lintAccessPattern(const LintInput& input, LintReporter& reporter) {
  forEachEntryPoint(*input.module,
                    [&](const kernel::Function&, const InvocationFlow& flow) { AccessPatterns(input, flow, reporter).run(); });
}

}  // namespace lockstep::wgsl
