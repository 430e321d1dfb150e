// SPDX-License-Identifier: Apache-2.0
// `lockstep run` with something to compare: arrays that a kernel should give, or its runs on several devices.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "frontend/io/jsonl.h"
#include "ir/support/finding.h"
#include "tools/kernel/kernel_run.h"
#include "tools/verify/array_compare.h"

namespace lockstep::tools {

/// What each float may be off by: atol + rtol * |expected|. See FloatTolerance for f16.
struct Tolerance {
  double rtol = 1e-5, atol = 0;
};

/// What a binding should hold after the run.
struct Expectation {
  Slot slot;
  std::string file;    ///< .npy
  std::string within;  ///< .npy of one number for each element: what it may be off by; empty: the tolerance
};

/// One for each text "G.B=FILE.npy" of `expects`; those of `withins` belong to the binding that they name. Code usage.expect.
Result<std::vector<Expectation>> parseExpectations(const std::vector<std::string>& expects, const std::vector<std::string>& withins);

struct ExpectationResult {
  Slot slot;
  std::string variable, file;
  ArrayDifference numbers = {};
  std::string element = {};  ///< the worst one: "[3].mass"
};
/// Compares what a run of `module` left in `bytes`. Codes run.expect for a file of another type or size, and those of npy.
Result<std::vector<ExpectationResult>> compareExpected(const std::vector<Expectation>& expectations, const Tolerance& tolerance,
                                                       const kernel::Module& module, const std::map<Slot, Bytes>& bytes);
/// "0.1 y agrees with y.npy: ..." or "0.1 y differs from y.npy: y[3] is ...".
std::string toText(const ExpectationResult& result);
io::Json toJson(const ExpectationResult& result);

/// What runs of one kernel on several devices say of it.
enum class Verdict : uint8_t {
  Equal,        ///< all bits of all runs are, but for padding
  Rounding,     ///< differences that rounding explains, the same in each run
  Race,         ///< runs on one device differ, or the sanitizer found a race
  Wrong,        ///< a difference beyond rounding, the same in each run
  DriverLimit,  ///< a device failed where another one ran
};
std::string_view toString(Verdict verdict);  ///< "equal", "rounding", "race", "wrong", "driver limit"

struct DeviceRuns {
  std::string device;
  size_t runs = 0;    ///< that ended well
  std::string error;  ///< of the first that did not; empty
};
struct DeviceComparison {
  Verdict verdict = Verdict::Equal;
  std::string why;  ///< one sentence
  std::vector<DeviceRuns> devices;
  std::vector<Finding> findings;  ///< races that the sanitizer found
};

/// Runs the kernel `runs` times on each device and once under the sanitizer, looking for races. The first device is the one that others
/// are compared with. A kernel that fails on every device is a Failure, that of the first.
Result<DeviceComparison> compareDevices(const KernelRun& run, const std::vector<std::string>& devices, size_t runs,
                                        const Tolerance& tolerance);
std::string toText(const DeviceComparison& comparison);
io::Json toJson(const DeviceComparison& comparison);

}  // namespace lockstep::tools
