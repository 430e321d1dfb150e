// SPDX-License-Identifier: Apache-2.0
#include "conformance/order_probe.h"

#include <algorithm>
#include <cstring>

#include "backends/reference/reference.h"

namespace lockstep::conformance {
namespace {

/// So many that a word which depends on the order is unlikely to be the same in all.
constexpr uint64_t kOrders = 12;

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

bool showsOrder(const kernel::Module& module) {
  return std::ranges::any_of(module.instructions, [&](const kernel::Instruction& x) {
    if (kernel::info(x.op).group != kernel::OpGroup::Atomic || x.op == kernel::Op::AtomicLoad) return false;
    const bool replaces =
        x.op == kernel::Op::AtomicStore || x.op == kernel::Op::AtomicExchange || x.op == kernel::Op::AtomicCompareExchange;
    return replaces || (x.result.valid() && isUsed(module, x.result));
  });
}

std::vector<std::vector<bool>> OrderProbe::dependentWords(const program::ValidProgram& program, const std::vector<Bytes>& before) {
  if (orders_.empty()) {
    for (uint64_t seed = 0; seed < kOrders; ++seed) orders_.push_back(makeReference({.order_seed = seed, .max_threads = 1}));
  }
  std::vector<std::vector<bool>> dependent;
  for (const Bytes& buffer : before) dependent.emplace_back((buffer.size() + 3) / 4);
  std::vector<Bytes> first;
  for (const std::unique_ptr<Backend>& backend : orders_) {
    std::vector<Bytes> buffers = before;
    if (!runDispatch(*backend, program, buffers).ok()) return {};
    if (first.empty()) first = buffers;
    for (size_t i = 0; i < buffers.size(); ++i) {
      for (size_t word = 0; word < dependent[i].size(); ++word) {
        if (wordOf(buffers[i], word) != wordOf(first[i], word)) dependent[i][word] = true;
      }
    }
  }
  return dependent;
}

}  // namespace lockstep::conformance
