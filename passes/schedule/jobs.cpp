// SPDX-License-Identifier: Apache-2.0
#include "passes/schedule/jobs.h"

#include <algorithm>
#include <cstdlib>
#include <span>

#include "passes/visits.h"

namespace lockstep::passes {

using program::Command;
using program::Range;

std::vector<Range> Job::touched() const {
  if (!is_loop) return accesses(command);
  std::vector<Range> all;
  for (const Command& one : loop) {
    for (Range range : accesses(one)) {
      const int64_t moved = range.step * (int64_t{iterations} - 1);
      if (moved < 0) range.offset -= static_cast<uint64_t>(-moved);
      range.size += static_cast<uint64_t>(std::abs(moved));
      range.step = 0;
      all.push_back(range);
    }
  }
  return all;
}

std::vector<size_t> assignLevels(std::vector<Job>& jobs) {
  std::vector<std::vector<size_t>> waiting(jobs.size());  // by job: those that wait for it
  std::vector<size_t> missing(jobs.size(), 0);            // by job: how many it waits for
  std::vector<size_t> ready;
  for (size_t job = 0; job < jobs.size(); ++job) {
    for (size_t before : jobs[job].after) waiting[before].push_back(job);
    missing[job] = jobs[job].after.size();
    if (missing[job] == 0) ready.push_back(job);
    countVisits(missing[job]);
  }
  for (size_t next = 0; next < ready.size(); ++next) {
    const uint32_t level = jobs[ready[next]].command.level + 1;
    for (size_t job : waiting[ready[next]]) {
      jobs[job].command.level = std::max(jobs[job].command.level, level);
      if (--missing[job] == 0) ready.push_back(job);
    }
  }
  std::vector<size_t> without;
  for (size_t job = 0; job < jobs.size(); ++job) {
    if (missing[job] > 0) without.push_back(job);
  }
  return without;
}

void placeCommands(std::vector<Job> jobs, program::Program& program) {
  std::ranges::stable_sort(jobs, {}, [](const Job& job) { return job.command.level; });
  uint32_t level = 0;
  for (size_t begin = 0, end = 0; begin < jobs.size(); begin = end) {
    while (end < jobs.size() && jobs[end].command.level == jobs[begin].command.level) ++end;
    const std::span<Job> here = std::span(jobs).subspan(begin, end - begin);
    bool any = false;
    for (Job& job : here) {
      if (job.is_loop) continue;
      any = true;
      program.commands.push_back(std::move(job.command));
      program.commands.back().level = level;
    }
    level += any ? 1 : 0;
    for (Job& job : here) {
      if (job.loop.empty()) continue;
      const uint32_t first = level;
      for (Command& command : job.loop) {
        command.level += first;
        level = command.level + 1;
        program.commands.push_back(std::move(command));
      }
      program.loops.push_back({first, level - 1, job.iterations});
    }
  }
}

}  // namespace lockstep::passes
