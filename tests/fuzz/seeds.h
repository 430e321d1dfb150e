// SPDX-License-Identifier: Apache-2.0
// Seeds that are made, not kept: files of forms that change with Lockstep.
#pragma once

#include <filesystem>

namespace lockstep::fuzz {

/// Writes <folder>/<entry>/<name>.<entry> for entries that read what Lockstep writes.
void writeSeeds(const std::filesystem::path& folder);

}  // namespace lockstep::fuzz
