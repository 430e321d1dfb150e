// SPDX-License-Identifier: Apache-2.0
// Which optional pass, and which kernel of it, made a result wrong: the program is built with passes left out, half by half.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tools/verify/command_origins.h"
#include "tools/verify/stage_build.h"

namespace lockstep::tools {

struct BisectRequest {
  std::vector<std::string> passes;  ///< optional ones, in the order of the pipeline
  std::function<Result<BuiltProgram>(const PassChoice&)> build;
  /// How far the results of a program are from the right ones, in units of what is allowed; more than 1 is wrong.
  std::function<Result<double>(const program::Program&)> measure;
  /// The first command whose kernel is beyond its bound when it runs alone; nothing if none is. May be empty.
  std::function<Result<std::optional<size_t>>(const program::Program&)> first_wrong_command = {};
};

/// One build that was measured.
struct Trial {
  std::string what;  ///< "passes up to fuse"
  double distance = 0;
  std::string refused = {};  ///< the code of the failure of a build that cannot run; not empty: it was not measured
  [[nodiscard]] bool wrong() const { return !(distance <= 1); }
};

/// A kernel that the pass made wrong.
struct Culprit {
  std::string kernel, label;
  CommandOrigin origin;
};

struct Bisection {
  enum class Outcome : uint8_t {
    NoDifference,  ///< with all passes the results are right
    EveryBuild,    ///< they are wrong without any optional pass as well
    Found
  };
  Outcome outcome = Outcome::NoDifference;
  std::string pass;                  ///< Found: with all passes before it the results are right, with it, too, they are not
  bool keeps_kernel_passes = false;  ///< the device cannot run the program without any, so they were left alone
  bool alone = false;                ///< leaving out only this one makes them right
  std::vector<Culprit> culprits;     ///< of the pass, mostly one; may be empty
  std::vector<Trial> trials;         ///< in their order
};
std::string_view toString(Bisection::Outcome outcome);  ///< "no difference", "every build", "found"

/// A build without any optional pass may be one that the device refuses (loops that nobody unrolled); then kernel passes stay on. Codes of
/// `build` and `measure` otherwise.
Result<Bisection> bisectPasses(const BisectRequest& request);

}  // namespace lockstep::tools
