// SPDX-License-Identifier: Apache-2.0
#include "backends/kernel_spirv.h"

#ifdef LOCKSTEP_VULKAN
#include "backends/vulkan/spirv.h"
#endif

namespace lockstep {

Result<KernelSpirv> kernelSpirv([[maybe_unused]] const kernel::ValidModule& module, [[maybe_unused]] bool source_lines) {
#ifdef LOCKSTEP_VULKAN
  LS_TRY(std::vector<uint32_t> words, vulkan::emitSpirv(module, {.source_lines = source_lines}));
  std::string text = vulkan::disassemble(words);
  return KernelSpirv{.words = std::move(words), .text = std::move(text)};
#else
  return fail("vulkan.build", "this build has no Vulkan backend, which makes SPIR-V", {}, "build with LOCKSTEP_VULKAN=ON");
#endif
}

}  // namespace lockstep
