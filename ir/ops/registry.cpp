// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <array>

#include "ir/graph/op_def.h"

namespace lockstep::graph {

#define LS_OP(name)         \
  namespace name##_op {     \
    extern const OpDef kOp; \
  }
#include "ir/ops/ops.def"
#undef LS_OP

namespace {
const std::array kOps{
#define LS_OP(name) &name##_op::kOp,
#include "ir/ops/ops.def"
#undef LS_OP
};
}  // namespace

std::span<const OpDef* const> allOps() { return kOps; }

const OpDef* findOp(std::string_view name) {
  for (const OpDef* op : kOps) {
    if (*op->name == name) return op;
  }
  return nullptr;
}

const OpDef& op(std::string_view name) {
  const OpDef* found = findOp(name);
  if (found == nullptr) internalError(fmt::format("there is no op '{}'", name));
  return *found;
}

Failure violated(std::string_view op, std::string_view label, std::string message) {
  return fail(fmt::format("{}.{}", op, label), std::move(message));
}

}  // namespace lockstep::graph
