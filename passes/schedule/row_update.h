// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

#include "ir/graph/type.h"
#include "ir/kernel/module.h"
#include "ir/program/profile.h"

namespace lockstep::passes {

struct RowUpdate {
  kernel::Module module;  ///< binding 0 is the state, 1 the rows, 2 their place along the axis
  std::array<uint32_t, 3> groups{1, 1, 1};
};

/// The kernel of update_rows: an invocation per element of the rows. What lies outside of the state is left out.
RowUpdate updateRows(const graph::TensorType& state, const graph::TensorType& rows, int64_t axis, const program::DeviceProfile& profile);

}  // namespace lockstep::passes
