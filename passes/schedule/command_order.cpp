// SPDX-License-Identifier: Apache-2.0
#include "passes/schedule/command_order.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "passes/schedule/conflicts.h"

namespace lockstep::passes {

using program::ArenaRole;
using program::BufferId;
using program::Command;
using program::Program;
using program::Range;

namespace {

struct State {
  const Program& in;
  std::vector<std::set<BufferId>> buffers;   // by command: of the workspace
  std::vector<std::vector<size_t>> waiting;  // by command: those that wait for it
  std::vector<size_t> missing;               // by command: how many it waits for
  std::vector<size_t> chain;                 // by command: the longest chain of commands that wait for it
  std::vector<size_t> uses_left;             // by buffer
  std::vector<bool> living;                  // by buffer
  uint64_t bytes = 0;                        // of the living buffers

  explicit State(const Program& program)
      : in(program),
        buffers(program.commands.size()),
        waiting(program.commands.size()),
        missing(program.commands.size(), 0),
        chain(program.commands.size(), 0),
        uses_left(program.buffers.size(), 0),
        living(program.buffers.size(), false) {
    std::vector<Touch> touches;
    for (size_t i = 0; i < in.commands.size(); ++i) {
      for (const Range& range : accesses(in.commands[i])) {
        touches.push_back({range, i});
        if (in[range.buffer].role == ArenaRole::Workspace) buffers[i].insert(range.buffer);
      }
      for (BufferId buffer : buffers[i]) ++uses_left[buffer.index()];
    }
    std::set<std::pair<size_t, size_t>> pairs;  // the earlier one first
    forEachConflict(std::move(touches), [&](const Touch& a, const Touch& b) { pairs.insert(std::minmax(a.by, b.by)); });
    for (const auto& [before, after] : pairs) {
      waiting[before].push_back(after);
      ++missing[after];
    }
    for (size_t i = in.commands.size(); i-- > 0;) {
      for (size_t after : waiting[i]) chain[i] = std::max(chain[i], chain[after] + 1);
    }
  }

  [[nodiscard]] uint64_t begun(size_t command) const {
    uint64_t sum = 0;
    for (BufferId buffer : buffers[command]) sum += living[buffer.index()] ? 0 : in[buffer].size;
    return sum;
  }
  [[nodiscard]] int64_t growth(size_t command) const {
    auto sum = static_cast<int64_t>(begun(command));
    for (BufferId buffer : buffers[command]) sum -= uses_left[buffer.index()] == 1 ? static_cast<int64_t>(in[buffer].size) : 0;
    return sum;
  }

  /// The commands of the next level out of those that could run.
  std::vector<size_t> choose(std::vector<size_t> ready, uint64_t living_bytes) {
    // What frees bytes comes first; then what is needed soonest.
    auto key = [&](size_t command) { return std::tuple(growth(command) > 0, -static_cast<int64_t>(chain[command]), growth(command)); };
    std::stable_sort(ready.begin(), ready.end(), [&](size_t a, size_t b) { return key(a) < key(b); });
    std::vector<size_t> chosen;
    for (size_t command : ready) {
      uint64_t more = begun(command);
      if (!chosen.empty() && bytes + more > living_bytes) continue;
      chosen.push_back(command);
      bytes += more;
      for (BufferId buffer : buffers[command]) living[buffer.index()] = true;
    }
    std::sort(chosen.begin(), chosen.end());
    return chosen;
  }

  /// What dies with a level dies at its end: its commands run side by side.
  void finish(size_t command, std::vector<size_t>& ready) {
    for (BufferId buffer : buffers[command]) {
      if (--uses_left[buffer.index()] > 0) continue;
      living[buffer.index()] = false;
      bytes -= in[buffer].size;
    }
    for (size_t after : waiting[command]) {
      if (--missing[after] == 0) ready.push_back(after);
    }
  }
};

}  // namespace

Program orderCommands(const Program& in, uint64_t living_bytes) {
  State state(in);
  Program program = in;
  program.commands.clear();
  std::vector<size_t> ready;
  for (size_t i = 0; i < in.commands.size(); ++i) {
    if (state.missing[i] == 0) ready.push_back(i);
  }
  for (uint32_t level = 0; !ready.empty(); ++level) {
    std::sort(ready.begin(), ready.end());
    std::vector<size_t> chosen = state.choose(ready, living_bytes);
    std::erase_if(ready, [&](size_t command) { return std::binary_search(chosen.begin(), chosen.end(), command); });
    for (size_t command : chosen) {
      program.commands.push_back(in.commands[command]);
      program.commands.back().level = level;
      state.finish(command, ready);
    }
  }
  return program;
}

}  // namespace lockstep::passes
