// SPDX-License-Identifier: Apache-2.0
// The vector routines for machines with AVX2 and FMA (this file alone is compiled with these flags; see CMakeLists.txt).
#define LS_ROUTINES kAvx2Routines
#define LS_HARDWARE_FMA
#include "backends/reference/vector_routines.inc"
