// SPDX-License-Identifier: Apache-2.0
// `print` as NonSemantic.DebugPrintf, which a driver may ignore and the validation layer shows.
#include <fmt/format.h>

#include <glslang/SPIRV/NonSemanticDebugPrintf.h>

#include "backends/vulkan/spirv_emitter.h"

namespace lockstep::vulkan {

using kernel::Scalar;
using kernel::Type;

namespace {

/// The conversion of a scalar or vector: "%f", "%v3u".
std::string conversion(const Type& type) {
  const bool is_float = type.scalar == Scalar::F32 || type.scalar == Scalar::F16;
  const char letter = is_float ? 'f' : type.scalar == Scalar::I32 ? 'd' : 'u';
  return type.width() == 1 ? fmt::format("%{}", letter) : fmt::format("%v{}{}", type.width(), letter);
}

std::string escaped(const std::string& text) {
  std::string made;
  for (const char c : text) made += c == '%' ? "%%" : std::string(1, c >= ' ' && c <= '~' ? c : '_');
  return made;
}

}  // namespace

/// A value as the layer can show it: bool as 0 or 1, f16 as f32.
spv::Id Emitter::printable(kernel::ValueId id) {
  const Type type = typeOf(id);
  if (type.scalar == Scalar::Bool) {
    const spv::Id zero = lanesConstant(Scalar::U32, 0, type.width()), one = lanesConstant(Scalar::U32, 1, type.width());
    return builder_.createTriOp(spv::OpSelect, lanesType(Scalar::U32, type.width()), value(id), one, zero);
  }
  if (type.scalar == Scalar::F16) return builder_.createUnaryOp(spv::OpFConvert, lanesType(Scalar::F32, type.width()), value(id));
  return value(id);
}

void Emitter::emitPrint(const kernel::Instruction& in) {
  left_out_print_ = left_out_print_ || !options_.debug_printf;
  if (left_out_print_) return;
  builder_.addExtension("SPV_KHR_non_semantic_info");
  if (debug_printf_ == spv::NoResult) debug_printf_ = builder_.import("NonSemantic.DebugPrintf");
  const std::string where = in.location == 0 ? entry_.name : toString(module_.locations[in.location - 1]);
  std::string format = escaped(where) + ": workgroup (%v3u), local (%v3u):";
  std::vector<spv::Id> operands{input(kernel::Builtin::WorkgroupId), input(kernel::Builtin::LocalInvocationId)};
  for (const kernel::ValueId id : in.operands) {
    format += " " + conversion(typeOf(id));
    operands.push_back(printable(id));
  }
  operands.insert(operands.begin(), builder_.getStringId(format + "\n"));
  builder_.createBuiltinCall(builder_.makeVoidType(), debug_printf_, NonSemanticDebugPrintfDebugPrintf, operands);
}

}  // namespace lockstep::vulkan
