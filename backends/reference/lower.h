// SPDX-License-Identifier: Apache-2.0
// Internal to the lowering: the state that its files share.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "backends/reference/code.h"
#include "ir/kernel/inline_calls.h"

namespace lockstep::reference {

using Operands = std::vector<Operand>;
using KernelInstruction = kernel::Instruction;

/// One run-time index of a pointer.
struct PointerIndex {
  Operand index;
  uint32_t stride = 0;  ///< units
  uint32_t count = 0;   ///< 0: runtime-sized
  uint32_t array = 0;   ///< units from the start of the variable to the indexed array
};

/// A pointer value: always a path from a variable, known when the kernel is decoded.
struct Pointer {
  uint32_t variable = 0;
  uint32_t offset = 0;  ///< units
  std::vector<PointerIndex> indices;
  kernel::TypeId pointee;
};

/// The variable that a value was loaded from, or the value itself.
kernel::ValueId originOf(const kernel::Module& module, kernel::ValueId value);

class Lowering {
 public:
  explicit Lowering(const kernel::InlinedModule& inlined) : m(inlined.module), sources(inlined.sources), types(m.types) {}
  Result<Code> run(const SubgroupShape& subgroups, const Watched& watched);

 private:
  struct Targets {
    std::vector<uint32_t> breaks, continues;
  };

  // lower.cpp: module scope and control flow
  void findIndexedVariables();
  Status addGlobals();
  Operand gridIndex(const Operands& id, const std::array<uint32_t, 3>& cell);
  void addBuiltins(const kernel::Function& entry);
  void block(kernel::BlockId id);
  void instruction(kernel::InstructionId id);
  void control(const KernelInstruction& x);
  void loop(const KernelInstruction& x);
  void switchOn(const KernelInstruction& x);
  void print(const KernelInstruction& x);
  void declareVariable(const KernelInstruction& x);

  // lower_memory.cpp
  void access(const KernelInstruction& x);
  Operands load(const Pointer& pointer);
  void store(const Pointer& pointer, const Operands& values);
  void atomic(const KernelInstruction& x);
  void arrayLength(const KernelInstruction& x);
  /// Which components of a pointee an access is for; buffers and workgroup memory need one access for each kind.
  enum class Part : uint8_t { All, Words, Halves };
  uint32_t makeAccess(const Pointer& pointer, Part part);
  uint32_t addAccess(Access access);
  uint32_t addVariable(std::string name, kernel::TypeId type, Home home);
  void initialise(uint32_t variable, kernel::TypeId type, const Operands* values);

  // lower_subgroups.cpp
  void subgroup(const KernelInstruction& x);
  Operand sourceLane(const KernelInstruction& x);

  // lower_values.cpp
  /// The opcode of an element-wise op, and the number one, of a scalar type.
  static Opcode opcodeOf(kernel::Op op, kernel::Scalar scalar);
  static Operand one(kernel::Scalar scalar);
  void pureInstruction(const KernelInstruction& x);
  Operands elementwise(const KernelInstruction& x);
  Operands extract(const KernelInstruction& x);
  Operands pick(const Operands& elements, size_t size, Operand index, size_t count);
  Operands construct(const KernelInstruction& x);
  Operands convert(const KernelInstruction& x);
  Operands matrixProduct(const KernelInstruction& x);
  Operand dot(std::span<const Operand> a, std::span<const Operand> b, kernel::Scalar scalar);
  Operands bitcast(const KernelInstruction& x);
  /// A result of f32 arithmetic as a value of `scalar`: f16 is rounded.
  Operand rounded(kernel::Scalar scalar, Operand result);
  Operands special(const KernelInstruction& x);
  Operand pure(Opcode op, Operand a, Operand b = {}, Operand c = {});
  /// What `make` gives, without looking for integers that wrap: its operations are not those of the text.
  template <class Make>
  auto ofOurs(Make make) {
    const bool outer = std::exchange(watched.wraps, false);
    auto made = make();
    watched.wraps = outer;
    return made;
  }
  Operand shifted(Operand a, Operand bits) {
    return ofOurs([&] { return pure(Opcode::Shl, a, bits); });
  }
  void findBitNumbers();  ///< lower_watched.cpp
  /// lower_watched.cpp: the steps of watched code, before an operation, after it, and before a value goes to a buffer.
  void watchOperands(Opcode op, Operand a, Operand b);
  void watchResult(Opcode op, Operand result, Operand a, Operand b);
  void watchStored(const Variable& variable, kernel::Scalar scalar, Operand stored);
  Operand clamped(Access access);
  // lower_wraps.cpp
  void noteComputed(Opcode op, Register result, Operand a, Operand b);
  uint32_t addNode(Operand operand, bool is_signed, uint32_t depth, IndexExpression& expression, Access& leaves);
  void watchIndex(const Access& access);
  std::optional<Operand> simplify(Opcode op, Operand a, Operand b);

  const Operands& value(kernel::ValueId id);
  Operands constantValue(kernel::ValueId id);
  const Pointer& pointer(kernel::ValueId id) const;
  void define(const KernelInstruction& x, Operands operands) { values[x.result.index()] = std::move(operands); }
  Register newRegister(bool variable = false);
  Step& emit(Step step);
  const std::vector<Component>& components(kernel::TypeId type);
  /// Runs `fill` with `target` as the list that emit appends to; what it computes is not reused outside.
  template <class Fill>
  void inside(std::vector<Step>& target, Fill fill) {
    std::vector<Step>* outer = steps;
    auto outer_known = known;
    steps = &target;
    fill();
    steps = outer;
    known = std::move(outer_known);
  }

  const kernel::Module& m;
  const std::vector<kernel::InstructionId>& sources;  ///< what reports call an instruction by
  kernel::TypeTable types;                            ///< a copy, because finding the type of a part may intern it
  Code code;
  /// Bytes that offsets and strides of pointers and lane-private memory count in: 4, or 2 in a kernel with f16.
  uint32_t unit = 4;
  std::vector<Step>* steps = &code.body;
  std::vector<Operands> values;                                            ///< of each kernel value
  std::vector<std::optional<Pointer>> pointers;                            ///< of each kernel value of pointer type
  std::vector<bool> indexed;                                               ///< by value id of a variable: some index is not constant
  std::vector<std::vector<Component>> layouts;                             ///< cache of flatten
  std::map<std::tuple<Opcode, Operand, Operand, Operand>, Operand> known;  ///< common subexpressions
  uint32_t whole = 0;                                                      ///< the construct that a return leaves
  Targets targets;
  Watched watched;
  /// An integer that may be part of an index.
  struct Computed {
    Opcode op;
    bool is_signed;
    Operand a, b;
    uint32_t site;
  };
  std::map<Register, Computed> computed;
  std::set<uint32_t> bit_numbers;     ///< value ids, or those of variables, that are divided by 32
  bool shifts_by_bit_number = false;  ///< whether the instruction that is lowered is a shift by one of them
  bool signed_now = false;            ///< whether the instruction that is lowered is one of i32
  uint32_t site = 0;
};

}  // namespace lockstep::reference
