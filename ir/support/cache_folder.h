// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace lockstep {

/// Where what was measured or compiled is kept: LOCKSTEP_CACHE_DIR, else lockstep/ of XDG_CACHE_HOME or of ~/.cache. Empty where nothing
/// is kept: LOCKSTEP_CACHE_DIR is set and empty, or there is no home.
std::filesystem::path cacheFolder();

/// A name for a file: letters, digits, points and single dashes in place of all else.
std::string plainFileName(std::string_view text);

}  // namespace lockstep
