// SPDX-License-Identifier: Apache-2.0
// The conformance suite of backends: kernels with known results, written once and run on every backend. A test program links the library
// lockstep_conformance and instantiates the suite with its backends:
//   INSTANTIATE_TEST_SUITE_P(reference, Conformance, testing::Values(BackendCase{...}), conformance::caseName);
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cstdint>
#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "backends/backend.h"
#include "ir/kernel/builder.h"
#include "ir/kernel/module.h"

namespace lockstep::conformance {

using Words = std::vector<uint32_t>;

struct BackendCase {
  std::string name;  ///< letters, digits and _
  /// Called once; the tests are skipped when it returns null.
  std::function<std::unique_ptr<Backend>()> make;
  /// Bit-exact IEEE arithmetic with subnormals, NaN and infinities, transcendental functions within 0.75 ULP. Others are held to WGSL's
  /// accuracy table, and inputs or results that WGSL leaves open are not compared.
  bool exact = false;
};

inline void PrintTo(const BackendCase& value, std::ostream* out) { *out << value.name; }
std::string caseName(const testing::TestParamInfo<BackendCase>& info);

/// Runs one dispatch, as if it was made for this profile: buffer k is bound read_write (or read, as the kernel's variable says) as binding
/// k. Returns all buffers afterwards.
Result<std::vector<Words>> runKernel(Backend& backend, const kernel::Module& module, const std::vector<Words>& buffers,
                                     std::array<uint32_t, 3> groups, const Words& immediates = {},
                                     const program::DeviceProfile& profile = {});
/// The same for a kernel in the text form, without the version line.
Result<std::vector<Words>> runText(Backend& backend, std::string_view body, const std::vector<Words>& buffers,
                                   std::array<uint32_t, 3> groups);

inline uint32_t bitsOf(float x) { return std::bit_cast<uint32_t>(x); }
inline float floatOf(uint32_t x) { return std::bit_cast<float>(x); }
Words wordsOf(const std::vector<float>& values);

/// Base of the suite. The backend is made once for each name and kept.
class Conformance : public testing::TestWithParam<BackendCase> {
 protected:
  void SetUp() override;
  /// runText, with failures reported to the test (the result is then empty).
  std::vector<Words> run(std::string_view body, const std::vector<Words>& buffers, std::array<uint32_t, 3> groups = {1, 1, 1});
  std::vector<Words> run(const kernel::Module& module, const std::vector<Words>& buffers, std::array<uint32_t, 3> groups = {1, 1, 1},
                         const Words& immediates = {});
  Backend* backend_ = nullptr;
};

}  // namespace lockstep::conformance
