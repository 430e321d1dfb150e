// SPDX-License-Identifier: Apache-2.0
#include "passes/schedule/loop_commands.h"

#include <fmt/format.h>

#include <optional>

namespace lockstep::passes {

using program::ArenaRole;
using program::Buffer;
using program::BufferId;
using program::Command;
using program::Copy;
using program::Dispatch;
using program::Fill;
using program::KernelId;
using program::Program;
using program::Range;

namespace {

class Splicer {
 public:
  Splicer(const Program& body, const LoopPlaces& places, Program& outer, KernelTable& kernels)
      : body_(body), places_(places), outer_(outer), kernels_(kernels), there_(body.buffers.size()) {}

  std::vector<Command> run() {
    for (const program::InputPort& port : body_.inputs) placePort(port.buffer, places_.leaves.at(port.name), true);
    for (const program::OutputPort& port : body_.outputs) placePort(port.buffer, places_.outputs.at(port.name), false);
    for (const program::PersistentState& state : body_.states) there_[state.buffer.index()] = places_.states.at(body_[state.buffer].name);
    for (size_t i = 0; i < body_.buffers.size(); ++i) {
      if (!there_[i]) there_[i] = LoopPlace{add(body_.buffers[i]), 0, 0};
    }
    for (program::ConstantData data : body_.constants) {
      data.buffer = there_[data.buffer.index()]->buffer;
      outer_.constants.push_back(std::move(data));
    }
    for (const program::Kernel& kernel : body_.kernels) {
      const auto* symbolic = std::get_if<program::SymbolicKernel>(&kernel.code);
      kernel_.push_back(symbolic != nullptr ? kernels_.add(*symbolic) : kernels_.add(kernel.name, std::get<kernel::Module>(kernel.code)));
    }
    const uint32_t first = before_.empty() ? 0 : 1;
    std::vector<Command> commands = std::move(before_);
    for (const Command& command : body_.commands) {
      Command moved = command;
      moved.level += first;
      std::visit([&](auto& action) { move(action); }, moved.action);
      commands.push_back(std::move(moved));
    }
    for (Command& command : after_) {
      command.level = first + body_.levelCount();
      commands.push_back(std::move(command));
    }
    return commands;
  }

 private:
  BufferId add(Buffer buffer) {
    if (buffer.role != ArenaRole::Constant) buffer.role = ArenaRole::Workspace;
    outer_.buffers.push_back(std::move(buffer));
    return BufferId(outer_.buffers.size() - 1);
  }

  [[nodiscard]] bool isBound(const LoopPlace& place) const {
    const auto alignment = static_cast<int64_t>(outer_.profile.min_offset_alignment);
    return place.step % alignment == 0 && static_cast<int64_t>(place.offset) % alignment == 0;
  }

  void placePort(BufferId port, const LoopPlace& place, bool is_leaf) {
    const Buffer& buffer = body_[port];
    // Such a device has no dispatch read one row of a stack and write another.
    const bool apart = outer_.profile.whole_buffer_access && is_leaf && place.step != 0;
    if (place.step == 0 || (isBound(place) && !apart)) {
      there_[port.index()] = place;
      return;
    }
    const LoopPlace row{add(buffer), 0, 0};
    there_[port.index()] = row;
    const Range moving{place.buffer, place.offset, buffer.size, is_leaf ? kernel::Access::Read : kernel::Access::ReadWrite, place.step};
    const Range fixed{row.buffer, 0, buffer.size, is_leaf ? kernel::Access::ReadWrite : kernel::Access::Read};
    const std::string label = fmt::format("copy {}", buffer.name);
    if (is_leaf) {
      before_.push_back({Copy{moving, fixed}, 0, label});
    } else {
      after_.push_back({Copy{fixed, moving}, 0, label});
    }
  }

  void move(Range& range) const {
    const LoopPlace& place = *there_[range.buffer.index()];
    range.buffer = place.buffer;
    range.offset += place.offset;
    range.step = place.step;
  }
  void move(Dispatch& dispatch) const {
    dispatch.kernel = kernel_[dispatch.kernel.index()];
    for (Range& range : dispatch.bindings) move(range);
  }
  void move(Copy& copy) const {
    move(copy.source);
    move(copy.target);
  }
  void move(Fill& fill) const { move(fill.target); }

  const Program& body_;
  const LoopPlaces& places_;
  Program& outer_;
  KernelTable& kernels_;
  std::vector<std::optional<LoopPlace>> there_;  // by buffer of the body
  std::vector<KernelId> kernel_;                 // by kernel of the body
  std::vector<Command> before_, after_;
};

}  // namespace

std::vector<Command> loopCommands(const Program& body, const LoopPlaces& places, Program& outer, KernelTable& kernels) {
  return Splicer(body, places, outer, kernels).run();
}

}  // namespace lockstep::passes
