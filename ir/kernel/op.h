// SPDX-License-Identifier: Apache-2.0
// The closed set of kernel operations, as a table (ops.def). Every consumer (printer, validator, folding, SPIR-V, reference)
// reads the table or keeps one row for each entry of it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace lockstep::kernel {

enum class Op : uint8_t {
#define LS_KERNEL_OP(name, text, group, operands, rule) name,
#include "ir/kernel/ops.def"
#undef LS_KERNEL_OP
};

inline constexpr size_t kOpCount = 0
#define LS_KERNEL_OP(name, text, group, operands, rule) +1
#include "ir/kernel/ops.def"
#undef LS_KERNEL_OP
    ;

/// What kind of instruction an op is. Arithmetic and Math are pure functions of their operands (lane by lane).
enum class OpGroup : uint8_t { Arithmetic, Math, Composite, Memory, Atomic, Barrier, Debug, Subgroup, SubgroupMatrix, Control, Call };

/// How the result type follows from the operands.
enum class TypeRule : uint8_t {
  Explicit,     ///< the instruction states it (construct, convert, call, ...)
  SameFloat,    ///< all operands have one float scalar or vector type; result the same
  SameNumeric,  ///< the same, floats or integers
  SameInteger,  ///< the same, integers
  SameAny,      ///< the same, bools too (and, or, xor, ...)
  Compare,      ///< operands of one type; result bool of the same width
  Shift,        ///< first integer, second u32 of the same width; result as the first
  Bool,         ///< bool operands; result the same
  Reduce,       ///< vector operand; result its scalar
  Select,       ///< (false value, true value, bool condition); result as the values
  Lane,         ///< (numeric scalar or vector, u32 lane, delta or mask); result as the first
  None,         ///< no result
};

struct OpInfo {
  std::string_view text;  ///< mnemonic in the IR text
  OpGroup group;
  int operands;  ///< -1: variable
  TypeRule rule;
};

const OpInfo& info(Op op);
/// Whether the instruction says in which direction a matrix lies in memory.
constexpr bool hasMajor(Op op) { return op == Op::SubgroupMatrixLoad || op == Op::SubgroupMatrixStore; }
std::optional<Op> findOp(std::string_view text);

/// One row for each Op, in the order of ops.def; the size is checked at compile time.
template <class Row>
using OpArray = std::array<Row, kOpCount>;

}  // namespace lockstep::kernel
