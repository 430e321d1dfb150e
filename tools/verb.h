// SPDX-License-Identifier: Apache-2.0
// The verbs of the command: one file each, one row each in the table of main.cpp.
#pragma once

#include <span>
#include <string>

#include "console/options.h"
#include "ir/support/result.h"

namespace lockstep::tools {

using console::Options;
using console::usage;

/// The arguments after the verb.
using Arguments = std::span<const std::string>;

/// Does the work and prints its result on stdout. A Failure or a thrown Error is printed by main on stderr.
using VerbFunction = Result<ExitCode> (*)(Arguments arguments);

struct Verb {
  std::string_view name;
  std::string_view summary;
  VerbFunction function;
};

/// What was typed for the command itself: "lockstep", "build/dev/tools/lockstep".
const std::string& startedAs();

/// Every verb, in the order of the help text.
std::span<const Verb> verbs();

Result<ExitCode> trainVerb(Arguments arguments);
Result<ExitCode> devicesVerb(Arguments arguments);
Result<ExitCode> doctorVerb(Arguments arguments);
Result<ExitCode> probeDriverVerb(Arguments arguments);
Result<ExitCode> explainVerb(Arguments arguments);
Result<ExitCode> exploreVerb(Arguments arguments);
Result<ExitCode> optVerb(Arguments arguments);
Result<ExitCode> profileVerb(Arguments arguments);
Result<ExitCode> tuneVerb(Arguments arguments);
Result<ExitCode> checkVerb(Arguments arguments);
Result<ExitCode> reflectVerb(Arguments arguments);
Result<ExitCode> compileVerb(Arguments arguments);
Result<ExitCode> runVerb(Arguments arguments);
Result<ExitCode> verifyVerb(Arguments arguments);
Result<ExitCode> bisectVerb(Arguments arguments);
Result<ExitCode> generateVerb(Arguments arguments);
Result<ExitCode> chatVerb(Arguments arguments);
Result<ExitCode> evalVerb(Arguments arguments);
Result<ExitCode> quantizeVerb(Arguments arguments);
Result<ExitCode> newVerb(Arguments arguments);
Result<ExitCode> manualVerb(Arguments arguments);
Result<ExitCode> fmtVerb(Arguments arguments);
Result<ExitCode> conformanceVerb(Arguments arguments);
Result<ExitCode> completionsVerb(Arguments arguments);

}  // namespace lockstep::tools
