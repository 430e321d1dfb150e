// SPDX-License-Identifier: Apache-2.0
// A backend that is wrong on purpose: one operation of its kernels is off by some units in the last place. With it one sees whether a
// comparison notices, and where.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "backends/backend.h"
#include "ir/kernel/module.h"
#include "ir/support/result.h"

namespace lockstep {

struct Fault {
  kernel::Op op = kernel::Op::Exp;
  int32_t ulp = 1;          ///< away from zero; negative: towards zero
  std::string kernel = {};  ///< a part of the names of the kernels that have it; empty: all of them
  friend bool operator==(const Fault&, const Fault&) = default;
};

/// "exp+4ulp", "add-1ulp" or "mul+9ulp@contract": an operation of the tables Arithmetic and Math that gives floats, by its name in kernel
/// IR, and a part of the names of kernels. code device.fault
Result<Fault> parseFault(std::string_view text);

/// Whether the operation can have a fault.
bool canHaveFault(kernel::Op op);

/// The module with `fault.ulp` added to each f32 result of the operation that is finite; scalars and vectors.
kernel::Module plantFault(const kernel::Module& module, const Fault& fault);

/// Runs programs on `backend` with the fault in the kernels that it names. Memory and the profile are those of `backend`.
std::unique_ptr<Backend> withFault(std::unique_ptr<Backend> backend, const Fault& fault);

}  // namespace lockstep
