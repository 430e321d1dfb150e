// SPDX-License-Identifier: Apache-2.0
#include "passes/lifetimes.h"

#include <algorithm>

namespace lockstep::passes {

using program::ArenaRole;
using program::Command;
using program::Program;
using program::Range;

std::vector<Lifetime> lifetimes(const Program& program) {
  std::vector<Lifetime> out(program.buffers.size());
  for (size_t i = 0; i < out.size(); ++i) out[i].buffer = i;
  for (const Command& command : program.commands) {
    for (const Range& range : accesses(command)) {
      Lifetime& life = out[range.buffer.index()];
      life.first = std::min(life.first, command.level);
      life.last = std::max(life.last, command.level);
    }
  }
  return out;
}

namespace {

/// The level as takeFullestLevelApart chooses it; the number of levels when there is none.
uint32_t fullestLevel(const Program& program, const std::vector<Lifetime>& lives) {
  std::vector<size_t> commands(program.levelCount(), 0);
  for (const Command& command : program.commands) ++commands[command.level];
  uint32_t fullest = program.levelCount();
  uint64_t most = 0;
  for (uint32_t level = 0; level < program.levelCount(); ++level) {
    uint64_t bytes = 0;
    for (const Lifetime& life : lives) {
      const program::Buffer& buffer = program.buffers[life.buffer];
      if (buffer.role == ArenaRole::Workspace && life.first <= level && level <= life.last) bytes += buffer.size;
    }
    if (commands[level] < 2 || bytes <= most) continue;
    fullest = level;
    most = bytes;
  }
  return fullest;
}

/// Bytes that live after the command minus those that lived before it, as far as this command alone decides.
int64_t growth(const Program& program, const std::vector<Lifetime>& lives, const Command& command) {
  int64_t bytes = 0;
  for (const Range& range : accesses(command)) {
    const program::Buffer& buffer = program[range.buffer];
    const Lifetime& life = lives[range.buffer.index()];
    if (buffer.role != ArenaRole::Workspace || life.first == life.last) continue;
    if (life.first == command.level) bytes += static_cast<int64_t>(buffer.size);
    if (life.last == command.level) bytes -= static_cast<int64_t>(buffer.size);
  }
  return bytes;
}

}  // namespace

bool takeFullestLevelApart(Program& program) {
  std::vector<Lifetime> lives = lifetimes(program);
  uint32_t level = fullestLevel(program, lives);
  if (level == program.levelCount()) return false;
  auto inLevel = [&](const Command& command) { return command.level == level; };
  auto begin = std::find_if(program.commands.begin(), program.commands.end(), inLevel);
  auto end = std::find_if_not(begin, program.commands.end(), inLevel);
  std::stable_sort(begin, end, [&](const Command& a, const Command& b) { return growth(program, lives, a) < growth(program, lives, b); });
  uint32_t added = 0;
  for (auto command = begin; command != program.commands.end(); ++command) {
    if (command != begin && command < end) ++added;
    command->level += added;
  }
  return true;
}

}  // namespace lockstep::passes
