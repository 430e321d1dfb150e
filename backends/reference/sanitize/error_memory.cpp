// SPDX-License-Identifier: Apache-2.0
#include "backends/reference/sanitize/error_memory.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <sstream>
#include <string>
#include <vector>

#include "backends/reference/sanitize/shadows.h"

namespace lockstep::reference {
namespace {

/// The number at the start of a file; 0 where there is none, as in "max".
uint64_t numberIn(const std::filesystem::path& file) {
  std::ifstream in(file);
  uint64_t number = 0;
  return in >> number ? number : 0;
}

/// "MemAvailable:   23456 kB"
uint64_t availableOfSystem(const std::filesystem::path& root) {
  std::ifstream in(root / "proc/meminfo");
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    std::string name;
    uint64_t kilobytes = 0;
    if (words >> name >> kilobytes && name == "MemAvailable:") return kilobytes << 10;
  }
  return 0;
}

/// Of the control group of this process and of those above it: version 2 has lines "0::/path", version 1 "4:cpu,memory:/path".
std::vector<uint64_t> limitsOfGroups(const std::filesystem::path& root) {
  std::vector<uint64_t> limits;
  std::ifstream in(root / "proc/self/cgroup");
  for (std::string line; std::getline(in, line);) {
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const bool second_version = controllers.empty();
    if (!second_version && ("," + controllers + ",").find(",memory,") == std::string::npos) continue;
    const std::filesystem::path mount = root / (second_version ? "sys/fs/cgroup" : "sys/fs/cgroup/memory");
    const char* file = second_version ? "/memory.max" : "/memory.limit_in_bytes";
    for (std::filesystem::path group = std::filesystem::path(line.substr(second + 1)).relative_path();; group = group.parent_path()) {
      limits.push_back(numberIn((mount / group).string() + file));
      if (group.empty()) break;
    }
  }
  return limits;
}

/// Of a kernel that runs alone, its variable; else as the compiler calls it.
std::string nameOf(const program::ValidProgram& program, program::BufferId buffer) {
  const auto* dispatch = program->commands.size() == 1 ? std::get_if<program::Dispatch>(&program->commands[0].action) : nullptr;
  if (dispatch != nullptr) {
    for (const kernel::GlobalVariable& variable : program.modules()[dispatch->kernel.index()]->globals) {
      const bool bound = kernel::isBound(variable.space) && variable.binding < dispatch->bindings.size();
      if (bound && dispatch->bindings[variable.binding].buffer == buffer) return variable.name;
    }
  }
  return (*program)[buffer].name;
}

/// "x (4096 bytes), y (64 bytes)"
std::string largestBuffers(const program::ValidProgram& program) {
  constexpr size_t kMost = 3;
  std::vector<program::BufferId> buffers;
  for (size_t k = 0; k < program->buffers.size(); ++k) buffers.emplace_back(k);
  std::ranges::stable_sort(buffers, std::greater<>(), [&](program::BufferId id) { return (*program)[id].size; });
  std::vector<std::string> texts;
  for (const program::BufferId id : buffers) {
    if (texts.size() < kMost) texts.push_back(fmt::format("{} ({} bytes)", nameOf(program, id), (*program)[id].size));
  }
  return fmt::format("{}", fmt::join(texts, ", "));
}

}  // namespace

uint64_t availableMemory(const std::filesystem::path& root) {
  uint64_t least = availableOfSystem(root);
  for (const uint64_t limit : limitsOfGroups(root)) {
    if (limit != 0 && (least == 0 || limit < least)) least = limit;
  }
  return least;
}

uint64_t bytesPerWord(const SanitizeChecks& checks) {
  constexpr uint64_t kWord = sizeof(uint32_t), kBounds = sizeof(double) + sizeof(float) + sizeof(uint32_t);  // RoundingBounds
  constexpr uint64_t kHistory = 4 * sizeof(uint32_t);                                                        // AccessHistory
  return kWord + (checks.errors ? sizeof(Shadow) + kBounds : 0) + (checks.races ? kHistory : 0);
}

Status checkErrorMemory(const program::ValidProgram& program, const SanitizeChecks& checks, uint64_t available) {
  if (!checks.errors || available == 0) return Success{};
  uint64_t words = 0;
  for (const program::Arena& arena : program->arenas) words += (arena.size + 3) / 4;
  const uint64_t each = bytesPerWord(checks);
  if (words <= available / each) return Success{};
  Failure failure =
      fail("backend.out_of_memory",
           fmt::format("the sanitizer's check 'error' takes {} bytes for each 4 of a buffer, {} bytes in all, and {} are available; the "
                       "largest buffers are {}",
                       each, words * each, available, largestBuffers(program)),
           {}, "use fewer elements, or leave the check out: --sanitize=race,memory,integer,float,loop,barrier,subgroup,layout");
  failure.exit_code = ExitCode::OutOfMemory;
  return failure;
}

}  // namespace lockstep::reference
