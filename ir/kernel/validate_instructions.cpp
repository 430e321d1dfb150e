// SPDX-License-Identifier: Apache-2.0
// Operand and result types, access chains and memory rules of each instruction.
#include <fmt/format.h>

#include "ir/kernel/builder.h"
#include "ir/kernel/validate_internal.h"

namespace lockstep::kernel {
namespace {

constexpr std::string_view kType = "kernel.type";
constexpr std::string_view kAccess = "kernel.access";
constexpr std::string_view kMemory = "kernel.memory";

class InstructionChecker {
 public:
  InstructionChecker(const Module& module, Problems& problems)
      : module_(module), problems_(problems), types_(module.types), constructible_(types_, isConstructible) {}

  void run() {
    for (const Function& function : module_.functions) {
      forEachInstruction(module_, function.body,
                         [&](InstructionId id, const Instruction& instruction) { check(id, instruction, function.return_type); });
    }
  }

 private:
  void check(InstructionId id, const Instruction& instruction, TypeId return_type) {
    id_ = id;
    instruction_ = &instruction;
    if (instruction.in_bounds && instruction.op != Op::Access) {
      problems_.add(at(id), "kernel.structure", "only an access can be in_bounds");
    }
    if (!instruction.labels.empty() && (instruction.op != Op::Print || instruction.labels.size() != instruction.operands.size() + 1)) {
      problems_.add(at(id), "kernel.structure", "the labels of a print are its text and a name for each operand");
    }
    // Not a switch over Op: the ops without a row here are those whose type follows from the operands.
    using Check = void (InstructionChecker::*)();
    static constexpr OpArray<Check> kChecks = [] {
      OpArray<Check> checks{};
      const auto set = [&](Op op, Check check) { checks[static_cast<size_t>(op)] = check; };
      set(Op::Convert, &InstructionChecker::checkConvert);
      set(Op::Bitcast, &InstructionChecker::checkBitcast);
      set(Op::Construct, &InstructionChecker::checkConstruct);
      set(Op::Extract, &InstructionChecker::checkExtract);
      set(Op::Swizzle, &InstructionChecker::checkSwizzle);
      set(Op::Var, &InstructionChecker::checkVar);
      set(Op::Access, &InstructionChecker::checkAccess);
      set(Op::Call, &InstructionChecker::checkCall);
      set(Op::Print, &InstructionChecker::checkPrint);
      set(Op::SubgroupMatrixLoad, &InstructionChecker::checkMatrixLoad);
      set(Op::SubgroupMatrixStore, &InstructionChecker::checkMatrixStore);
      set(Op::SubgroupMatrixConvert, &InstructionChecker::checkMatrixConvert);
      return checks;
    }();
    if (const Check own = kChecks[static_cast<size_t>(instruction.op)]; own != nullptr) {
      (this->*own)();
    } else if (checkInferred()) {
      checkMemory();
      checkLane();
    }
    if (instruction.op == Op::Return) checkReturn(return_type);
  }

  // The problem is with the instruction, or with one of its operands.
  void report(std::string_view code, std::string message) { problems_.add(at(id_), code, std::move(message)); }
  void reportOperand(size_t operand, std::string_view code, std::string message) {
    problems_.add(atOperand(id_, operand), code, std::move(message));
  }

  [[nodiscard]] TypeId operandType(size_t operand) const { return module_[instruction_->operands[operand]].type; }
  [[nodiscard]] std::string text(TypeId type) const { return types_.toString(type); }
  [[nodiscard]] std::string operandsText() const {
    std::string list;
    for (size_t i = 0; i < instruction_->operands.size(); ++i) list += (i == 0 ? "" : ", ") + text(operandType(i));
    return list;
  }
  [[nodiscard]] std::string_view opText() const { return info(instruction_->op).text; }

  bool checkInferred() {
    operand_types_.clear();
    for (size_t i = 0; i < instruction_->operands.size(); ++i) operand_types_.push_back(operandType(i));
    std::optional<TypeId> type = inferType(types_, instruction_->op, operand_types_);
    if (!type) {
      report(kType, fmt::format("{} does not take operands of type ({})", opText(), operandsText()));
    } else if (*type != instruction_->type) {
      report(kType, fmt::format("the result of {} is of type {}, not {}", opText(), text(*type), text(instruction_->type)));
    }
    return type.has_value();
  }

  /// The first operand is known to be a pointer of the right pointee.
  void checkMemory() {
    OpGroup group = info(instruction_->op).group;
    bool takes_pointer = group == OpGroup::Atomic || instruction_->op == Op::Load || instruction_->op == Op::Store ||
                         instruction_->op == Op::ArrayLength || instruction_->op == Op::WorkgroupUniformLoad;
    if (!takes_pointer) return;
    const Type& pointer = types_[operandType(0)];
    bool in_workgroup = pointer.space == AddressSpace::Workgroup;
    if (group == OpGroup::Atomic) {
      bool allowed = in_workgroup || (pointer.space == AddressSpace::Storage && pointer.access == Access::ReadWrite);
      if (!allowed) reportOperand(0, kMemory, "an atomic operation works on workgroup memory or read_write storage");
    } else if (instruction_->op == Op::Load) {
      if (pointer.access == Access::Write) reportOperand(0, kMemory, "the memory is write-only");
      if (!constructible_(pointer.element)) reportOperand(0, kMemory, fmt::format("{} cannot be loaded as a whole", text(pointer.element)));
    } else if (instruction_->op == Op::Store) {
      if (pointer.access == Access::Read) reportOperand(0, kMemory, "the memory is read-only");
      if (!constructible_(pointer.element)) reportOperand(0, kMemory, fmt::format("{} cannot be stored as a whole", text(pointer.element)));
    } else if (instruction_->op == Op::ArrayLength) {
      if (pointer.space != AddressSpace::Storage) reportOperand(0, kMemory, "only storage holds runtime-sized arrays");
    } else {
      bool allowed = types_[pointer.element].kind == TypeKind::Atomic || constructible_(pointer.element);
      if (!in_workgroup || !allowed) reportOperand(0, kMemory, "workgroup_uniform_load reads a value or an atomic in workgroup memory");
    }
  }

  /// Devices want to know a broadcast's lane when they compile.
  void checkLane() {
    if (instruction_->op != Op::SubgroupBroadcast && instruction_->op != Op::QuadBroadcast) return;
    const Value& lane = module_[instruction_->operands[1]];
    const uint32_t lanes = instruction_->op == Op::QuadBroadcast ? 4 : 128;
    if (lane.kind != ValueKind::Constant || lane.bits >= lanes)
      reportOperand(1, "kernel.constant", fmt::format("the lane of {} is a constant below {}", opText(), lanes));
  }

  void checkConvert() {
    const Type& from = types_[operandType(0)];
    const Type& to = types_[instruction_->type];
    bool lanes = from.isScalarOrVector() && to.isScalarOrVector() && from.width() == to.width();
    bool matrices = from.kind == TypeKind::Matrix && to.kind == TypeKind::Matrix && from.columns == to.columns && from.rows == to.rows;
    if (!lanes && !matrices) report(kType, fmt::format("{} does not convert to {}", text(operandType(0)), text(instruction_->type)));
  }

  void checkBitcast() {
    const Type& from = types_[operandType(0)];
    const Type& to = types_[instruction_->type];
    bool numbers = (from.isFloat() || from.isInteger()) && (to.isFloat() || to.isInteger());
    if (!numbers || types_.sizeOf(operandType(0)) != types_.sizeOf(instruction_->type)) {
      report(kType, fmt::format("the bits of {} are not those of a {}", text(operandType(0)), text(instruction_->type)));
    }
  }

  void checkConstruct() {
    TypeId type = instruction_->type;
    const Type shape = types_[type];
    size_t given = instruction_->operands.size();
    if (shape.kind == TypeKind::Void || shape.kind == TypeKind::Scalar || !constructible_(type)) {
      report(kType, fmt::format("{} cannot be constructed", text(type)));
      return;
    }
    if (shape.kind == TypeKind::SubgroupMatrix) {
      const bool filled = given == 1 && shape.scalar != Scalar::BF16 && operandType(0) == types_.scalar(shape.scalar);
      if (!filled) report(kType, fmt::format("{} is filled with one {}, not ({})", text(type), toString(shape.scalar), operandsText()));
      return;
    }
    bool splat = shape.kind == TypeKind::Vector && given == 1;
    if (!splat && given != types_.elementCount(type)) {
      report(kType, fmt::format("{} has {} elements, not {}", text(type), types_.elementCount(type), given));
      return;
    }
    for (size_t i = 0; i < given; ++i) {
      TypeId wanted = types_.elementOf(type, static_cast<uint32_t>(i));
      if (operandType(i) != wanted)
        reportOperand(i, kType, fmt::format("the element is of type {}, not {}", text(wanted), text(operandType(i))));
    }
  }

  /// The array behind operand 0, of which `matrix` is a part. An element is a component, a vector of them, or u32s with
  /// their bits; two invocations cannot store the halves of one u32.
  void checkMatrixPlace(TypeId matrix, size_t stride, bool halves_too) {
    const Type shape = types_[matrix];
    const Type pointer = types_[operandType(0)];
    const Type array = pointer.kind == TypeKind::Pointer ? types_[pointer.element] : Type();
    const Type element = array.kind == TypeKind::Array ? types_[array.element] : Type();
    if (shape.kind != TypeKind::SubgroupMatrix) {
      report(kType, fmt::format("{} moves a subgroup matrix, not {}", opText(), text(matrix)));
    } else if (pointer.space != AddressSpace::Workgroup && pointer.space != AddressSpace::Storage) {
      reportOperand(0, kMemory, fmt::format("{} takes a pointer to an array in workgroup memory or storage", opText()));
    } else if (const bool packs = element.scalar == Scalar::U32 && (halves_too || byteSize(shape.scalar) == 4);
               !element.isScalarOrVector() || element.width() == 3 || (element.scalar != shape.scalar && !packs)) {
      reportOperand(0, kType, fmt::format("{} does not have the components of {}", text(operandType(0)), text(matrix)));
    } else if (shapeBeyond(shape, array, element)) {
      reportOperand(0, kType, fmt::format("{} is smaller than a row or column of {}", text(operandType(0)), text(matrix)));
    }
    for (const size_t number : {size_t{1}, stride}) {
      if (operandType(number) != types_.u32())
        reportOperand(number, kType, fmt::format("offset and stride are of type u32, not {}", text(operandType(number))));
    }
  }

  /// Whether not even one line of the matrix has a place in the array, so that no clamp could make an access valid; or a line is no whole
  /// number of elements.
  [[nodiscard]] bool shapeBeyond(const Type& matrix, const Type& array, const Type& element) const {
    const uint32_t line = instruction_->immediate != 0 ? matrix.rows : matrix.columns;
    const uint32_t held = componentsIn(element, matrix);
    return line % held != 0 || (array.count != 0 && line / held > array.count);
  }

  void checkMatrixLoad() {
    if (instruction_->operands.size() != 3) return report("kernel.structure", fmt::format("{} takes 3 operands", opText()));
    checkMatrixPlace(instruction_->type, 2, true);
    if (types_[operandType(0)].access == Access::Write) reportOperand(0, kMemory, "the memory is write-only");
  }

  void checkMatrixStore() {
    if (instruction_->operands.size() != 4) return report("kernel.structure", fmt::format("{} takes 4 operands", opText()));
    checkMatrixPlace(operandType(2), 3, false);
    if (types_[operandType(0)].access == Access::Read) reportOperand(0, kMemory, "the memory is read-only");
    if (instruction_->type != types_.voidType()) report(kType, fmt::format("{} has no result", opText()));
  }

  void checkMatrixConvert() {
    const Type& from = types_[operandType(0)];
    const Type& to = types_[instruction_->type];
    const bool sum = from.kind == TypeKind::SubgroupMatrix && from.use == MatrixUse::Result && from.scalar == Scalar::F32;
    const bool factor = to.kind == TypeKind::SubgroupMatrix && to.use == MatrixUse::Left && to.scalar != Scalar::F32;
    if (!sum) {
      reportOperand(0, kType, fmt::format("{} takes a subgroup_matrix_result of f32, not {}", opText(), text(operandType(0))));
    } else if (!factor) {
      report(kType, fmt::format("{} gives a subgroup_matrix_left of f16 or bf16, not {}", opText(), text(instruction_->type)));
    } else if (from.columns != to.columns || from.rows != to.rows) {
      report(kType, fmt::format("{} and {} do not have the same columns and rows", text(operandType(0)), text(instruction_->type)));
    }
  }

  void checkPrint() {
    if (!checkInferred()) return;
    if (instruction_->operands.empty() && instruction_->labels.empty()) report("kernel.structure", "print has neither a text nor a value");
    for (size_t i = 0; i < instruction_->operands.size(); ++i) {
      const TypeId type = operandType(i);
      if (!constructible_(type) || contains(types_, type, TypeKind::SubgroupMatrix)) {
        reportOperand(i, kType, fmt::format("{} cannot be printed", text(type)));
      } else if (scalarCount(types_, type, kMaxPrintedScalars + 1) > kMaxPrintedScalars) {
        reportOperand(i, kType, fmt::format("print shows at most {} numbers of a value, and {} has more", kMaxPrintedScalars, text(type)));
      }
    }
  }

  /// The part of `whole` that operand `at_operand` selects; invalid after a report.
  TypeId selectPart(TypeId whole, size_t at_operand) {
    const Value& index = module_[instruction_->operands[at_operand]];
    const Type& index_type = types_[index.type];
    const Type shape = types_[whole];
    bool constant = index.kind == ValueKind::Constant;
    bool composite = shape.kind == TypeKind::Vector || shape.kind == TypeKind::Matrix || shape.kind == TypeKind::Array ||
                     shape.kind == TypeKind::Struct || (shape.kind == TypeKind::SubgroupMatrix && shape.scalar != Scalar::BF16);
    if (!composite) {
      reportOperand(at_operand, kAccess, fmt::format("{} has no elements", text(whole)));
      return {};
    }
    if (index_type.kind != TypeKind::Scalar || !index_type.isInteger()) {
      reportOperand(at_operand, kAccess, fmt::format("an index is of type i32 or u32, not {}", text(index.type)));
      return {};
    }
    if (shape.kind == TypeKind::Struct && !constant) {
      reportOperand(at_operand, kAccess, "the index of a struct's member is a constant");
      return {};
    }
    // As unsigned numbers, negative ones are out of range too; the largest index of a runtime-sized array is not known here.
    bool negative = index_type.scalar == Scalar::I32 && index.bits > INT32_MAX;
    uint32_t count = types_.elementCount(whole);
    if (constant && (negative || (count != 0 && index.bits >= count))) {
      std::string number = negative ? std::to_string(static_cast<int32_t>(index.bits)) : std::to_string(index.bits);
      reportOperand(at_operand, kAccess, fmt::format("index {} is out of range for {}", number, text(whole)));
      return {};
    }
    return types_.elementOf(whole, constant ? index.bits : 0);
  }

  void checkExtract() {
    if (types_[operandType(0)].kind == TypeKind::Pointer) {
      reportOperand(0, kAccess, "extract takes a value, not a pointer");
      return;
    }
    TypeId part = selectPart(operandType(0), 1);
    if (part.valid() && part != instruction_->type) {
      report(kType, fmt::format("the element is of type {}, not {}", text(part), text(instruction_->type)));
    }
  }

  void checkSwizzle() {
    const Type& from = types_[operandType(0)];
    const Type& to = types_[instruction_->type];
    if (from.kind != TypeKind::Vector || to.kind != TypeKind::Vector || from.scalar != to.scalar) {
      report(kType, fmt::format("a swizzle does not make {} of {}", text(instruction_->type), text(operandType(0))));
      return;
    }
    for (uint32_t i = 0; i < to.rows; ++i) {
      uint32_t component = (instruction_->immediate >> (2 * i)) & 3;
      if (component >= from.rows)
        report(kAccess, fmt::format("component {} is out of range for {}", "xyzw"[component], text(operandType(0))));
    }
  }

  void checkVar() {
    const Type& pointer = types_[instruction_->type];
    bool fits = pointer.kind == TypeKind::Pointer && pointer.space == AddressSpace::Function && pointer.access == Access::ReadWrite;
    if (!fits) {
      report(kType, fmt::format("var makes a read_write pointer into function memory, not {}", text(instruction_->type)));
    } else if (!constructible_(pointer.element)) {
      report(kMemory, fmt::format("{} cannot be in function memory", text(pointer.element)));
    } else if (instruction_->operands.size() > 1) {
      report("kernel.structure", "var has at most one initial value");
    } else if (!instruction_->operands.empty() && operandType(0) != pointer.element) {
      reportOperand(0, kType, fmt::format("the initial value is of type {}, not {}", text(operandType(0)), text(pointer.element)));
    }
  }

  void checkAccess() {
    if (instruction_->operands.size() < 2 || types_[operandType(0)].kind != TypeKind::Pointer) {
      report(kAccess, "access takes a pointer and at least one index");
      return;
    }
    const Type pointer = types_[operandType(0)];
    TypeId part = pointer.element;
    for (size_t i = 1; i < instruction_->operands.size() && part.valid(); ++i) part = selectPart(part, i);
    if (!part.valid()) return;
    TypeId wanted = types_.pointer(pointer.space, part, pointer.access);
    if (wanted != instruction_->type)
      report(kType, fmt::format("the result of access is of type {}, not {}", text(wanted), text(instruction_->type)));
  }

  void checkCall() {
    const Function& callee = module_.functions[instruction_->immediate];
    if (instruction_->operands.size() != callee.parameters.size()) {
      report(kType,
             fmt::format("function {} takes {} arguments, not {}", callee.name, callee.parameters.size(), instruction_->operands.size()));
      return;
    }
    for (size_t i = 0; i < callee.parameters.size(); ++i) {
      TypeId wanted = module_[callee.parameters[i].value].type;
      if (operandType(i) != wanted)
        reportOperand(i, kType, fmt::format("the argument is of type {}, not {}", text(wanted), text(operandType(i))));
    }
    if (instruction_->type != callee.return_type) {
      report(kType, fmt::format("function {} returns {}, not {}", callee.name, text(callee.return_type), text(instruction_->type)));
    }
  }

  void checkReturn(TypeId return_type) {
    if (instruction_->operands.size() > 1) return;  // reported by checkInferred
    TypeId given = instruction_->operands.empty() ? types_.voidType() : operandType(0);
    if (given != return_type) report(kType, fmt::format("the function returns {}, not {}", text(return_type), text(given)));
  }

  const Module& module_;
  Problems& problems_;
  TypeTable types_;  // a copy, because inferring may add types; the module's ids stay as they are
  TypeFacts constructible_;
  std::vector<TypeId> operand_types_;
  InstructionId id_;
  const Instruction* instruction_ = nullptr;
};

}  // namespace

void checkInstructions(const Module& module, Problems& problems) { InstructionChecker(module, problems).run(); }

}  // namespace lockstep::kernel
