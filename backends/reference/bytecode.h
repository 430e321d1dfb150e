// SPDX-License-Identifier: Apache-2.0
// A kernel that is ready to run: instructions whose operands are word offsets in the register file of one batch of lanes.
//
// The register file: scalar slots (constants and uniform values), then rows of `width` lanes: registers, masks, scratch.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backends/reference/code.h"

namespace lockstep::reference {

/// How many operands a pure operation has.
inline constexpr std::array<uint8_t, kPureOps> kOperandCounts{
#define LS_VM_OP1(name, r, a) 1,
#define LS_VM_OP2(name, r, a, b) 2,
#define LS_VM_OP3(name, r, a, b, c) 3,
#define LS_VM_CONTROL(name)
#include "backends/reference/opcodes.def"
#undef LS_VM_OP1
#undef LS_VM_OP2
#undef LS_VM_OP3
#undef LS_VM_CONTROL
};

constexpr size_t operandCount(Opcode op) { return op < Opcode::Splat ? kOperandCounts[static_cast<size_t>(op)] : 0; }

/// Its operands: the slot, and the bit of Instruction::varying. As many as operandCount() are used.
constexpr std::array<std::pair<uint32_t, uint8_t>, 3> operandsOf(const Instruction& x) {
  return {{{x.a, kVaryingA}, {x.b, kVaryingB}, {x.c, kVaryingC}}};
}

/// Whether it rounds a product and then a sum, which a device may do at once.
constexpr bool multipliesAndAdds(Opcode op) { return op == Opcode::MulAddF || op == Opcode::MulSubF || op == Opcode::NegMulAddF; }

/// As opcodes.def has it: "AddF".
std::string_view nameOf(Opcode op);

/// One scalar that an access loads or stores.
struct MemoryValue {
  uint32_t word = 0;  ///< offset in the element
  uint32_t slot = 0;  ///< word offset in the register file
  bool varying = false;
  bool used = true;  ///< a loaded value that nobody reads is not written
};

struct MemoryAccess {
  uint32_t variable = 0;
  bool half = false;  ///< every "word" below is one of 16 bits
  Home home = Home::Buffer;
  uint32_t binding = 0;
  uint32_t offset = 0;  ///< words in the memory of the variable's home
  uint32_t stride = 0;
  uint32_t count = 0;  ///< 0: from the binding's size
  uint32_t array = 0;
  uint32_t expression = 0;  ///< of WatchIndex
  std::vector<MemoryValue> values;
};

struct Bytecode {
  std::string name;
  std::array<uint32_t, 3> workgroup_size{1, 1, 1};
  uint32_t group_lanes = 1;       ///< invocations of a workgroup
  uint32_t batch_groups = 1;      ///< workgroups that run side by side
  bool in_order = false;          ///< the workgroups of a row run one after the other, see needsOrder()
  bool in_order_of_grid = false;  ///< the same where there are several in y or z
  uint32_t width = 16;            ///< lanes of a row, a multiple of kLaneBlock
  std::vector<Instruction> instructions;
  std::vector<MemoryAccess> accesses;
  std::vector<IndexExpression> expressions;
  std::vector<Variable> variables;
  std::vector<Refill> refills;    ///< of watched code
  std::vector<uint32_t> scalars;  ///< initial values of the scalar slots
  std::vector<uint32_t> table;
  uint32_t lane_words = 0;
  uint32_t workgroup_words = 0;  ///< of one workgroup
  uint32_t frames = 0;           ///< two mask rows each
  uint32_t mask_row = 0;         ///< word offset of the root mask; frame k uses the rows 1 + 2k and 2 + 2k after it
  uint32_t scratch_row = 0;      ///< word offset of kScratchRows rows
  uint32_t file_words = 0;       ///< size of the register file
  std::array<uint32_t, 3> local_id{}, group_id{}, group_count{};  ///< word offsets; kUnused when nothing reads them
  uint32_t subgroup_size = 4;
  std::vector<uint32_t> subgroup_order;                     ///< see subgroupOrder
  uint32_t subgroup_lane = kUnused, subgroup_id = kUnused;  ///< word offsets
  static constexpr uint32_t kUnused = UINT32_MAX;
  static constexpr uint32_t kScratchRows = 12;
};

/// Decodes the entry point of a kernel. Chooses between one workgroup at a time (more values are uniform) and several side by side
/// (small workgroups fill the rows better) by an estimate of the work a lane.
Result<Bytecode> decode(const kernel::Module& module, const SubgroupShape& subgroups = {});
/// The same for the sanitizer: one workgroup at a time, with the steps that it watches.
Result<Bytecode> decodeWatched(const kernel::Module& module, const SubgroupShape& subgroups, const Watched& watched);
/// The same with the choice made: the number of workgroups of a batch.
Result<Bytecode> decode(const kernel::Module& module, uint32_t batch_groups, const SubgroupShape& subgroups = {});
/// Listing for tests and for people.
std::string print(const Bytecode& bytecode);

}  // namespace lockstep::reference
