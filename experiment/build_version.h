// SPDX-License-Identifier: Apache-2.0
// Which Lockstep this is.
#pragma once

#include <string_view>

namespace lockstep::experiment {

extern const std::string_view kBuildVersion;  ///< "0.1.0"
/// Of the repository when the library was built; empty where that was no checkout of git. Changes that were not committed do not show.
extern const std::string_view kBuildCommit;

}  // namespace lockstep::experiment
