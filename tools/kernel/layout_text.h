// SPDX-License-Identifier: Apache-2.0
// The layouts of a kernel's buffers as source text for its host.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ir/kernel/module.h"

namespace lockstep::tools {

/// A struct that a buffer or the immediate memory holds, with names that a host may use. A member that is a runtime-sized array has one
/// too.
struct HostStruct {
  kernel::TypeId type;
  std::string name;
  std::vector<std::string> members;
};

/// Those of all variables in uniform, storage and immediate memory; each after those that it is made of. Names are plain and unique, and
/// none of `reserved`.
std::vector<HostStruct> hostStructs(const kernel::Module& module, const std::vector<std::string_view>& reserved);

/// Names that are letters, digits and '_', that differ from each other and are none of `reserved`.
class HostNames {
 public:
  explicit HostNames(const std::vector<std::string_view>& reserved) : taken_(reserved.begin(), reserved.end()) {}
  std::string take(std::string_view wanted);

 private:
  std::vector<std::string> taken_;
};

/// "storage, read_write", "uniform"
std::string memoryText(const kernel::GlobalVariable& variable);
/// The variables that hosts have to do with.
std::vector<const kernel::GlobalVariable*> hostVariables(const kernel::Module& module);
/// The runtime-sized array of a variable and its offset: the variable itself or its last member. An invalid type: there is none.
struct RuntimeArray {
  kernel::TypeId type;
  uint32_t offset = 0;
};
RuntimeArray runtimeArrayOf(const kernel::TypeTable& types, kernel::TypeId type);

/// A header for C11 and C++: structs with explicit padding, and assertions of every size and offset. `file` is the kernel's.
std::string layoutAsC(const kernel::Module& module, const std::string& file);
/// A module of JavaScript: a class for each struct, which reads and writes an ArrayBuffer.
std::string layoutAsJs(const kernel::Module& module, const std::string& file);

}  // namespace lockstep::tools
