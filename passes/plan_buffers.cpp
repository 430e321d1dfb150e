// SPDX-License-Identifier: Apache-2.0
#include "passes/plan_buffers.h"

#include <fmt/format.h>

#include <algorithm>

namespace lockstep::passes {

using program::Arena;
using program::ArenaId;
using program::ArenaRole;
using program::Buffer;
using program::Command;
using program::Program;
using program::Range;

namespace {

constexpr uint64_t kAlignment = 256;

uint64_t aligned(uint64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

struct Lifetime {
  size_t buffer = 0;
  uint32_t first = UINT32_MAX, last = 0;  // levels
  [[nodiscard]] bool overlaps(const Lifetime& other) const { return first <= other.last && other.first <= last; }
};

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

/// Largest first, each at the lowest offset that no living neighbour covers. Returns the size of the arena.
uint64_t place(Program& program, std::vector<Lifetime> lives, bool share) {
  std::stable_sort(lives.begin(), lives.end(),
                   [&](const Lifetime& a, const Lifetime& b) { return program.buffers[a.buffer].size > program.buffers[b.buffer].size; });
  uint64_t end = 0;
  std::vector<Lifetime> placed;
  for (const Lifetime& life : lives) {
    Buffer& buffer = program.buffers[life.buffer];
    uint64_t size = aligned(buffer.size);
    uint64_t offset = share ? 0 : end;
    if (share) {
      std::vector<std::pair<uint64_t, uint64_t>> taken;
      for (const Lifetime& other : placed) {
        const Buffer& neighbour = program.buffers[other.buffer];
        if (other.overlaps(life)) taken.emplace_back(neighbour.offset, neighbour.offset + aligned(neighbour.size));
      }
      std::sort(taken.begin(), taken.end());
      for (const auto& [from, to] : taken) {
        if (offset + size <= from) break;
        offset = std::max(offset, to);
      }
    }
    buffer.offset = offset;
    end = std::max(end, offset + size);
    placed.push_back(life);
  }
  return end;
}

}  // namespace

Result<Program> planBuffers(const Program& in, const PlanConfig& config) {
  Program program = in;
  program.arenas.clear();
  std::vector<Lifetime> lives = lifetimes(program);
  for (size_t i = 0; i < program.buffers.size(); ++i) {
    Buffer& buffer = program.buffers[i];
    if (buffer.role != ArenaRole::State) continue;
    buffer.arena = ArenaId(program.arenas.size());
    buffer.offset = 0;
    program.arenas.push_back({buffer.name, ArenaRole::State, aligned(buffer.size)});
  }
  for (ArenaRole role : {ArenaRole::Input, ArenaRole::Output, ArenaRole::Constant}) {
    uint64_t end = 0;
    ArenaId arena(program.arenas.size());
    for (Buffer& buffer : program.buffers) {
      if (buffer.role != role) continue;
      buffer.arena = arena;
      buffer.offset = end;
      end += aligned(buffer.size);
    }
    if (end > 0) program.arenas.push_back({std::string(toString(role)), role, end});
  }
  std::vector<Lifetime> workspace;
  ArenaId arena(program.arenas.size());
  for (const Lifetime& life : lives) {
    Buffer& buffer = program.buffers[life.buffer];
    if (buffer.role != ArenaRole::Workspace) continue;
    buffer.arena = arena;
    if (life.first != UINT32_MAX) workspace.push_back(life);
  }
  uint64_t size = place(program, workspace, config.share);
  if (config.memory_limit != 0 && size > config.memory_limit) {
    std::string largest;
    std::stable_sort(workspace.begin(), workspace.end(),
                     [&](const Lifetime& a, const Lifetime& b) { return program.buffers[a.buffer].size > program.buffers[b.buffer].size; });
    for (size_t i = 0; i < std::min<size_t>(3, workspace.size()); ++i) {
      largest += fmt::format("{}{} ({} bytes)", i == 0 ? "" : ", ", program.buffers[workspace[i].buffer].name,
                             program.buffers[workspace[i].buffer].size);
    }
    return fail(
        "planBuffers.memory",
        fmt::format("the workspace needs {} bytes and the limit is {}; the largest buffers are {}", size, config.memory_limit, largest), {},
        "use a smaller batch or raise the limit");
  }
  if (size > 0) program.arenas.push_back({std::string(toString(ArenaRole::Workspace)), ArenaRole::Workspace, size});
  return program;
}

}  // namespace lockstep::passes
