// SPDX-License-Identifier: Apache-2.0
// The parts of merged dispatches: what is asked of their kernels, and which variables they share.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "ir/kernel/module.h"
#include "ir/program/program.h"

namespace lockstep::passes {

/// What merging asks of a kernel, found once for all dispatches of it.
struct KernelFacts {
  struct Variable {
    kernel::AddressSpace space = kernel::AddressSpace::Storage;
    uint32_t binding = 0;
    std::string type, element;  ///< of an array; else empty
    uint64_t count = 0, bytes = 0;
    bool zero_initialized = false;
  };
  const kernel::Module* module = nullptr;
  bool is_callable = false;
  std::array<uint32_t, 3> workgroup_size{1, 1, 1};
  uint64_t workgroup_bytes = 0;
  std::vector<Variable> variables;  ///< as module->globals
  uint64_t rounds = 0;              ///< of its loops; what a workgroup does not run counts too, as drivers run both arms of an `if`
};

/// A dispatch with its kernel.
struct Part {
  const KernelFacts* kernel = nullptr;
  program::Dispatch dispatch;
  std::string label;
};

KernelFacts factsOf(const kernel::Module& module);

/// Whether workgroups of one, of which a unit could have many, would have to take as much of it as those of the other.
bool isHeldUp(const Part& one, const Part& other, const program::DeviceProfile& profile);

/// Which variables several parts share: bindings of one range and type, and arrays of the workgroup memory that can grow. It decides for
/// the kernel that is built, too, and takes much less time than to build it.
class SharedVariables {
 public:
  static constexpr size_t kNone = SIZE_MAX;

  /// For each variable of the part the shared one that it becomes, by its index among the bindings or the arrays; kNone for other spaces.
  std::vector<size_t> add(const Part& part);
  [[nodiscard]] size_t bindings() const { return bindings_.size(); }
  [[nodiscard]] std::vector<program::Range> ranges() const;
  /// As kernel::workgroupBytes() of the merged kernel.
  [[nodiscard]] uint64_t workgroupBytes() const;

 private:
  struct Binding {
    kernel::AddressSpace space;
    std::string type;
    program::Range range;
  };
  static bool isSame(const Binding& binding, const KernelFacts::Variable& variable, const program::Range& range) {
    return binding.space == variable.space && binding.range == range && binding.type == variable.type;
  }
  /// Not memory that starts as zero: its size is what a kernel of a user may rely on.
  static bool canGrow(const KernelFacts::Variable& array, const KernelFacts::Variable& wanted) {
    return !array.zero_initialized && !wanted.zero_initialized && !array.element.empty() && array.element == wanted.element;
  }

  std::vector<Binding> bindings_;
  std::vector<KernelFacts::Variable> memory_;
};

}  // namespace lockstep::passes
