// SPDX-License-Identifier: Apache-2.0
// Profiles for people: at most 100 columns.
#pragma once

#include <string>

#include "tools/profile/profile_data.h"

namespace lockstep::tools {

struct ProfileTextOptions {
  bool all = false;     ///< one line for each command, and all of them; otherwise one for each kernel, the small ones as "other (N)"
  bool colour = false;  ///< escape sequences of a terminal
};
std::string profileText(const Profile& profile, const ProfileTextOptions& options);

/// For each label the seconds before and after, the largest change first, then the totals.
std::string diffText(const ProfileSummary& before, const ProfileSummary& after);

/// Chrome's trace events as JSON: the host on one track, the device's levels on one, and one for each command that a level has at most.
/// Times of the device begin where the host began to wait.
std::string traceJson(const Profile& profile);

}  // namespace lockstep::tools
