// SPDX-License-Identifier: Apache-2.0
#include "ir/kernel/module.h"

namespace lockstep::kernel {
Result<Module> parse(std::string_view, const std::string& file_name) {
  return fail("kernel.syntax", "the parser is not built yet", {.file = file_name});
}
}  // namespace lockstep::kernel
