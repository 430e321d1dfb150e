// SPDX-License-Identifier: Apache-2.0
#include "backends/vulkan/spirv.h"

#include <fmt/format.h>
#include <spirv-tools/libspirv.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <string_view>

#include "backends/vulkan/spirv_emitter.h"
#include "ir/kernel/guard_accesses.h"
#include "ir/kernel/inline_calls.h"
#include "ir/kernel/inlined_size.h"
#include "ir/kernel/spread_matrices.h"
#include "ir/support/narrate.h"

namespace lockstep::vulkan {

namespace {

struct ContextDeleter {
  void operator()(spv_context context) const { spvContextDestroy(context); }
};
using Context = std::unique_ptr<spv_context_t, ContextDeleter>;
struct DiagnosticDeleter {
  void operator()(spv_diagnostic diagnostic) const { spvDiagnosticDestroy(diagnostic); }
};
struct TextDeleter {
  void operator()(spv_text text) const { spvTextDestroy(text); }
};

constexpr unsigned kSpirvVersion = spv::Spv_1_3;

bool wantsValidation() {
#ifndef NDEBUG
  return true;
#else
  const char* wish = std::getenv("LOCKSTEP_SPIRV_VAL");
  return wish != nullptr && std::string_view(wish) == "1";
#endif
}

}  // namespace

Emitter::Emitter(const kernel::Module& module, const kernel::Function& entry, const SpirvOptions& options)
    : module_(module),
      entry_(entry),
      options_(options),
      types_(module.types),
      builder_(kSpirvVersion, 0, &logger_),
      ids_(module.values.size(), spv::NoResult),
      places_(module.values.size()) {}

std::vector<uint32_t> Emitter::run() {
  builder_.addCapability(spv::CapabilityShader);
  builder_.setMemoryModel(spv::AddressingModelLogical, spv::MemoryModelGLSL450);
  glsl_ = builder_.import("GLSL.std.450");
  has_matrices_ = kernel::hasSubgroupMatrices(module_);
  if (has_matrices_) enableMatrices();
  for (kernel::Capability capability : module_.capabilities) {
    if (capability == kernel::Capability::F16) builder_.addCapability(spv::CapabilityStorageBuffer16BitAccess);
  }
  std::string name = spirvEntryPoint(entry_);
  spv::Function* function = builder_.makeEntryPoint(name.c_str());
  entry_point_ = builder_.addEntryPoint(spv::ExecutionModelGLCompute, function, name.c_str());
  const bool subgroups = std::ranges::find(module_.capabilities, kernel::Capability::Subgroups) != module_.capabilities.end();
  std::array<uint32_t, 3> size = *entry_.workgroup_size;
  // A driver may make subgroups of each row of a workgroup, mostly empty ones, and some number them wrongly then.
  const uint32_t invocations = size[0] * size[1] * size[2];
  is_row_ = subgroups && invocations != size[0] && invocations <= options_.longest_row;
  if (is_row_) size = {invocations, 1, 1};
  builder_.addExecutionMode(function, spv::ExecutionModeLocalSize, static_cast<int>(size[0]), static_cast<int>(size[1]),
                            static_cast<int>(size[2]));
  const bool f16 = std::ranges::find(module_.capabilities, kernel::Capability::F16) != module_.capabilities.end();
  const auto control = [&](bool offered, spv::Capability capability, spv::ExecutionMode mode, int width) {
    if (!offered) return;
    builder_.addExtension("SPV_KHR_float_controls");
    builder_.addCapability(capability);
    builder_.addExecutionMode(function, mode, width);
  };
  control(options_.preserve_signed_zero_inf_nan, spv::CapabilitySignedZeroInfNanPreserve, spv::ExecutionModeSignedZeroInfNanPreserve, 32);
  control(options_.round_to_nearest_even, spv::CapabilityRoundingModeRTE, spv::ExecutionModeRoundingModeRTE, 32);
  control(f16 && options_.preserve_signed_zero_inf_nan_f16, spv::CapabilitySignedZeroInfNanPreserve,
          spv::ExecutionModeSignedZeroInfNanPreserve, 16);
  control(f16 && options_.round_to_nearest_even_f16, spv::CapabilityRoundingModeRTE, spv::ExecutionModeRoundingModeRTE, 16);
  if (subgroups && options_.subgroup_uniform_control_flow) {
    builder_.addExtension("SPV_KHR_subgroup_uniform_control_flow");
    builder_.addExecutionMode(function, spv::ExecutionModeSubgroupUniformControlFlowKHR);
  }
  declareGlobals();
  declareInputs();
  findSteps();
  zeroPrivateMemory();
  zeroWorkgroupMemory();
  emitBlock(entry_.body);
  builder_.leaveFunction();
  // Only the clean-up of unreachable blocks: the search for features follows instructions of removed blocks and crashes; capabilities are
  // added where a type or an instruction needs them.
  builder_.postProcessCFG();
  std::vector<uint32_t> words;
  builder_.dump(words);
  return source_files_.empty() ? words : withSources(words);
}

spv::Id Emitter::value(kernel::ValueId id) {
  if (module_[id].kind == kernel::ValueKind::Constant) return constant(id);
  spv::Id known = ids_[id.index()];
  if (known == spv::NoResult) internalError("a value is used before the SPIR-V emitter has met its definition");
  return known;
}

std::vector<spv::Id> Emitter::values(const std::vector<kernel::ValueId>& ids) {
  std::vector<spv::Id> made;
  for (kernel::ValueId id : ids) made.push_back(value(id));
  return made;
}

const Place& Emitter::place(kernel::ValueId id) {
  const std::optional<Place>& known = places_[id.index()];
  if (!known) internalError("a pointer is used before the SPIR-V emitter has met its definition");
  return *known;
}

void Emitter::define(const kernel::Instruction& instruction, spv::Id id) {
  if (!instruction.result.valid()) return;
  ids_[instruction.result.index()] = id;
  addName(id, plainName(module_[instruction.result].name));
}

void Emitter::addName(spv::Id id, const std::string& name) {
  constexpr uint32_t kMaxEqualNames = 100;
  if (!name.empty() && ++named_[name] <= kMaxEqualNames) builder_.addName(id, name.c_str());
}

// spv::Builder packs characters as signed ones, so a byte above 127 would spoil the word.
std::string plainName(const std::string& name) {
  std::string made = name;
  for (char& c : made) {
    if (c <= ' ' || c > '~') c = '_';
  }
  return made;
}

const MatrixLayout* findLayout(const SpirvOptions& options, const kernel::Type& type) {
  const auto found = std::ranges::find(options.matrix_layouts, type, &MatrixLayout::type);
  return found == options.matrix_layouts.end() ? nullptr : &*found;
}

std::string spirvEntryPoint(const kernel::Function& entry) { return entry.name.empty() ? "main" : plainName(entry.name); }

Result<std::vector<uint32_t>> emitSpirv(const kernel::ValidModule& module, const SpirvOptions& options) {
  const kernel::Function* entry = module->entryPoint();
  if (entry == nullptr) return fail("vulkan.entry_point", "the module \"" + module->name + "\" has no entry point");
  LS_CHECK(kernel::checkInlinedSize(*module, *entry, "vulkan.limit"));
  // A device cannot report an access out of bounds, and to leave one alone would be undefined.
  const kernel::Module guarded = kernel::guardAccesses(*module, kernel::OutOfBounds::Clamp);
  const kernel::Module inlined = kernel::inlineAllCalls(guarded).module;
  for (const kernel::Instruction& in : inlined.instructions) {
    if (!needsLayout(in.op)) continue;
    if (findLayout(options, inlined.typeOf(in.operands[0])) != nullptr) continue;
    return fail("vulkan.matrix_layout",
                fmt::format("{} of {} depends on how a device holds matrices, and no device was asked", kernel::info(in.op).text,
                            inlined.types.toString(inlined[in.operands[0]].type)),
                {}, "list or run the kernel on a device that has matrix units");
  }
  Emitter emitter(inlined, *inlined.entryPoint(), options);
  std::vector<uint32_t> words = emitter.run();
  if (emitter.leftOutPrint()) {
    narrate([&] { return "print does nothing in the SPIR-V of " + entry->name + ": VK_KHR_shader_non_semantic_info is not there"; });
  }
  // The validator that we build with does not know these instructions: tests/backends/vulkan/matrices_test.cpp checks what it would.
  if (wantsValidation() && !kernel::hasSubgroupMatrices(inlined)) {
    std::string messages = validateSpirv(words);
    if (!messages.empty()) {
      internalError("spirv-val rejects the SPIR-V of entry point " + entry->name + ":\n" + messages + disassemble(words));
    }
  }
  return words;
}

std::string validateSpirv(std::span<const uint32_t> words) {
  Context context(spvContextCreate(SPV_ENV_VULKAN_1_1));
  spv_diagnostic raw = nullptr;
  spv_result_t result = spvValidateBinary(context.get(), words.data(), words.size(), &raw);
  std::unique_ptr<spv_diagnostic_t, DiagnosticDeleter> diagnostic(raw);
  if (result == SPV_SUCCESS) return {};
  return diagnostic && diagnostic->error != nullptr ? std::string(diagnostic->error) + "\n" : "spirv-val failed without a message\n";
}

std::string disassemble(std::span<const uint32_t> words) {
  Context context(spvContextCreate(SPV_ENV_UNIVERSAL_1_3));
  spv_text raw = nullptr;
  spv_diagnostic raw_diagnostic = nullptr;
  uint32_t style = SPV_BINARY_TO_TEXT_OPTION_INDENT | SPV_BINARY_TO_TEXT_OPTION_FRIENDLY_NAMES | SPV_BINARY_TO_TEXT_OPTION_NO_HEADER;
  spvBinaryToText(context.get(), words.data(), words.size(), style, &raw, &raw_diagnostic);
  std::unique_ptr<spv_text_t, TextDeleter> text(raw);
  std::unique_ptr<spv_diagnostic_t, DiagnosticDeleter> diagnostic(raw_diagnostic);
  return text ? std::string(text->str, text->length) : "; not SPIR-V\n";
}

}  // namespace lockstep::vulkan
