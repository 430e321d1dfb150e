// SPDX-License-Identifier: Apache-2.0
// `print` as NonSemantic.DebugPrintf, which a driver may ignore and the validation layer shows.
#include <fmt/format.h>

#include <glslang/SPIRV/NonSemanticDebugPrintf.h>

#include "backends/vulkan/spirv_emitter.h"

namespace lockstep::vulkan {

using kernel::Scalar;
using kernel::Type;

namespace {

/// The conversion of a scalar or vector: "%f", "(%v3u)".
std::string conversion(const Type& type) {
  const bool is_float = type.scalar == Scalar::F32 || type.scalar == Scalar::F16;
  const char letter = is_float ? 'f' : type.scalar == Scalar::I32 ? 'd' : 'u';
  return type.width() == 1 ? fmt::format("%{}", letter) : fmt::format("(%v{}{})", type.width(), letter);
}

std::string escaped(const std::string& text) {
  std::string made;
  for (const char c : text) made += c == '%' ? "%%" : std::string(1, c >= ' ' && c <= '~' ? c : '_');
  return made;
}

}  // namespace

/// A scalar or vector as the layer can show it: bool as 0 or 1, f16 as f32.
spv::Id Emitter::printable(spv::Id made, const Type& type) {
  if (type.scalar == Scalar::Bool) {
    const spv::Id zero = lanesConstant(Scalar::U32, 0, type.width()), one = lanesConstant(Scalar::U32, 1, type.width());
    return builder_.createTriOp(spv::OpSelect, lanesType(Scalar::U32, type.width()), made, one, zero);
  }
  if (type.scalar == Scalar::F16) return builder_.createUnaryOp(spv::OpFConvert, lanesType(Scalar::F32, type.width()), made);
  return made;
}

/// Its form, as of the reference; what it shows is added to the operands.
std::string Emitter::printedForm(spv::Id made, kernel::TypeId id, std::vector<spv::Id>& operands) {
  const Type type = types_[id];
  if (type.isScalarOrVector()) {
    operands.push_back(printable(made, type));
    return conversion(type);
  }
  std::string form;
  const bool is_struct = type.kind == kernel::TypeKind::Struct;
  for (uint32_t k = 0; k < types_.elementCount(id); ++k) {
    const kernel::TypeId part = types_.elementOf(id, k);
    if (k > 0) form += ", ";
    if (is_struct) form += escaped(type.members[k].name) + ": ";
    form += printedForm(builder_.createCompositeExtract(made, valueType(part), k), part, operands);
  }
  return is_struct ? "{" + form + "}" : "[" + form + "]";
}

void Emitter::emitPrint(const kernel::Instruction& in) {
  left_out_print_ = left_out_print_ || !options_.debug_printf;
  if (left_out_print_) return;
  builder_.addExtension("SPV_KHR_non_semantic_info");
  if (debug_printf_ == spv::NoResult) debug_printf_ = builder_.import("NonSemantic.DebugPrintf");
  const std::string where = in.location == 0 ? entry_.name : toString(module_.locations[in.location - 1]);
  std::string format = escaped(where) + ": workgroup (%v3u), local (%v3u):";
  std::vector<spv::Id> operands{input(kernel::Builtin::WorkgroupId), input(kernel::Builtin::LocalInvocationId)};
  if (!in.labels.empty() && !in.labels[0].empty()) format += " " + escaped(in.labels[0]);
  for (size_t k = 0; k < in.operands.size(); ++k) {
    const std::string name = in.labels.empty() ? "" : escaped(in.labels[k + 1]);
    format += (k == 0 ? " " : ", ") + (name.empty() ? "" : name + " = ");
    format += printedForm(value(in.operands[k]), module_[in.operands[k]].type, operands);
  }
  operands.insert(operands.begin(), builder_.getStringId(format + "\n"));
  builder_.createBuiltinCall(builder_.makeVoidType(), debug_printf_, NonSemanticDebugPrintfDebugPrintf, operands);
}

}  // namespace lockstep::vulkan
