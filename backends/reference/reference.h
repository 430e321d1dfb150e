// SPDX-License-Identifier: Apache-2.0
// The reference backend: runs kernels on the CPU with WGSL's exact arithmetic, the same bits for any number of threads, and reports what a
// device would let pass. It is the oracle that other backends are compared with.
//
// Failures at run time (from submit() and time()): reference.out_of_bounds, reference.uninitialised, reference.divergent_barrier,
// reference.endless_loop; each names the kernel, the variable, the invocation and the instruction. When compiling:
// reference.subgroups, reference.limit, backend.out_of_memory. Floats: round to nearest even, subnormals kept, no contraction.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "backends/backend.h"
#include "backends/perturb.h"
#include "backends/sanitize.h"

namespace lockstep {

struct ReferenceOptions {
  /// Reports accesses out of bounds and barriers that only some invocations of a workgroup reach. When off, loads out of bounds give zero
  /// and stores are dropped.
  bool checks = true;
  /// Reports reads of Workspace bytes that were not written before in the same step.
  bool track_uninitialised = false;
  /// 0 runs workgroups, and the atomics of their invocations, in the order of their indices, and the invocations of a workgroup together;
  /// another number in an order of its own, some invocations ahead of others from barrier to barrier. WGSL promises nothing, so results
  /// that depend on it are no results. One thread is used then.
  uint64_t order_seed = 0;
  /// Threads that run workgroups; 0 = one for each core.
  uint32_t max_threads = 0;
  /// Lanes of a subgroup: a power of two from 4 to 128 (reference.subgroups). 4 is the smallest that WGSL knows.
  uint32_t subgroup_size = 4;
  /// Which invocations make a subgroup: 0 takes them by local_invocation_index, another number in an order of its own. WGSL promises
  /// nothing, so a kernel must give the same for every seed.
  uint64_t subgroup_seed = 0;
  /// Loop iterations times invocations (at least 64) after which a batch of workgroups (up to 256 invocations) counts as endless.
  uint64_t loop_budget = uint64_t(1) << 34;
  /// Runs every kernel under the sanitizer, on one thread and in order: what these checks find comes from Executable::takeFindings(), and
  /// the run continues. An index out of bounds becomes the last one then, an endless loop ends its dispatch.
  std::optional<SanitizeChecks> sanitize = std::nullopt;
  /// Bytes that a program may take under SanitizeChecks::errors (backend.out_of_memory); 0: as many as are available when it is compiled.
  uint64_t error_memory = 0;
  /// Changes the results of float operations within what WGSL allows.
  std::optional<Perturbation> perturbation = std::nullopt;
};

std::unique_ptr<Backend> makeReference(const ReferenceOptions& options = {});

/// The line of `lockstep devices`.
DeviceInfo referenceDevice();

}  // namespace lockstep
