// SPDX-License-Identifier: Apache-2.0
#include "passes/schedule/lifetimes.h"

#include <map>

namespace lockstep::passes {

using program::Command;
using program::Loop;
using program::Program;
using program::Range;

std::vector<Lifetime> lifetimesOf(const Program& program) {
  std::vector<Lifetime> lives(program.buffers.size());
  for (size_t i = 0; i < lives.size(); ++i) lives[i].buffer = i;
  std::map<std::pair<size_t, const Loop*>, bool> inside;  // by buffer and loop that uses it: whether it moves
  std::vector<bool> outside(lives.size(), false);
  for (const Command& command : program.commands) {
    const Loop* loop = program.loopOf(command.level);
    for (const Range& range : accesses(command)) {
      Lifetime& life = lives[range.buffer.index()];
      life.first = std::min(life.first, command.level);
      life.last = std::max(life.last, command.level);
      if (loop == nullptr) {
        outside[range.buffer.index()] = true;
      } else {
        bool& moves = inside[{range.buffer.index(), loop}];
        moves = moves || range.step != 0;
      }
    }
  }
  for (const auto& [use, moves] : inside) {
    const auto& [buffer, loop] = use;
    Lifetime& life = lives[buffer];
    const bool only_here = !outside[buffer] && loop->holds(life.first) && loop->holds(life.last);
    if (only_here && !moves) continue;
    life.join({.buffer = buffer, .first = loop->first, .last = loop->last, .crosses = true});
  }
  return lives;
}

}  // namespace lockstep::passes
