// SPDX-License-Identifier: Apache-2.0
// Kernel IR: a compute shader module with WGSL's semantics, as a value. Four arenas (values, blocks, instructions, functions) and
// typed ids into them; no pointers. SSA values hold results; mutable state lives in `var`s behind pointers, so there are no phis.
// Control flow is structured: an instruction of group Control owns blocks. A block ends early at break, continue or return.
//
// Text form (one operation per line, two-space blocks, type on the result; grammar in ir/README.md):
//   lockstep.kernel 1
//   var @x: array<f32> {access = read, binding = 0, group = 0, space = storage}
//   fn @main(%gid: vec3<u32> {builtin = global_invocation_id}) {workgroup_size = [64, 1, 1]} {
//     %0: u32 = extract %gid, 0u
//     ...
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/kernel/op.h"
#include "ir/kernel/type.h"
#include "ir/support/id.h"
#include "ir/support/location.h"
#include "ir/support/result.h"

namespace lockstep::kernel {

using ValueId = Id<struct KernelValueTag>;
using InstructionId = Id<struct KernelInstructionTag>;
using BlockId = Id<struct KernelBlockTag>;
using FunctionId = Id<struct KernelFunctionTag>;

enum class Builtin : uint8_t {
  None,
  LocalInvocationId,
  LocalInvocationIndex,
  GlobalInvocationId,
  WorkgroupId,
  NumWorkgroups,
  SubgroupSize,
  SubgroupInvocationId,
  SubgroupId,             ///< of the subgroup in its workgroup
  NumSubgroups,           ///< in the workgroup
  WorkgroupIndex,         ///< place of workgroup_id in the grid of workgroups, x first
  GlobalInvocationIndex,  ///< place of global_invocation_id in the grid of invocations, x first
};
std::string_view toString(Builtin builtin);  ///< "global_invocation_id"
std::optional<Builtin> findBuiltin(std::string_view text);
bool isVector(Builtin builtin);        ///< a vec3<u32>; the others are u32
bool needsSubgroups(Builtin builtin);  ///< the capability

enum class ValueKind : uint8_t {
  Constant,     ///< module scope; interned by Builder
  Variable,     ///< module scope; the pointer to globals[index]
  Parameter,    ///< of function `index`
  Instruction,  ///< result of instruction `index`
};

struct Value {
  ValueKind kind = ValueKind::Constant;
  TypeId type;
  uint32_t index = 0;
  /// Constant scalar: its bits (bool 0/1, f16 in the low half). Unused for composites.
  uint32_t bits = 0;
  /// Constant composite: one constant per element; empty means the zero value of the type.
  std::vector<ValueId> elements;
  std::string name;  ///< hint for texts; may be empty, need not be unique
  friend bool operator==(const Value&, const Value&) = default;
};

/// Whether a float operation may be contracted (a*b+c fused) or must be rounded as written.
enum class FloatMode : uint8_t { Contract, Strict };

struct SwitchCase {
  std::vector<uint32_t> selectors;  ///< bit patterns of i32 or u32
  bool is_default = false;
  friend bool operator==(const SwitchCase&, const SwitchCase&) = default;
};

struct Instruction {
  Op op = Op::Return;
  TypeId type;     ///< of the result; void type when there is none
  ValueId result;  ///< invalid when there is none
  std::vector<ValueId> operands;
  std::vector<BlockId> blocks;    ///< Control only
  std::vector<SwitchCase> cases;  ///< Switch only, parallel to blocks
  /// Print only: its text, and then a name for each operand; any of them may be empty. Or nothing at all.
  std::vector<std::string> labels = {};
  uint32_t immediate = 0;  ///< Swizzle components; Call: function index; SubgroupMatrixLoad, -Store: 1 for column-major
  FloatMode float_mode = FloatMode::Contract;
  bool in_bounds = false;  ///< Access: every index is proven in range, no guard needed
  uint32_t origin = 0;     ///< 1 + id of the graph node that this came from; 0 = none
  uint32_t location = 0;   ///< 1 + index into Module::locations; 0 = none
  friend bool operator==(const Instruction&, const Instruction&) = default;
};

struct Block {
  std::vector<InstructionId> instructions;
  friend bool operator==(const Block&, const Block&) = default;
};

/// A module-scope variable. Its pointer is a Value of kind Variable.
struct GlobalVariable {
  std::string name;
  ValueId value;
  TypeId type;  ///< store type
  AddressSpace space = AddressSpace::Private;
  Access access = Access::ReadWrite;
  uint32_t group = 0, binding = 0;  ///< uniform and storage
  ValueId initializer;              ///< private only; invalid = zero
  /// Workgroup only. False: the kernel writes every element before it reads it, so nobody has to zero the memory first. WGSL text
  /// cannot say so. The reference fills such memory with NaNs, which shows a promise that was broken.
  bool zero_initialized = true;
  friend bool operator==(const GlobalVariable&, const GlobalVariable&) = default;
};

struct Parameter {
  ValueId value;
  Builtin builtin = Builtin::None;  ///< entry points only
  friend bool operator==(const Parameter&, const Parameter&) = default;
};

struct Function {
  std::string name;
  std::vector<Parameter> parameters;
  TypeId return_type;
  BlockId body;
  /// Set for an entry point.
  std::optional<std::array<uint32_t, 3>> workgroup_size;
  /// Of an entry point whose results need it: the invocations of a subgroup, which all are full then. 0: any number.
  uint32_t subgroup_size = 0;
  friend bool operator==(const Function&, const Function&) = default;
};

enum class Capability : uint8_t { F16, Subgroups, SubgroupMatrices };
std::string_view toString(Capability capability);  ///< "subgroups"
std::optional<Capability> findCapability(std::string_view text);

struct Module {
  std::string name;
  TypeTable types;
  std::vector<Value> values;
  std::vector<GlobalVariable> globals;
  std::vector<Function> functions;  ///< callees before callers
  std::vector<Block> blocks;
  std::vector<Instruction> instructions;
  std::vector<Location> locations;
  std::string source;                    ///< the text that locations are in; empty where it is not at hand
  std::vector<Capability> capabilities;  ///< sorted

  [[nodiscard]] const Value& operator[](ValueId id) const { return values[id.index()]; }
  [[nodiscard]] const Instruction& operator[](InstructionId id) const { return instructions[id.index()]; }
  [[nodiscard]] const Block& operator[](BlockId id) const { return blocks[id.index()]; }
  [[nodiscard]] const Function& operator[](FunctionId id) const { return functions[id.index()]; }
  [[nodiscard]] const Type& typeOf(ValueId id) const { return types[values[id.index()].type]; }
  [[nodiscard]] const Function* findFunction(std::string_view name) const;
  /// The first entry point, or null.
  [[nodiscard]] const Function* entryPoint() const;
  friend bool operator==(const Module&, const Module&) = default;
};

/// Bytes of the first immediate variable (an entry point may use one), rounded up to 4; 0 when there is none.
uint32_t immediateBytes(const Module& module);

/// A print shows values of at most this many scalars.
inline constexpr uint32_t kMaxPrintedScalars = 4096;
/// How many scalars a value of this type, which can be constructed, holds; `limit` where it is more.
uint32_t scalarCount(const TypeTable& types, TypeId type, uint32_t limit);

/// Blocks nest at most this deep in a text and in a valid module.
inline constexpr uint32_t kMaxBlockNesting = 256;

/// Renumbers every arena in print order and drops what is unreachable from functions and globals (unused types, values, blocks),
/// so that two modules are equal by value iff their texts are equal. Names become those of the text (unique, plain letters); source
/// locations, and the source itself, are dropped unless asked for, as in `print`. The module's ids must be in range.
Module canonical(const Module& module, bool with_locations = false);

/// The text form. Deterministic; locations only when asked for. Never fails: ids out of range print as "<invalid>".
std::string print(const Module& module, bool with_locations = false);
/// Reads the text form: parse(print(m, l)) == canonical(m, l) for every valid module. Checks syntax, names and literals only.
Result<Module> parse(std::string_view text, const std::string& file_name = "kernel");

/// A module that passed the validator: the only thing that a backend accepts.
class ValidModule {
 public:
  [[nodiscard]] const Module& operator*() const { return module_; }
  [[nodiscard]] const Module* operator->() const { return &module_; }

 private:
  explicit ValidModule(Module module) : module_(std::move(module)) {}
  friend Result<ValidModule> validate(Module module);
  Module module_;
};

/// Checks structure (ids, ownership, dominance, terminators) and types (every rule of ops.def). Diagnostics point into print(module)
/// and quote its line; codes are kernel.structure, kernel.dominance, kernel.control, kernel.recursion, kernel.type, kernel.access,
/// kernel.constant, kernel.memory, kernel.layout, kernel.binding, kernel.entry_point and kernel.capability.
Result<ValidModule> validate(Module module);

}  // namespace lockstep::kernel
