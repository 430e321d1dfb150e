// SPDX-License-Identifier: Apache-2.0
// Scalar code: a kernel with its functions inlined and every composite split into 32-bit scalars, still as a tree of control flow. It is
// what the analyses of the reference backend work on, between the kernel IR and the bytecode.
//
// An f16 is held as the f32 of the same value, in registers and in lane-private memory; only buffers and workgroup memory have its 16 bits.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "backends/reference/instruction.h"
#include "ir/kernel/module.h"
#include "ir/support/result.h"

namespace lockstep::reference {

/// Index into Code::registers.
using Register = uint32_t;

struct Operand {
  enum class Kind : uint8_t { None, Constant, Register };
  Kind kind = Kind::None;
  uint32_t value = 0;  ///< bits of a constant, or a Register
  [[nodiscard]] bool isConstant() const { return kind == Kind::Constant; }
  [[nodiscard]] bool isRegister() const { return kind == Kind::Register; }
  friend auto operator<=>(const Operand&, const Operand&) = default;
};
inline Operand constant(uint32_t bits) { return {Operand::Kind::Constant, bits}; }
inline Operand reg(Register r) { return {Operand::Kind::Register, r}; }

struct RegisterInfo {
  bool variable = false;  ///< may be assigned more than once; others have one definition
  bool varying = false;   ///< set by analyseUniformity
};

/// Where a variable of the kernel lives.
enum class Home : uint8_t {
  Registers,  ///< function and private variables whose indices are all constant
  Lanes,      ///< lane-private memory, word by word a row of lanes
  Workgroup,  ///< one copy for each workgroup of the batch
  Buffer,     ///< uniform and storage
  Table,      ///< constants of the kernel that are indexed at run time
};

struct Variable {
  std::string name;
  Home home = Home::Registers;
  uint32_t words = 0;                 ///< size; of a runtime-sized buffer the smallest legal size
  uint32_t offset = 0;                ///< Lanes, Workgroup, Table: first word in that memory
  uint32_t binding = 0;               ///< Buffer: position in Dispatch::bindings; after them, Dispatch::immediates
  bool writable = false;              ///< Buffer
  bool zeroed = true;                 ///< Workgroup: false: holds NaNs at first
  uint32_t unit = 4;                  ///< bytes of one of `words`
  bool is_scalar = false;             ///< has no elements to name
  bool has_halves = false;            ///< some of it is f16
  std::vector<Register> registers{};  ///< Registers: one for each word (padding has UINT32_MAX)
};

/// One access to memory: element `index` (checked against `count`) of an array whose elements are `stride` words apart, then some words.
/// Of a `half` access every "word" is one of 16 bits.
struct Access {
  uint32_t variable = 0;
  bool half = false;
  uint32_t offset = 0;            ///< words from the start of the variable
  uint32_t stride = 0;            ///< words
  uint32_t count = 1;             ///< number of elements; 0: as many as the binding holds after `array`
  uint32_t array = 0;             ///< words from the start of the variable to the runtime-sized array
  Operand index{};                ///< None: element 0
  uint32_t expression = 0;        ///< of WatchIndex: index into Code::expressions
  std::vector<uint32_t> words{};  ///< word offsets in the element
  std::vector<Operand> values{};  ///< loads: destination registers; stores: sources; parallel to `words`
};

enum class StepKind : uint8_t {
  Pure,      ///< dst = op(a, b, c)
  Declare,   ///< variable register dst begins to live with value a (None: undefined)
  Assign,    ///< variable register dst = a in the active lanes
  Memory,    ///< op on accesses[access]: Load, Store, LaneLoad, LaneStore, LaneZero; atomics with dst, b (value), c (compare)
  Address,   ///< dst = a < count ? b + a * stride : ~0, for the second and later run-time index of an access
  Check,     ///< reports a >= accesses[access].count
  Clamp,     ///< dst = min(a, accesses[access].count - 1), and reports what was larger; only in watched code
  Length,    ///< dst = number of elements of the runtime-sized array accesses[access]
  Subgroup,  ///< dst = a joined, scanned or moved across lanes; b: identity of a scan, word of a ballot, lane of a shuffle
  Watch,     ///< looks at what `join` has to do with a, b and c, or at a result a; only in watched code
  Print,     ///< a line of the values of accesses[access], which is not memory; WatchIndex: what an index is computed from
  Barrier,
  If,     ///< a = condition; body, other
  Loop,   ///< body for ever; left by Exit
  Scope,  ///< body once; may be left early by Exit
  Exit,   ///< leaves construct `construct` (a Loop or Scope) in the active lanes
};

/// Which memory a barrier orders.
inline constexpr uint8_t kOrdersWorkgroup = 1, kOrdersStorage = 2;

struct Step {
  StepKind kind = StepKind::Pure;
  Opcode op = Opcode::Move;
  Register dst = UINT32_MAX;
  Operand a{}, b{}, c{};
  Opcode join = Opcode::Move;  ///< Subgroup: what joins the values of two lanes; Watch: the operation
  uint8_t spaces = 0;          ///< Barrier: kOrdersWorkgroup, kOrdersStorage
  uint32_t access = 0;
  uint32_t construct = 0;  ///< If, Loop, Scope: its id; Exit: the target's id
  uint32_t site = 0;       ///< 1 + kernel instruction id; 0 = none
  std::vector<Step> body{}, other{};
};

/// How an index is computed from values that are not taken apart further. Operands come before what uses them; the last node is the index.
struct IndexExpression {
  struct Node {
    Opcode op = Opcode::Move;  ///< of leaves: Move
    bool is_signed = false;
    bool is_leaf = false;
    uint32_t a = 0, b = 0;  ///< nodes; of a leaf: the value of the access that it is
    uint32_t site = 0;
  };
  static constexpr uint32_t kDepth = 5;
  static constexpr size_t kMost = (size_t{1} << (kDepth + 1)) - 1;
  std::vector<Node> nodes;
  uint32_t variable = 0;
};

/// A store that fills a workgroup array again in each round of a loop, but for a tail where it says so, and loads in that loop. What such a
/// load finds of an earlier round is a mistake, if the value is used. By site, as in Step.
struct Refill {
  uint32_t variable = 0;  ///< index into Code::variables
  uint32_t store = 0;
  std::vector<uint32_t> loads;
};

/// How the invocations of a workgroup make subgroups.
struct SubgroupShape {
  uint32_t size = 4;  ///< a power of two, 4 to 128
  uint64_t seed = 0;  ///< of the order in which invocations fill the subgroups; 0: by local_invocation_index
};
/// The invocations of a workgroup in the order in which they fill its subgroups.
std::vector<uint32_t> subgroupOrder(uint32_t lanes, uint64_t seed);

struct Code {
  std::string name;
  std::array<uint32_t, 3> workgroup_size{1, 1, 1};
  std::vector<RegisterInfo> registers;
  std::vector<Variable> variables;
  std::vector<Access> accesses;
  std::vector<IndexExpression> expressions;
  std::vector<bool> divergent;  ///< of each construct; set by analyseUniformity
  std::vector<uint32_t> table;  ///< words of the variables in Home::Table
  uint32_t lane_words = 0;      ///< lane-private memory of one lane
  uint32_t workgroup_words = 0;
  bool batched = false;  ///< lanes belong to several workgroups
  std::array<Register, 3> local_id{}, group_id{}, group_count{};
  Register subgroup_lane = 0, subgroup_id = 0;
  SubgroupShape subgroups;
  uint32_t construct_count = 0;
  std::vector<Step> body;

  [[nodiscard]] uint32_t invocations() const { return workgroup_size[0] * workgroup_size[1] * workgroup_size[2]; }
};

/// A scalar of a type in memory, in the order in which composite values list them.
struct Component {
  kernel::Scalar scalar;
  uint32_t word;  ///< offset in units
};
/// `unit` is the size of a unit in bytes: 4, or 2 for types with f16.
std::vector<Component> flatten(const kernel::TypeTable& types, kernel::TypeId type, uint32_t unit);
/// Whether some of it is f16; runtime-sized arrays count, too.
bool hasHalves(const kernel::TypeTable& types, kernel::TypeId type);

/// What watched code looks at: Clamp and Watch steps.
struct Watched {
  bool indices = false, integers = false, floats = false, wraps = false;
};
/// Lowers the entry point of a module. Fails when there is none.
Result<Code> lower(const kernel::Module& module, const SubgroupShape& subgroups = {}, const Watched& watched = {});
/// Decides which registers are equal in all lanes and which constructs lanes may leave or enter apart.
void analyseUniformity(Code& code);
/// Whether workgroups must run one after the other for the same result every time: an atomic on a buffer whose result is used or that does
/// not commute with the others on its variable, a variable that is accessed by atomics and plainly, or a plain store to a place that does
/// not depend on the workgroup. `row`: the dispatch has one workgroup in y and z, so what only one workgroup_id.x reaches is reached once.
bool needsOrder(const Code& code, bool row);
/// After analyseUniformity.
std::vector<Refill> findRefills(const Code& code);
/// Drops pure steps whose results nobody uses.
void removeDeadSteps(Code& code);

}  // namespace lockstep::reference
