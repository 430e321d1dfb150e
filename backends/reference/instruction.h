// SPDX-License-Identifier: Apache-2.0
// One instruction of the reference machine and the table of vector routines that execute it. This header is included by files that are
// compiled for a newer instruction set, so it must not define inline functions or include headers that do.
#pragma once

#include <cstdint>

namespace lockstep::reference {

enum class Opcode : uint8_t {
#define LS_VM_OP1(name, r, a) name,
#define LS_VM_OP2(name, r, a, b) name,
#define LS_VM_OP3(name, r, a, b, c) name,
#define LS_VM_CONTROL(name) name,
#include "backends/reference/opcodes.def"
#undef LS_VM_OP1
#undef LS_VM_OP2
#undef LS_VM_OP3
#undef LS_VM_CONTROL
};

struct Instruction;

/// Executes one pure instruction over `width` lanes (a multiple of 16). `r` is the register file; operands are word offsets in it.
using Handler = void (*)(uint32_t* r, uint32_t width, const Instruction& instruction);

/// Bits of Instruction::varying: which operands, and whether the destination, have a value for each lane.
constexpr uint8_t kVaryingA = 1, kVaryingB = 2, kVaryingC = 4, kVaryingDst = 8;
constexpr uint8_t kVaryingOperands = kVaryingA | kVaryingB | kVaryingC;

struct Instruction {
  Handler handler = nullptr;  ///< null: the interpreter handles `op`
  Opcode op = Opcode::End;
  Opcode join = Opcode::End;  ///< Subgroup*: what joins two lanes; Watch*: the operation
  bool masked = false;        ///< the destination is a variable: inactive lanes keep their value
  bool left = false;          ///< IfEnd, ScopeEnd: lanes may have left for an outer scope
  uint8_t varying = 0;        ///< kVarying*
  /// Word offsets in the register file. Memory instructions have their index in `a`, UINT32_MAX where there is none.
  uint32_t dst = 0, a = 0, b = 0, c = 0;
  uint32_t frame = 0;   ///< If*, Scope*, Clear: the mask frame; Barrier: the spaces that it orders
  uint32_t alive = 0;   ///< IfEnd, ScopeEnd with `left`: the frame of the innermost scope that lanes may have left
  uint32_t target = 0;  ///< jumps: instruction index
  uint32_t access = 0;  ///< memory: index into Bytecode::accesses
  uint32_t site = 0;    ///< 1 + kernel instruction id, for reports; 0 = none
};

constexpr uint32_t kPureOps = static_cast<uint32_t>(Opcode::Splat);
constexpr uint32_t kLaneBlock = 16;  ///< lanes are padded to a multiple of this

/// What a scan of an index register found.
struct IndexScan {
  bool in_range;
  bool contiguous;  ///< index[k] == index[0] + k
  bool same;        ///< index[k] == index[0]
};

struct MinMax {
  uint32_t min, max;  ///< bits
};

/// What an access to a word is noted with: see sanitize/access_history.h.
struct HistoryTime {
  uint32_t epoch = 0;  ///< between two barriers
  uint32_t first = 0;  ///< the first epoch of this workgroup; 0: the memory belongs to it alone
  uint32_t site = 0;
  uint32_t lane_shift = 0;  ///< of rows: word k belongs to lane k >> lane_shift
};
/// A stamp is the epoch, shifted by kStampEpoch, two flags and the lane.
constexpr uint32_t kStampEpoch = 12, kStampOthers = 1u << 11, kStampMany = 1u << 10, kStampLane = kStampMany - 1;

/// The routines that are compiled once for each instruction set. All variants give the same bits.
struct VectorRoutines {
  /// [op][bits of varying operands]; entry 0 computes one lane.
  Handler pure[kPureOps][8];
  /// dst = a & b; returns the number of set lanes. All masks are 0 or ~0 per lane.
  uint32_t (*maskAnd)(uint32_t* dst, const uint32_t* a, const uint32_t* b, uint32_t width);
  uint32_t (*maskAndNot)(uint32_t* dst, const uint32_t* a, const uint32_t* b, uint32_t width);
  void (*blend)(uint32_t* dst, const uint32_t* source, const uint32_t* mask, uint32_t width);
  /// Whether some value is NaN or infinite.
  bool (*anyNotFinite)(const uint32_t* values, uint32_t width);
  MinMax (*minMax)(const uint32_t* values, uint32_t count, bool is_signed);
  void (*fill)(uint32_t* dst, uint32_t value, uint32_t width);
  IndexScan (*scan)(const uint32_t* index, uint32_t lanes, uint32_t limit);
  /// dst[k] = base[index[k] * stride]
  void (*gather)(uint32_t* dst, const uint32_t* base, const uint32_t* index, uint32_t stride, uint32_t lanes);
  /// base[index[k] * stride] = source[k], in lane order
  void (*scatter)(uint32_t* base, const uint32_t* source, const uint32_t* index, uint32_t stride, uint32_t lanes);
  /// dst[k] = base[k * stride]
  void (*loadStrided)(uint32_t* dst, const uint32_t* base, uint32_t stride, uint32_t lanes);
  void (*storeStrided)(uint32_t* base, const uint32_t* source, uint32_t stride, uint32_t lanes);
  /// Four registers from `lanes` consecutive vec4.
  void (*loadVec4)(uint32_t* d0, uint32_t* d1, uint32_t* d2, uint32_t* d3, const uint32_t* base, uint32_t lanes);
  /// `count` consecutive words are written, or read, by lanes 0, 1, ...; see sanitize/access_history.h. False, and nothing is noted, where
  /// that may be a race.
  bool (*noteWrites)(uint32_t* written, uint32_t* writers, const uint32_t* read, const HistoryTime& now, uint32_t count);
  bool (*noteReads)(uint32_t* read, uint32_t* readers, const uint32_t* written, const HistoryTime& now, uint32_t count);
  void (*storeVec4)(uint32_t* base, const uint32_t* s0, const uint32_t* s1, const uint32_t* s2, const uint32_t* s3, uint32_t lanes);
};

extern const VectorRoutines kBaselineRoutines;
#if defined(__x86_64__)
extern const VectorRoutines kAvx2Routines;
#endif
/// The fastest variant that this machine can run.
const VectorRoutines& vectorRoutines();

}  // namespace lockstep::reference
