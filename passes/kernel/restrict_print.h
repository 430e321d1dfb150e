// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

#include "ir/kernel/module.h"

namespace lockstep::passes {

/// Values of global_invocation_id, both ends among them.
struct InvocationRange {
  std::array<uint32_t, 3> first{0, 0, 0}, last{UINT32_MAX, UINT32_MAX, UINT32_MAX};
  friend bool operator==(const InvocationRange&, const InvocationRange&) = default;
};

/// Only invocations of the range print; everything else stays as it is. A private variable, which each entry point sets at its start, says
/// whether this one does:
///   print %x   =>   %1: bool = load @prints
///                   if %1 {
///                     print %x
///                   }
kernel::Module restrictPrint(kernel::Module module, const InvocationRange& range);

}  // namespace lockstep::passes
