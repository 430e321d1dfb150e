// SPDX-License-Identifier: Apache-2.0
#include "conformance/order_probe.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <set>

#include "backends/reference/reference.h"

namespace lockstep::conformance {
namespace {

uint32_t wordOf(const Bytes& bytes, size_t word) {
  uint32_t value = 0;
  std::memcpy(&value, bytes.data() + word * sizeof value, std::min(sizeof value, bytes.size() - word * sizeof value));
  return value;
}

bool isUsed(const kernel::Module& module, kernel::ValueId value) {
  return std::ranges::any_of(module.instructions,
                             [&](const kernel::Instruction& x) { return std::ranges::find(x.operands, value) != x.operands.end(); });
}

}  // namespace

std::string toString(const WordDifference& difference) {
  return fmt::format("buffer {}, byte {}: expected {:#010x}, found {:#010x}", difference.buffer, difference.word * sizeof(uint32_t),
                     difference.recorded, difference.found);
}

std::vector<WordDifference> compareBuffers(const std::vector<Bytes>& recorded, const std::vector<Bytes>& found) {
  std::vector<WordDifference> differences;
  for (size_t i = 0; i < recorded.size(); ++i) {
    if (recorded[i] == found[i]) continue;
    for (size_t word = 0; word * sizeof(uint32_t) < recorded[i].size(); ++word) {
      const uint32_t a = wordOf(recorded[i], word), b = wordOf(found[i], word);
      if (a != b) differences.push_back({.buffer = i, .word = word, .recorded = a, .found = b});
    }
  }
  return differences;
}

bool showsOrder(const kernel::Module& module) {
  return std::ranges::any_of(module.instructions, [&](const kernel::Instruction& x) {
    if (kernel::info(x.op).group != kernel::OpGroup::Atomic || x.op == kernel::Op::AtomicLoad) return false;
    const bool replaces =
        x.op == kernel::Op::AtomicStore || x.op == kernel::Op::AtomicExchange || x.op == kernel::Op::AtomicCompareExchange;
    return replaces || (x.result.valid() && isUsed(module, x.result));
  });
}

std::vector<WordDifference> unexplainedByOrder(const program::ValidProgram& program, const std::vector<Bytes>& before,
                                               std::vector<WordDifference> differences, uint64_t orders) {
  std::map<std::pair<size_t, size_t>, std::set<uint32_t>> of_word;
  std::map<size_t, std::set<uint32_t>> of_buffer;  // in words that depend on the order
  const auto isExplained = [&](const WordDifference& difference) {
    return of_word[{difference.buffer, difference.word}].size() > 1 && of_buffer[difference.buffer].contains(difference.found);
  };
  for (uint64_t seed = 0; seed < orders && !std::ranges::all_of(differences, isExplained); ++seed) {
    const std::unique_ptr<Backend> backend = makeReference({.order_seed = seed, .max_threads = 1});
    std::vector<Bytes> buffers = before;
    if (!runDispatch(*backend, program, buffers).ok()) break;
    for (const WordDifference& difference : differences) {
      std::set<uint32_t>& values = of_word[{difference.buffer, difference.word}];
      values.insert(wordOf(buffers[difference.buffer], difference.word));
      if (values.size() > 1) of_buffer[difference.buffer].insert(values.begin(), values.end());
    }
  }
  std::erase_if(differences, isExplained);
  return differences;
}

}  // namespace lockstep::conformance
