// SPDX-License-Identifier: Apache-2.0
#include "ir/kernel/op.h"

#include <map>

namespace lockstep::kernel {
namespace {

constexpr OpArray<OpInfo> kInfos = {{
#define LS_KERNEL_OP(name, text, group, operands, rule) OpInfo{text, OpGroup::group, operands, TypeRule::rule},
#include "ir/kernel/ops.def"
#undef LS_KERNEL_OP
}};

}  // namespace

const OpInfo& info(Op op) { return kInfos[static_cast<size_t>(op)]; }

std::optional<Op> findOp(std::string_view text) {
  static const std::map<std::string_view, Op> kOps = [] {
    std::map<std::string_view, Op> ops;
    for (size_t i = 0; i < kOpCount; ++i) ops.emplace(kInfos[i].text, static_cast<Op>(i));
    return ops;
  }();
  auto found = kOps.find(text);
  if (found == kOps.end()) return std::nullopt;
  return found->second;
}

}  // namespace lockstep::kernel
