// SPDX-License-Identifier: Apache-2.0
// Subgroup matrices for devices without units for them, and for the reference: an array in each invocation that holds its share, and
// shuffles where a product needs what others hold.
#pragma once

#include <cstdint>

#include "ir/kernel/inline_calls.h"
#include "ir/support/result.h"

namespace lockstep::kernel {

/// Whether the module has subgroup matrices.
bool hasSubgroupMatrices(const Module& module);

/// The module with other components in its subgroup matrices of `from`. Memory that holds them as bits is not touched.
Module withComponents(Module module, Scalar from, Scalar to);

/// The module without subgroup matrices, for subgroups of this size (a power of two), all of them full. Products of elements are added to
/// the result in the order of k, each time rounded to f32; a result of f16 is rounded once per product. Fails with
/// "kernel.subgroup_matrix" where a matrix cannot be dealt out evenly. The module must have no calls.
Result<InlinedModule> spreadMatrices(InlinedModule inlined, uint32_t subgroup_size);

}  // namespace lockstep::kernel
