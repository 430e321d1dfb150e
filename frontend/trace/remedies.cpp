// SPDX-License-Identifier: Apache-2.0
#include "frontend/trace/remedies.h"

#include <fmt/format.h>

#include <array>

#include "ir/graph/op_def.h"

namespace lockstep::detail {

namespace {

struct Row {
  std::string_view key, remedy;
};

/// Of single rules.
constexpr std::array kByCode{
    Row{"matmul.C2", "expand_dims(x, 0) makes a row of a vector, expand_dims(x, 1) a column"},
    Row{"matmul.C3", "swap_axes(x, -2, -1) transposes a matrix"},
    Row{"reshape.C2", "one extent may be -1: it follows from the others"},
    Row{"narrow.C2", "start counts from 0, and start + length is at most the extent"},
    Row{"conv.C4", "channels come before the positions: permute(x, {0, 3, 1, 2}) of an image that has them last"},
    Row{"conv_transpose.C4", "channels come before the positions: permute(x, {0, 3, 1, 2}) of an image that has them last"},
    Row{"conv.C5", "use a smaller kernel, more padding or a larger input"},
    Row{"max_pool.C3", "use a smaller kernel, more padding or a larger input"},
    Row{"avg_pool.C3", "use a smaller kernel, more padding or a larger input"},
};

/// Of rules that many ops have, by their words; the first that begins so.
constexpr std::array kByRule{
    Row{"operands have the same element type", "cast one of them, for example cast(x, ls::DType::F32)"},
    Row{"operands have one element type", "cast one of them, for example cast(x, ls::DType::F32)"},
    Row{"operands are f32", "cast(x, ls::DType::F32) makes other numbers and bool f32"},
    Row{"the operand is f32", "cast(x, ls::DType::F32) makes other numbers and bool f32"},
    Row{"the operand has numbers", "cast(x, ls::DType::I32) makes 0 and 1 of bool"},
    Row{"the operand is i32", "declare the input as ls::i32(...), or cast(x, ls::DType::I32)"},
    Row{"the index is i32", "declare the index as ls::i32(...), or cast(index, ls::DType::I32)"},
    Row{"the axis is within the rank", "axes count from 0, and -1 is the last one"},
};

}  // namespace

std::string remedyFor(std::string_view code) {
  for (const Row& row : kByCode) {
    if (row.key == code) return std::string(row.remedy);
  }
  const size_t dot = code.find('.');
  const graph::OpDef* op = dot == std::string_view::npos ? nullptr : graph::findOp(code.substr(0, dot));
  if (op == nullptr) return "";
  for (const graph::Constraint& constraint : *op->constraints) {
    if (constraint.label != code.substr(dot + 1)) continue;
    for (const Row& row : kByRule) {
      if (constraint.text.starts_with(row.key)) return std::string(row.remedy);
    }
    return fmt::format("it must hold that {}", constraint.text);
  }
  return "";
}

}  // namespace lockstep::detail
