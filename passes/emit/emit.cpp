// SPDX-License-Identifier: Apache-2.0
#include "passes/emit/emit.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <tuple>

#include "passes/emit/emitters.h"
#include "passes/schedule/binding_windows.h"

namespace lockstep::passes {

using program::Dispatch;
using program::KernelId;
using program::Program;
using program::Range;
using program::SymbolicKernel;

namespace {

/// Bindings of one dispatch: a result whose bytes are an operand's shares its bindings.
BodyBindings bindingsOf(const Program& program, const Dispatch& dispatch, size_t inputs, const program::DeviceProfile& profile,
                        std::vector<Range>& ranges) {
  BodyBindings out{.inputs = {}, .results = {}, .window = windowWords(profile)};
  auto bytesOf = [&](const Range& range) {
    const program::Buffer& buffer = program[range.buffer];
    return std::tuple(buffer.arena, buffer.offset + range.offset, range.size, range.step);
  };
  // Two operands may be one range only when one of them is written too; equal read-only ranges stay apart, so that kernels depend on the
  // body alone.
  auto bind = [&](const Range& range, bool is_input) {
    auto same = is_input ? ranges.end() : std::ranges::find_if(ranges, [&](const Range& r) { return bytesOf(r) == bytesOf(range); });
    if (same == ranges.end()) same = ranges.insert(ranges.end(), range);
    if (range.access != kernel::Access::Read) same->access = kernel::Access::ReadWrite;
    return static_cast<uint32_t>(same - ranges.begin());
  };
  for (size_t i = 0; i < dispatch.bindings.size(); ++i) {
    std::vector<uint32_t>& numbers = (i < inputs ? out.inputs : out.results).emplace_back();
    for (const Range& window : windowsOf(dispatch.bindings[i], profile)) numbers.push_back(bind(window, i < inputs));
  }
  return out;
}

}  // namespace

Result<Program> emit(const Program& in, const EmitConfig& config) {
  Program program = in;
  program.kernels.clear();
  std::map<std::pair<uint32_t, std::vector<uint32_t>>, KernelId> made;  // by symbolic kernel and binding pattern
  std::map<std::string, KernelId> by_text;
  for (program::Command& command : program.commands) {
    auto* dispatch = std::get_if<Dispatch>(&command.action);
    if (dispatch == nullptr) continue;
    auto addOnce = [&](kernel::Module module) {
      auto [same, fresh] = by_text.try_emplace(print(module), KernelId(program.kernels.size()));
      std::string name = fmt::format("k{}_{}", program.kernels.size(), module.name);
      if (fresh) program.kernels.push_back({std::move(name), std::move(module)});
      return same->second;
    };
    if (const auto* module = std::get_if<kernel::Module>(&in[dispatch->kernel].code)) {  // the user's own
      dispatch->kernel = addOnce(*module);
      continue;
    }
    const auto& symbolic = std::get<SymbolicKernel>(in[dispatch->kernel].code);
    size_t inputs = dispatch->bindings.size() - symbolic.body.outputs.size();
    std::vector<Range> ranges;
    BodyBindings bindings = bindingsOf(in, *dispatch, inputs, config.profile, ranges);
    std::vector<uint32_t> pattern;
    for (const std::vector<uint32_t>& numbers : bindings.results) pattern.insert(pattern.end(), numbers.begin(), numbers.end());
    pattern.push_back(dispatch->groups[1]);
    if (dispatch->groups[1] > 1) pattern.push_back(dispatch->groups[0]);
    auto [found, inserted] = made.try_emplace({dispatch->kernel.value, pattern}, KernelId{});
    if (inserted) {
      const EmitQuery query{symbolic.body, bindings, dispatch->groups, config};
      LS_TRY(kernel::Module module, std::visit([&](const auto& plan) { return emitKernel(plan, query); }, symbolic.plan));
      module.name = nameOf(symbolic.plan);
      for (kernel::GlobalVariable& global : module.globals) {
        // Templates and emitters write workgroup memory before they read it.
        if (global.space == kernel::AddressSpace::Workgroup) global.zero_initialized = false;
      }
      found->second = addOnce(std::move(module));
    }
    dispatch->kernel = found->second;
    dispatch->bindings = std::move(ranges);
  }
  return program;
}

Entry beginEntry(kernel::Builder& b, const EmitQuery& query, uint32_t lanes) {
  Entry entry;
  entry.function = b.function("main", b.types().voidType());
  kernel::TypeId vec3 = b.types().vector(kernel::Scalar::U32, 3);
  kernel::ValueId group = b.parameter(entry.function, "group_id", vec3, kernel::Builtin::WorkgroupId);
  entry.lane = b.parameter(entry.function, "lane", b.types().u32(), kernel::Builtin::LocalInvocationIndex);
  b.setWorkgroupSize(entry.function, {lanes, 1, 1});
  b.enterFunction(entry.function);
  entry.group = b.extract(group, 0u);
  if (query.groups[1] > 1) {
    entry.group = b.make(kernel::Op::Add, {entry.group, b.make(kernel::Op::Mul, {b.extract(group, 1u), b.u32(query.groups[0])})});
  }
  return entry;
}

kernel::Module withVectors(const EmitQuery& query, int64_t width, const std::function<void(kernel::Builder&, BodyEmitter&)>& body) {
  BodyBindings bindings = query.bindings;
  bindings.width = width;
  for (;;) {
    kernel::Builder b;
    BodyEmitter emitter(query.body, b, bindings);
    body(b, emitter);
    if (emitter.readByElement().empty()) return b.take();
    bindings.scalars.insert(emitter.readByElement().begin(), emitter.readByElement().end());
  }
}

bool storesInPlace(const BodyBindings& bindings) {
  return std::ranges::any_of(bindings.results, [&](const std::vector<uint32_t>& result) {
    return std::ranges::any_of(bindings.inputs, [&](const std::vector<uint32_t>& input) { return input == result; });
  });
}

void awaitRowReads(kernel::Builder& b, const EmitQuery& query, int64_t lanes, bool reads_others) {
  if (lanes == 1 || !storesInPlace(query.bindings)) return;
  // An element that is picked out of the row is another lane's. The barriers of reductions are of workgroup memory alone.
  const auto picks = [&](graph::NodeId id) {
    const auto* element = std::get_if<graph::ElementLowering>(&*query.body[id].op->lower);
    return element != nullptr && element->within_row != nullptr;
  };
  if (reads_others || std::ranges::any_of(query.body.body().nodes, picks)) b.makeVoid(kernel::Op::StorageBarrier);
}

void forRange(kernel::Builder& b, kernel::ValueId begin, kernel::ValueId end, int64_t step, int64_t unroll, const std::string& name,
              const std::function<void(kernel::ValueId)>& body) {
  using kernel::Op;
  b.forRange(begin, end, b.u32(static_cast<uint32_t>(step * unroll)), name, [&](kernel::ValueId first) {
    body(first);
    for (int64_t i = 1; i < unroll; ++i) {
      kernel::ValueId next = b.make(Op::Add, {first, b.u32(static_cast<uint32_t>(i * step))});
      b.ifThen(b.make(Op::Lt, {next, end}), [&] { body(next); });
    }
  });
}

kernel::ValueId neutralOf(kernel::Builder& b, const graph::ReduceLowering& reduce, graph::DType dtype) {
  return graph::kernelConstant(b, dtype, reduce.neutral(dtype));
}

kernel::ValueId workgroupArray(kernel::Builder& b, std::string name, kernel::TypeId element, int64_t count) {
  return b.global({.name = std::move(name),
                   .value = {},
                   .type = b.types().array(element, static_cast<uint32_t>(count)),
                   .space = kernel::AddressSpace::Workgroup,
                   .access = kernel::Access::ReadWrite,
                   .group = 0,
                   .binding = 0,
                   .initializer = {}});
}

kernel::ValueId combineLanes(kernel::Builder& b, const graph::ReduceLowering& reduce, kernel::ValueId accumulated, kernel::ValueId scratch,
                             kernel::ValueId invocation, kernel::ValueId lane, int64_t lanes, int64_t stride) {
  using kernel::Op;
  auto slot = [&](kernel::ValueId index) { return b.access(scratch, {index}, true); };
  b.store(slot(invocation), accumulated);
  b.makeVoid(Op::WorkgroupBarrier);
  for (int64_t half = lanes / 2; half > 0; half /= 2) {
    b.ifThen(b.make(Op::Lt, {lane, b.u32(static_cast<uint32_t>(half))}), [&] {
      kernel::ValueId other = b.make(Op::Add, {invocation, b.u32(static_cast<uint32_t>(half * stride))});
      // One statement each: the order of arguments is the compiler's choice.
      const kernel::ValueId theirs = b.load(slot(other));
      const kernel::ValueId own = b.load(slot(invocation));
      const kernel::ValueId both = reduce.combine(b, own, theirs);
      b.store(slot(invocation), both);
    });
    b.makeVoid(Op::WorkgroupBarrier);
  }
  kernel::ValueId first = b.make(Op::Sub, {invocation, stride == 1 ? lane : b.make(Op::Mul, {lane, b.u32(static_cast<uint32_t>(stride))})});
  kernel::ValueId result = b.load(slot(first));
  b.makeVoid(Op::WorkgroupBarrier);  // the scratch may be used again
  return result;
}

}  // namespace lockstep::passes
