// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

#include "ir/graph/type.h"
#include "ir/kernel/module.h"
#include "ir/program/profile.h"

namespace lockstep::passes {

struct RowUpdate {
  kernel::Module module;  ///< binding 0 is the state, 1 the rows, 2 their place along the axis, or one per entry of the first axis
  std::array<uint32_t, 3> groups{1, 1, 1};
};

/// The kernel of update_rows for `places` places: an invocation per word of the rows. What lies outside of the state is left out.
RowUpdate updateRows(const graph::TensorType& state, const graph::TensorType& rows, int64_t places, int64_t axis,
                     const program::DeviceProfile& profile);

}  // namespace lockstep::passes
