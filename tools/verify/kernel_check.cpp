// SPDX-License-Identifier: Apache-2.0
#include "tools/verify/kernel_check.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "runtime/memory_array.h"
#include "tools/kernel/kernel_run.h"
#include "tools/verify/replay.h"

namespace lockstep::tools {
namespace {

using program::ArenaRole;
using program::Buffer;
using program::Dispatch;
using program::Program;
using program::Range;

constexpr uint64_t kWord = sizeof(uint32_t);

/// Bytes of an arena that one dispatch binds.
struct Span {
  program::ArenaId arena;
  uint64_t begin = 0, end = 0;
  friend auto operator<=>(const Span&, const Span&) = default;
};

Span spanOf(const Program& program, const Range& range) {
  const uint64_t begin = program[range.buffer].offset + range.offset;
  return {program[range.buffer].arena, begin, begin + range.size};
}

/// The spans of all bindings; those that overlap are one.
std::vector<Span> spansOf(const Program& program, const std::vector<Range>& ranges) {
  std::vector<Span> spans, joined;
  for (const Range& range : ranges) spans.push_back(spanOf(program, range));
  std::ranges::sort(spans);
  for (const Span& span : spans) {
    if (!joined.empty() && joined.back().arena == span.arena && span.begin < joined.back().end) {
      joined.back().end = std::max(joined.back().end, span.end);
    } else {
      joined.push_back(span);
    }
  }
  return joined;
}

const kernel::Module& moduleOf(const Program& program, const Dispatch& action) {
  return std::get<kernel::Module>(program[action.kernel].code);
}

/// Names the kernel in what a device says of it.
Failure inKernel(Failure failure, const Program& program, size_t command, std::string_view who) {
  const auto& action = std::get<Dispatch>(program.commands[command].action);
  failure.diagnostics.front().notes.push_back(
      {.message = fmt::format("{} ran kernel {} (command {} of {}: {})", who, program[action.kernel].name, command + 1,
                              program.commands.size(), program.commands[command].label),
       .where = {}});
  return failure;
}

}  // namespace

std::string elementName(const Program& program, const Range& range, size_t index) {
  const Buffer& buffer = program[range.buffer];
  const auto place = static_cast<int64_t>(range.offset / graph::byteSize(buffer.type.dtype) + index);
  for (const program::PersistentState& state : program.states) {
    if (state.buffer != range.buffer) continue;
    for (const program::StatePart& part : state.parts) {
      const auto info = std::ranges::find(program.parameters, part.parameter, &graph::ParameterInfo::name);
      if (info == program.parameters.end() || place < part.offset || place >= part.offset + info->type.shape.elementCount()) continue;
      const std::string name = info->name + indexText(info->type.shape, place - part.offset);
      return buffer.name == "params" ? name : fmt::format("{} of {}", buffer.name, name);
    }
  }
  if (place >= buffer.type.shape.elementCount()) return fmt::format("{} (padding {})", buffer.name, place);
  return buffer.name + indexText(buffer.type.shape, place);
}

Bytes JudgedDispatch::bytesOf(const std::vector<Bytes>& buffers, size_t binding) const {
  const BufferBinding& bound = dispatch.bindings[binding];
  const auto begin = buffers[bound.buffer].begin() + static_cast<std::ptrdiff_t>(bound.offset);
  return {begin, begin + static_cast<std::ptrdiff_t>(bound.size)};
}

io::Array JudgedDispatch::arrayOf(const std::vector<Bytes>& buffers, size_t binding) const {
  const Slot slot{.group = 0, .binding = static_cast<uint32_t>(binding)};
  return toArray(bytesOf(buffers, binding), dispatch.module, *findVariable(dispatch.module, slot));
}

io::Array JudgedDispatch::elementsOf(const std::vector<Bytes>& buffers, size_t binding) const {
  if (!isPacked(binding)) return arrayOf(buffers, binding);
  const graph::DType dtype = types[binding];
  const Bytes bytes = bytesOf(buffers, binding);
  return detail::arrayIn({dtype, graph::Shape{static_cast<int64_t>(bytes.size() / graph::byteSize(dtype))}}, bytes);
}

Result<KernelCheck> KernelCheck::make(Program program, const io::TensorFile& inputs) {
  LS_TRY(program::ValidProgram valid, program::validate(std::move(program)));
  KernelCheck check(std::move(valid));
  const Program& p = *check.program_;
  for (const program::Arena& arena : p.arenas) check.arenas_.emplace_back(arena.size);
  const auto place = [&](const Buffer& buffer, std::span<const std::byte> bytes) {
    std::ranges::copy(bytes, check.arenas_[buffer.arena.index()].begin() + static_cast<std::ptrdiff_t>(buffer.offset));
  };
  for (const program::ConstantData& data : p.constants) place(p[data.buffer], std::as_bytes(std::span(data.words)));
  for (const program::InputPort& port : p.inputs) {
    LS_TRY(const Bytes bytes, leafBytes(inputs, port.name, p[port.buffer].type));
    place(p[port.buffer], bytes);
  }
  for (const Buffer& buffer : p.buffers) {
    if (buffer.role != ArenaRole::State) continue;
    const bool persists = std::ranges::any_of(p.states, [&](const program::PersistentState& s) { return &p[s.buffer] == &buffer; });
    if (!persists && inputs.find(buffer.name) == nullptr) {
      const std::vector<double> initial(static_cast<size_t>(buffer.type.shape.elementCount()), buffer.initial);
      place(buffer, detail::encodeArray(buffer.type, initial).data);
      continue;
    }
    LS_TRY(const Bytes bytes, leafBytes(inputs, buffer.name, buffer.type));
    place(buffer, bytes);
  }
  return check;
}

io::TensorFile KernelCheck::outputs() const {
  const Program& p = *program_;
  io::TensorFile file;
  const auto add = [&](graph::OutputKind kind, const std::string& name, const Buffer& buffer) {
    const std::byte* begin = arenas_[buffer.arena.index()].data() + buffer.offset;
    file.tensors.emplace(outputName(kind, name), detail::arrayIn(buffer.type, {begin, buffer.type.byteSize()}));
  };
  for (const program::OutputPort& port : p.outputs) add(port.kind, port.name, p[port.buffer]);
  for (const Buffer& buffer : p.buffers) {
    if (buffer.role == ArenaRole::State) add(graph::OutputKind::NextState, buffer.name, buffer);
  }
  return file;
}

std::byte* KernelCheck::bytesOf(const Range& range) {
  const Buffer& buffer = (*program_)[range.buffer];
  return arenas_[buffer.arena.index()].data() + buffer.offset + range.offset;
}

JudgedDispatch KernelCheck::prepare(const Dispatch& action) {
  const Program& p = *program_;
  JudgedDispatch run;
  run.dispatch.module = moduleOf(p, action);
  // Alone a kernel is called as its entry point is.
  for (kernel::Function& function : run.dispatch.module.functions) {
    if (function.workgroup_size) function.name = p[action.kernel].name;
  }
  run.dispatch.groups = action.groups;
  run.dispatch.immediates.resize(action.immediates.size() * kWord);
  if (!action.immediates.empty()) std::memcpy(run.dispatch.immediates.data(), action.immediates.data(), run.dispatch.immediates.size());
  const std::vector<Span> spans = spansOf(p, action.bindings);
  for (const Span& span : spans) {
    const std::byte* begin = arenas_[span.arena.index()].data();
    run.before.emplace_back(begin + span.begin, begin + span.end);
    run.dispatch.buffer_sizes.push_back(span.end - span.begin);
  }
  for (size_t i = 0; i < action.bindings.size(); ++i) {
    const Span own = spanOf(p, action.bindings[i]);
    run.types.push_back(p[action.bindings[i].buffer].type.dtype);
    const auto holder = std::ranges::find_if(
        spans, [&](const Span& span) { return span.arena == own.arena && span.begin <= own.begin && own.end <= span.end; });
    run.dispatch.bindings.push_back({.group = 0,
                                     .binding = static_cast<uint32_t>(i),
                                     .buffer = static_cast<size_t>(holder - spans.begin()),
                                     .offset = own.begin - holder->begin,
                                     .size = own.end - own.begin});
  }
  run.want = run.before;
  run.got = run.before;
  return run;
}

void KernelCheck::keep(const Dispatch& action, const JudgedDispatch& run) {
  for (size_t i = 0; i < action.bindings.size(); ++i) {
    if (action.bindings[i].access == kernel::Access::Read) continue;
    std::ranges::copy(run.bytesOf(run.want, i), bytesOf(action.bindings[i]));
  }
}

Result<std::optional<KernelDifference>> KernelCheck::compare(size_t command, const Dispatch& action, JudgedDispatch run) {
  std::optional<DispatchBounds> bounds;  // found where they are needed
  for (size_t i = 0; i < action.bindings.size(); ++i) {
    if (action.bindings[i].access == kernel::Access::Read) continue;
    const io::Array want = run.elementsOf(run.want, i), got = run.elementsOf(run.got, i);
    counts_.elements += want.elementCount();
    if (compareArrays(got, want, std::vector<double>(want.elementCount(), 0)).equal()) continue;
    if (!bounds) {
      LS_TRY(bounds, boundsOf(run));
    }
    const ArrayDifference numbers = compareArrays(got, want, bounds->elements[i]);
    if (!numbers.within() && numbers.beyond <= bounds->unstable_choices) {
      counts_.chosen += numbers.beyond;
      continue;
    }
    if (numbers.bound > 0 && numbers.units > counts_.closest) {
      counts_.closest = numbers.units;
      counts_.closest_command = command;
    }
    if (numbers.within()) continue;
    return std::optional(KernelDifference{.command = command,
                                          .round = rounds_,
                                          .binding = i,
                                          .element = elementName(*program_, action.bindings[i], numbers.worst),
                                          .numbers = numbers,
                                          .run = std::move(run),
                                          .bounds = std::move(bounds->elements[i]),
                                          .unstable_choices = bounds->unstable_choices});
  }
  return std::optional<KernelDifference>();
}

Result<std::optional<KernelDifference>> KernelCheck::run(Backend& judge, Backend& device) {
  const Program& p = *program_;
  std::optional<KernelDifference> found;
  LS_CHECK(program::forEachRun(p, [&](size_t i, uint32_t iteration) -> Status {
    if (found) return Success{};
    const program::Action any = program::inIteration(p.commands[i].action, iteration);
    if (const auto* copy = std::get_if<program::Copy>(&any)) {
      std::memmove(bytesOf(copy->target), bytesOf(copy->source), copy->source.size);
    } else if (const auto* fill = std::get_if<program::Fill>(&any)) {
      const std::vector<uint32_t> words(fill->target.size / kWord, fill->pattern);
      std::memcpy(bytesOf(fill->target), words.data(), words.size() * kWord);
    } else {
      const auto& action = std::get<Dispatch>(any);
      JudgedDispatch run = prepare(action);
      LS_TRY(const program::ValidProgram alone, makeProgram(run.dispatch));
      if (const Status ran = runDispatch(judge, alone, run.want); !ran.ok()) return inKernel(ran.failure(), p, i, "the judge");
      if (const Status ran = runDispatch(device, alone, run.got); !ran.ok()) return inKernel(ran.failure(), p, i, "the device");
      ++counts_.dispatches;
      keep(action, run);
      LS_TRY(found, compare(i, action, std::move(run)));
    }
    return Success{};
  }));
  if (!found) ++rounds_;
  return found;
}

}  // namespace lockstep::tools
