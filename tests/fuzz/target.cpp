// SPDX-License-Identifier: Apache-2.0
// One libFuzzer program: LOCKSTEP_FUZZ_ENTRY names the function of entries.h.
#include <cstdint>

#include "tests/fuzz/entries.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  lockstep::fuzz::LOCKSTEP_FUZZ_ENTRY(std::as_bytes(std::span(data, size)));
  return 0;
}
