// SPDX-License-Identifier: Apache-2.0
// The emitter behind emitSpirv, for the spirv_*.cpp files only: the only ones that know spv::Builder.
#pragma once

#include <glslang/SPIRV/GLSL.std.450.h>
#include <glslang/SPIRV/Logger.h>
#include <glslang/SPIRV/SpvBuilder.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "backends/vulkan/spirv.h"

namespace lockstep::vulkan {

/// A pointer of the kernel IR. SPIR-V's logical addressing has no pointer values: the chain of indices is kept and spent at each use.
struct Place {
  spv::Id base = spv::NoResult;
  spv::StorageClass storage = spv::StorageClassFunction;
  std::vector<spv::Id> chain;
  kernel::TypeId pointee;
  bool laid_out = false;     ///< a buffer: its aggregates have the types with explicit offsets
  uint32_t last_member = 0;  ///< of the block, for the length of a runtime-sized array
};

/// A name hint as printable ASCII.
std::string plainName(const std::string& name);

/// Which column of an op's row applies.
enum class LaneKind : uint8_t { Float, Signed, Unsigned, Bool };

class Emitter {
 public:
  Emitter(const kernel::Module& module, const kernel::Function& entry, const SpirvOptions& options);
  std::vector<uint32_t> run();
  /// Whether run() met a `print` that it has no words for.
  [[nodiscard]] bool leftOutPrint() const { return left_out_print_; }

 private:
  using Handler = spv::Id (Emitter::*)(const kernel::Instruction&);
  /// How an op of groups Arithmetic, Math and Composite is emitted; the numbers are SPIR-V opcodes or GLSL.std.450 instructions.
  struct Row {
    Handler emit = nullptr;
    uint32_t of_float = 0, of_signed = 0, of_unsigned = 0, of_bool = 0;
    [[nodiscard]] uint32_t of(LaneKind kind) const;
  };
  static const Row& row(kernel::Op op);

  // spirv_types.cpp: types and constants.
  spv::Id scalarType(kernel::Scalar scalar);
  spv::Id lanesType(kernel::Scalar scalar, uint32_t width);
  /// The type of values and of variables outside of buffers: no layout.
  spv::Id valueType(kernel::TypeId id) { return makeType(id, false); }
  /// The type inside of buffers: offsets, strides; bool cannot occur.
  spv::Id bufferType(kernel::TypeId id) { return makeType(id, true); }
  spv::Id makeType(kernel::TypeId id, bool laid_out);
  spv::Id makeStruct(const kernel::Type& type, bool laid_out);
  void decorateMatrixMember(spv::Id structure, uint32_t member, kernel::TypeId type);
  spv::Id constant(kernel::ValueId id);
  spv::Id scalarConstant(kernel::Scalar scalar, uint32_t bits) { return lanesConstant(scalar, bits, 1); }
  spv::Id compositeConstant(spv::Id type, const std::vector<spv::Id>& parts);
  spv::Id addConstant(std::unique_ptr<spv::Instruction> constant);
  spv::Id makeScalarConstant(kernel::Scalar scalar, uint32_t bits);
  spv::Id u32(uint32_t value) { return scalarConstant(kernel::Scalar::U32, value); }
  /// The constant in every lane of a scalar or vector of this width.
  spv::Id lanesConstant(kernel::Scalar scalar, uint32_t bits, uint32_t width);
  spv::Id floatLanes(kernel::Scalar scalar, float value, uint32_t width);
  /// Declares the buffers, workgroup and private variables that the entry point reaches.
  void declareGlobals();
  void declareBuffer(const kernel::GlobalVariable& global);
  void declareInputs();
  spv::Id inputVariable(kernel::Builtin builtin);
  spv::Id input(kernel::Builtin builtin);
  /// local_invocation_id of a workgroup that is a row.
  spv::Id placeInRow();
  spv::Id gridIndex(spv::Id id, const std::array<uint32_t, 3>& cell);
  void zeroPrivateMemory();
  void zeroWorkgroupMemory();
  void zeroPlace(const Place& place, spv::Id local_index);

  // spirv_memory.cpp: places, loads and stores.
  spv::Id address(const Place& place);
  Place part(const Place& place, spv::Id index, kernel::TypeId element, uint32_t literal = 0) const;
  spv::Id load(const Place& place);
  void store(const Place& place, spv::Id value);
  spv::Id loadArray(const Place& place);
  void storeArray(const Place& place, spv::Id value);
  spv::Id arrayLength(const Place& place);
  /// A store of the zero value; large arrays by loops.
  void clear(const Place& place);
  /// Whether drivers would take long over one constant of the type.
  [[nodiscard]] bool isLarge(kernel::TypeId type) const;
  Place localVariable(kernel::TypeId type, const std::string& name);
  /// The constant's value, when the operand is a scalar constant.
  [[nodiscard]] std::optional<uint32_t> literal(kernel::ValueId id) const;
  /// The zero value of its type, as a constant.
  [[nodiscard]] bool isNull(kernel::ValueId id) const;
  void emitMemory(const kernel::Instruction& instruction);
  void emitAccess(const kernel::Instruction& instruction);
  void emitAtomic(const kernel::Instruction& instruction);
  void emitBarrier(const kernel::Instruction& instruction);
  void controlBarrier(bool storage);

  // spirv_control.cpp: blocks.
  void emitBlock(kernel::BlockId id);
  void emitInstruction(const kernel::Instruction& instruction);
  void emitIf(const kernel::Instruction& instruction);
  void emitLoop(const kernel::Instruction& instruction);
  void emitSwitch(const kernel::Instruction& instruction);

  void selectionMerge(spv::Block& merge);
  void branchUnlessTerminated(spv::Block& target);
  void emitSwitchTerminator(spv::Id selector, spv::Block& otherwise, const std::vector<std::pair<uint32_t, spv::Block*>>& targets);
  void countedLoop(uint32_t count, uint32_t step, spv::Id first, const std::function<void(spv::Id)>& body);

  // spirv_loops.cpp: loops that are not sure to end.
  /// The counter of a loop that needs one.
  std::optional<Place> startCountdown(const kernel::Instruction& loop);
  void countDown(const Place& rounds, spv::Block& merge);
  void findSteps();
  /// A driver that dissolves a loop around hundreds of products by matrix units, whatever the loop control says, makes code that no cache
  /// holds: 170 KB instead of 27, and a fifth of the speed.
  [[nodiscard]] bool hasProducts(const kernel::Instruction& loop) const;
  /// Whether the innermost loop moves a counter by what drivers must not know.
  [[nodiscard]] bool hidesStep(kernel::ValueId sum) const;
  [[nodiscard]] bool isOrdinaryStep(kernel::Op op, kernel::ValueId by) const;
  /// 0, in every lane.
  spv::Id hiddenZero(uint32_t width);

  // spirv_matrices.cpp
  void enableMatrices();
  spv::Id matrixComponent(kernel::Scalar scalar);
  spv::Id makeMatrixType(const kernel::Type& type);
  spv::Id zeroMatrix(kernel::TypeId type);
  spv::Id matrixPlace(const kernel::Instruction& in);
  void addMatrixAccess(const Place& place, std::vector<spv::IdImmediate>& operands);
  template <size_t N>
  spv::Id sumOfBits(spv::Id number, const std::array<uint32_t, N>& places);
  spv::Id matrixPlaceOf(const kernel::Instruction& in);
  void emitMatrix(const kernel::Instruction& in);
  // spirv_matrix_rows.cpp: what needs to know where the elements are.
  spv::Id reduceRows(const kernel::Instruction& in);
  spv::Id convertMatrix(const kernel::Instruction& in);
  [[nodiscard]] bool isShared(const Place& place) const;
  spv::Id loadFrom(const Place& place);
  void storeTo(const Place& place, spv::Id value);

  // spirv_subgroups.cpp
  spv::Id emitSubgroup(const kernel::Instruction& in);
  spv::Id lastLaneAtMost(spv::Id lane);
  /// Whether the lane that a shuffle by a distance or a mask reads from is one of the subgroup.
  spv::Id hasSource(const kernel::Instruction& in);
  [[nodiscard]] bool staysInside(kernel::ValueId mask) const;

  // spirv_lines.cpp
  /// What follows in this block comes from the instruction. Does nothing without SpirvOptions::source_lines.
  void markLine(const kernel::Instruction& in) { markLine(in.location); }
  void markLine(uint32_t location);
  /// Goes on in another block, where no line is known yet, with the line of this one.
  void continueIn(spv::Block& block);
  spv::Id sourceFile(const std::string& file);
  /// The module with the names of its files and with its text.
  [[nodiscard]] std::vector<uint32_t> withSources(const std::vector<uint32_t>& words) const;

  // spirv_print.cpp
  void emitPrint(const kernel::Instruction& in);
  spv::Id printable(spv::Id made, const kernel::Type& type);
  std::string printedForm(spv::Id made, kernel::TypeId id, std::vector<spv::Id>& operands);

  // spirv_ops.cpp: handlers of the rows.
  spv::Id emitCore(const kernel::Instruction& in);
  spv::Id emitExt(const kernel::Instruction& in);
  spv::Id emitWrapping(const kernel::Instruction& in);
  spv::Id emitFloatOrWrapping(const kernel::Instruction& in);
  spv::Id emitDiv(const kernel::Instruction& in);
  spv::Id emitRem(const kernel::Instruction& in);
  spv::Id emitShift(const kernel::Instruction& in);
  spv::Id emitSelect(const kernel::Instruction& in);
  spv::Id emitMatMul(const kernel::Instruction& in);
  spv::Id emitAbs(const kernel::Instruction& in);
  spv::Id emitSign(const kernel::Instruction& in);
  spv::Id emitClamp(const kernel::Instruction& in);
  spv::Id emitSaturate(const kernel::Instruction& in);
  spv::Id emitTanh(const kernel::Instruction& in);
  spv::Id emitCountLeadingZeros(const kernel::Instruction& in);
  spv::Id emitCountTrailingZeros(const kernel::Instruction& in);
  spv::Id emitExtractBits(const kernel::Instruction& in);
  spv::Id emitInsertBits(const kernel::Instruction& in);
  spv::Id emitQuantize(const kernel::Instruction& in);
  spv::Id emitDot(const kernel::Instruction& in);
  spv::Id emitDotPacked(const kernel::Instruction& in);
  spv::Id emitAllAny(const kernel::Instruction& in);
  spv::Id emitConvert(const kernel::Instruction& in);
  spv::Id emitBitcast(const kernel::Instruction& in);
  spv::Id emitConstruct(const kernel::Instruction& in);
  spv::Id emitExtract(const kernel::Instruction& in);
  spv::Id emitSwizzle(const kernel::Instruction& in);
  spv::Id notHere(const kernel::Instruction& in);
  spv::Id convertLanes(spv::Id value, kernel::Scalar from, kernel::Scalar to, uint32_t width);
  spv::Id splat(spv::Id scalar, kernel::Scalar kind, uint32_t width);
  spv::Id ext(spv::Id type, uint32_t instruction, const std::vector<spv::Id>& operands);
  spv::Id quotient(const kernel::Instruction& in);
  /// Bits of an extract/insert: the offset and count clamped to the word.
  std::pair<spv::Id, spv::Id> bitRange(kernel::ValueId offset, kernel::ValueId count);
  /// a * b + c as separate operations.
  spv::Id mulAdd(spv::Id type, spv::Id a, spv::Id b, spv::Id c);
  spv::Id strictOp(spv::Op op, spv::Id type, spv::Id a, spv::Id b);
  /// The lanes of an i32 operand as u32, and back.
  spv::Id asUnsigned(spv::Id value, const kernel::Type& type);
  spv::Id asSigned(spv::Id value, const kernel::Type& type);

  [[nodiscard]] const kernel::Type& typeOf(kernel::ValueId id) const { return types_[module_[id].type]; }
  [[nodiscard]] LaneKind laneKind(const kernel::Type& type) const;
  spv::Id value(kernel::ValueId id);
  std::vector<spv::Id> values(const std::vector<kernel::ValueId>& ids);
  const Place& place(kernel::ValueId id);
  void define(const kernel::Instruction& instruction, spv::Id id);
  /// A name for people. Not more than some equal ones: spirv-dis and spirv-val make each unique in time linear in those before it.
  void addName(spv::Id id, const std::string& name);

  /// Where break and continue go.
  struct Breakable {
    spv::Block* merge = nullptr;
    spv::Block* next = nullptr;  ///< the continue target; null for a switch
    bool hides_steps = false;    ///< a loop that has a countdown, or that a driver must not dissolve
  };
  const kernel::Module& module_;
  const kernel::Function& entry_;
  SpirvOptions options_;
  kernel::TypeTable types_;  ///< a copy: elementOf interns
  spv::SpvBuildLogger logger_;
  spv::Builder builder_;
  spv::Id glsl_ = spv::NoResult;
  spv::Id debug_printf_ = spv::NoResult;
  spv::Instruction* entry_point_ = nullptr;
  bool has_storage_barrier_ = false;
  bool has_matrices_ = false;  ///< and therefore the Vulkan memory model
  spv::Id bfloat16_ = spv::NoType, bfloat16_zero_ = spv::NoResult;
  bool is_row_ = false;  ///< the workgroup is declared as one row of its invocations
  bool left_out_print_ = false;
  std::map<std::string, spv::Id> source_files_;
  uint32_t line_ = 0;  ///< 1 + index of the location that holds at the end of lined_block_; 0: none does
  const spv::Block* lined_block_ = nullptr;
  std::vector<spv::Id> ids_;                  ///< by value
  std::vector<std::optional<Place>> places_;  ///< by value
  std::map<std::pair<uint32_t, bool>, spv::Id> made_types_;
  std::map<std::tuple<kernel::Scalar, uint32_t, uint32_t>, spv::Id> lanes_;  ///< constants by width and bits of every lane
  std::map<std::pair<spv::Id, std::vector<spv::Id>>, spv::Id> composites_;   ///< by type and parts
  std::map<std::string, uint32_t> named_;                                    ///< how many ids have a name
  std::set<uint32_t> own_blocks_;                                            ///< struct types that are decorated as blocks themselves
  std::map<kernel::Builtin, spv::Id> inputs_;
  std::map<uint32_t, Place> spilled_constants_;
  std::vector<Breakable> breakables_;
  /// Sums that move a counter by what may be a constant, and whether that is an ordinary one.
  std::map<kernel::ValueId, bool> steps_;
  std::optional<Place> rounds_;  ///< how many rounds are left to the loops that are not sure to end
};

}  // namespace lockstep::vulkan
