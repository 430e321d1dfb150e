# SPDX-License-Identifier: Apache-2.0
# cmake -DGIT=... -DSOURCE=... -DOUTPUT=... -P build_commit.cmake: writes a source file with the commit that is checked out.
execute_process(COMMAND ${GIT} -C ${SOURCE} rev-parse --short=12 HEAD OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
file(WRITE ${OUTPUT} "// Made by cmake/build_commit.cmake.
#include \"experiment/build_version.h\"

namespace lockstep::experiment {

const std::string_view kBuildCommit = \"${commit}\";

}  // namespace lockstep::experiment
")
