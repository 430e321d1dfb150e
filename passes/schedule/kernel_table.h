// SPDX-License-Identifier: Apache-2.0
// The symbolic kernels of a program while a pass makes them: equal ones are one.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "ir/program/program.h"

namespace lockstep::passes {

class KernelTable {
 public:
  program::KernelId add(program::SymbolicKernel kernel);
  program::KernelId add(const std::string& label, kernel::Module module);
  std::vector<program::Kernel> take() { return std::move(kernels_); }

 private:
  std::vector<program::Kernel> kernels_;
  std::map<std::string, program::KernelId> by_text_;
};

}  // namespace lockstep::passes
