// SPDX-License-Identifier: Apache-2.0
#include "passes/plan/plan_buffers.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "passes/plan/free_bytes.h"
#include "passes/schedule/command_order.h"
#include "passes/schedule/in_place.h"
#include "passes/schedule/lifetimes.h"

namespace lockstep::passes {

using program::ArenaId;
using program::ArenaRole;
using program::Buffer;
using program::BufferId;
using program::Command;
using program::Program;
using program::Range;

namespace {

constexpr uint64_t kAlignment = 256;
constexpr int kAttempts = 16;  ///< of an order that meets the memory limit

uint64_t aligned(uint64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

bool larger(const Program& program, const Lifetime& a, const Lifetime& b) {
  return program.buffers[a.buffer].size > program.buffers[b.buffer].size;
}

/// The first offset from `offset` on at which the buffer does not cross the end of a part of `most` bytes. A larger buffer begins a part.
uint64_t withinPart(uint64_t offset, uint64_t size, uint64_t most) {
  const bool fits = offset % most == 0 || offset % most + size <= most;
  return fits ? offset : (offset / most + 1) * most;
}

/// Largest first, each at the lowest offset that no living neighbour covers. An arena of more than `most` bytes is cut into several.
/// Returns their sizes; `first` is the number of the first one.
std::vector<uint64_t> place(Program& program, std::vector<Lifetime> lives, bool share, uint64_t most, size_t first) {
  std::stable_sort(lives.begin(), lives.end(), [&](const Lifetime& a, const Lifetime& b) { return larger(program, a, b); });
  FreeBytes free(program.levelCount());
  most = most / kAlignment * kAlignment;
  uint64_t end = 0;
  std::map<uint64_t, uint64_t> parts;  // of the arena, with their bytes
  for (const Lifetime& life : lives) {
    Buffer& buffer = program.buffers[life.buffer];
    const uint64_t size = aligned(buffer.size);
    // One that is larger than a part has all of those that it reaches into for itself.
    const uint64_t taken = size > most ? (size + most - 1) / most * most : size;
    buffer.offset = share ? 0 : withinPart(end, size, most);
    if (share && life.isUsed()) {
      for (uint64_t begin = 0;; begin = buffer.offset) {
        const uint64_t lowest = free.lowest(life.first, life.last, taken, begin);
        buffer.offset = withinPart(lowest, size, most);
        if (buffer.offset == lowest) break;
      }
      free.take(life.first, life.last, buffer.offset, taken);
    }
    end = std::max(end, buffer.offset + taken);
    uint64_t& bytes = parts[buffer.offset / most];
    bytes = std::max(bytes, buffer.offset % most + size);
  }
  std::vector<uint64_t> sizes;
  std::map<uint64_t, size_t> numbers;
  for (const auto& [part, bytes] : parts) {
    numbers[part] = first + sizes.size();
    sizes.push_back(bytes);
  }
  for (const Lifetime& life : lives) {
    Buffer& buffer = program.buffers[life.buffer];
    buffer.arena = ArenaId(numbers.at(buffer.offset / most));
    buffer.offset %= most;
  }
  return sizes;
}

/// External buffers and constants: they live through the whole program and share nothing.
void placeOthers(Program& program) {
  for (Buffer& buffer : program.buffers) {
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
}

/// The workspace arena of each buffer by number: the first that has no buffer on the other side of a command.
std::vector<size_t> arenaNumbers(const Program& program, bool separate) {
  std::vector<size_t> numbers(program.buffers.size(), 0);
  if (!separate) return numbers;
  std::map<BufferId, std::set<BufferId>> apart;
  for (const Command& command : program.commands) {
    const std::vector<Range> ranges = accesses(command);
    for (const Range& target : ranges) {
      for (const Range& source : ranges) {
        bool differ = source.access == kernel::Access::Read && target.access != kernel::Access::Read;
        if (!differ || source.buffer == target.buffer) continue;
        apart[source.buffer].insert(target.buffer);
        apart[target.buffer].insert(source.buffer);
      }
    }
  }
  std::set<BufferId> numbered;
  for (const Command& command : program.commands) {
    for (const Range& range : accesses(command)) {
      if (program[range.buffer].role != ArenaRole::Workspace || !numbered.insert(range.buffer).second) continue;
      std::set<size_t> taken;
      for (BufferId other : apart[range.buffer]) {
        if (numbered.contains(other)) taken.insert(numbers[other.index()]);
      }
      size_t& number = numbers[range.buffer.index()];
      while (taken.contains(number)) ++number;
    }
  }
  return numbers;
}

/// Adds the workspace arenas; returns their bytes.
uint64_t placeWorkspace(Program& program, const std::vector<size_t>& numbers, const PlanConfig& config) {
  std::vector<std::vector<Lifetime>> arenas;
  // Separate arenas have no dispatch read and write one of them, so there nothing is overwritten in place.
  const bool in_place = config.share && !config.separate_access;
  const std::vector<BufferId> owners = in_place ? takeOver(program) : std::vector<BufferId>{};
  auto isOwner = [&](size_t buffer) { return owners.empty() || owners[buffer].index() == buffer; };
  std::vector<Lifetime> lives = lifetimesOf(program);
  for (size_t i = 0; i < owners.size(); ++i) {
    lives[owners[i].index()].join(lives[i]);
  }
  for (const Lifetime& life : lives) {
    if (program.buffers[life.buffer].role != ArenaRole::Workspace || !isOwner(life.buffer)) continue;
    size_t number = numbers[life.buffer];
    if (arenas.size() <= number) arenas.resize(number + 1);
    arenas[number].push_back(life);
  }
  uint64_t total = 0;
  size_t count = 0;
  for (const std::vector<Lifetime>& arena : arenas) {
    for (const uint64_t size : place(program, arena, config.share, config.arena_limit, program.arenas.size())) {
      const std::string name(toString(ArenaRole::Workspace));
      program.arenas.push_back({count == 0 ? name : fmt::format("{}{}", name, count), ArenaRole::Workspace, size});
      total += size;
      ++count;
    }
  }
  for (size_t i = 0; i < owners.size(); ++i) {
    program.buffers[i].arena = program[owners[i]].arena;
    program.buffers[i].offset = program[owners[i]].offset;
  }
  return total;
}

Failure aboveLimit(const Program& program, uint64_t bytes, uint64_t limit) {
  std::vector<Lifetime> workspace = lifetimesOf(program);
  std::erase_if(workspace, [&](const Lifetime& life) { return program.buffers[life.buffer].role != ArenaRole::Workspace; });
  std::stable_sort(workspace.begin(), workspace.end(), [&](const Lifetime& a, const Lifetime& b) { return larger(program, a, b); });
  std::string largest;
  for (size_t i = 0; i < std::min<size_t>(3, workspace.size()); ++i) {
    const Buffer& buffer = program.buffers[workspace[i].buffer];
    largest += fmt::format("{}{} ({} bytes)", i == 0 ? "" : ", ", buffer.name, buffer.size);
  }
  Failure failure = fail("planBuffers.memory",
                         fmt::format("the workspace needs {} bytes and the limit is {}; the largest buffers are {}", bytes, limit, largest),
                         {}, "use a smaller batch or raise the limit");
  failure.exit_code = ExitCode::OutOfMemory;
  return failure;
}

}  // namespace

Result<Program> planBuffers(const Program& in, const PlanConfig& config) {
  Program ordered = in;
  ordered.arenas.clear();
  placeOthers(ordered);
  std::vector<size_t> numbers = arenaNumbers(ordered, config.separate_access);
  Program planned = ordered;
  uint64_t least = placeWorkspace(planned, numbers, config);
  if (config.memory_limit == 0 || least <= config.memory_limit) return planned;
  // Gaps between buffers take bytes too, so fewer may live than the limit allows.
  uint64_t living = config.memory_limit;
  // The levels of a loop stay together, so programs with loops keep their order.
  const bool may_reorder = config.share && ordered.loops.empty();
  for (int attempt = 0; attempt < kAttempts && may_reorder; ++attempt, living -= living / 16) {
    planned = orderCommands(ordered, living);
    uint64_t bytes = placeWorkspace(planned, numbers, config);
    if (bytes <= config.memory_limit) return planned;
    least = std::min(least, bytes);
  }
  return aboveLimit(planned, least, config.memory_limit);
}

}  // namespace lockstep::passes
