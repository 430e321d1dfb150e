// SPDX-License-Identifier: Apache-2.0
#include "backends/why.h"

#include <fmt/format.h>

#include <algorithm>

#include "backends/reference/sanitize/explainer.h"
#include "backends/reference/sanitize/tracer.h"
#include "ir/kernel/module.h"

namespace lockstep {
namespace {

using reference::Bytecode;
using reference::TracedPlace;
using reference::Tracer;
using reference::Variable;

/// Invocations whose values went into the element and that are followed.
constexpr size_t kMostLanes = 64;

/// Workgroups of the dispatch, each on the memory that those before it left.
class Run {
 public:
  Run(const Bytecode& code, const program::ValidProgram& program, const program::Dispatch& dispatch, std::vector<Bytes> buffers)
      : code_(code), dispatch_(dispatch), buffers_(std::move(buffers)) {
    // What the host gives may end within a word.
    for (size_t k = 0; k < buffers_.size(); ++k) buffers_[k].resize(program->buffers[k].size);
  }

  /// Workgroups first .. end - 1, which the tracer sees where there is one.
  void operator()(uint64_t first, uint64_t end, Tracer* tracer) {
    std::vector<reference::BufferView> views;
    for (const program::Range& range : dispatch_.bindings) {
      Bytes& bytes = buffers_[range.buffer.index()];
      views.push_back({.words = reinterpret_cast<uint32_t*>(bytes.data() + range.offset), .count = static_cast<uint32_t>(range.size / 4)});
    }
    std::vector<uint32_t> immediates = dispatch_.immediates;
    views.push_back({.words = immediates.data(), .count = static_cast<uint32_t>(immediates.size())});
    reference::Machine machine(code_, views, dispatch_.groups, {.checks = false, .tracer = tracer});
    for (uint64_t group = first; group < end; ++group) machine.run(group, 1);
  }

 private:
  const Bytecode& code_;
  const program::Dispatch& dispatch_;
  std::vector<Bytes> buffers_;
};

}  // namespace

Result<std::vector<WhyLine>> why(const program::ValidProgram& program, const std::vector<Bytes>& buffers, size_t buffer, uint64_t index) {
  const auto* dispatch = program->commands.empty() ? nullptr : std::get_if<program::Dispatch>(&program->commands.front().action);
  if (dispatch == nullptr) return fail("why.word", "the program has no dispatch");
  const kernel::Module& module = *program.modules()[dispatch->kernel.index()];
  LS_TRY(const Bytecode code, reference::decode(module, 1, {}));
  const auto binding =
      std::ranges::find_if(dispatch->bindings, [&](const program::Range& range) { return range.buffer.index() == buffer; });
  const auto variable = std::ranges::find_if(code.variables, [&](const Variable& one) {
    return one.home == reference::Home::Buffer && one.binding == static_cast<uint32_t>(binding - dispatch->bindings.begin());
  });
  if (binding == dispatch->bindings.end() || variable == code.variables.end())
    return fail("why.word", fmt::format("the kernel has no buffer number {}", buffer));
  const uint64_t unit = variable->has_halves ? 2 : 4, count = binding->size / unit;
  const char* units = variable->has_halves ? "halves of 2 bytes, because there is f16 in it" : "words of 4 bytes";
  if (index >= count) {
    return fail("why.word", fmt::format("{} has {} {}: there is no {}[{}]", variable->name, count, units, variable->name, index), {},
                count == 0 ? "bind a larger buffer" : fmt::format("they count from 0, the last is {}[{}]", variable->name, count - 1));
  }
  const TracedPlace target{.variable = static_cast<uint32_t>(variable - code.variables.begin()), .byte = index * unit};
  const uint64_t groups = uint64_t{dispatch->groups[0]} * dispatch->groups[1] * dispatch->groups[2];
  Tracer finder(code, target, UINT64_MAX, {});
  Run(code, program, *dispatch, buffers)(0, groups, &finder);
  if (!finder.writer()) {
    return fail("why.word", fmt::format("no invocation wrote {}[{}], one of {} {}", variable->name, index, count, units), {},
                "it has the value that was bound");
  }
  const uint64_t group = finder.writer()->group;
  std::set<uint32_t> lanes{finder.writer()->lane};
  // Only the workgroup that wrote it is followed, so only that one runs again.
  Run before(code, program, *dispatch, buffers);
  before(0, group, nullptr);
  for (;;) {
    Tracer tracer(code, target, group, lanes);
    Run run = before;
    run(group, group + 1, &tracer);
    const size_t known = lanes.size();
    for (const uint32_t lane : tracer.wanted())
      if (lanes.size() < kMostLanes) lanes.insert(lane);
    if (lanes.size() > known) continue;
    if (tracer.result() == reference::TraceNode::kNone)
      return fail("why.word", fmt::format("{}[{}] was made by more than {} operations", variable->name, index, tracer.nodes().size()), {},
                  "run the kernel on less data");
    const std::string& kernel = (*program)[dispatch->kernel].name;
    return reference::Explainer(code, module, kernel, dispatch->groups, tracer, group).explain(tracer.result());
  }
}

}  // namespace lockstep
