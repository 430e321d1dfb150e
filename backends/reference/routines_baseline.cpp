// SPDX-License-Identifier: Apache-2.0
// The vector routines for any machine, and the choice between the variants.
#define LS_ROUTINES kBaselineRoutines
#include "backends/reference/vector_routines.inc"

namespace lockstep::reference {

const VectorRoutines& vectorRoutines() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return kAvx2Routines;
#endif
  return kBaselineRoutines;
}

}  // namespace lockstep::reference
