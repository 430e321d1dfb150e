// SPDX-License-Identifier: Apache-2.0
// What `lockstep explore` shows, gathered from a folder that --dump-ir wrote, and the page that shows it.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "ir/support/result.h"
#include "tools/explore/sample_sources.h"

namespace lockstep::tools {

/// What the folder does not tell.
struct ExploreFacts {
  std::string name;                                 ///< of the model, for the title
  std::string device = {};                          ///< "vulkan:0 (llvmpipe)"; empty: unknown
  std::vector<double> seconds = {};                 ///< of each command of the last program; empty: not measured
  std::vector<std::filesystem::path> sources = {};  ///< folders below which the user's source files are looked for
  std::span<const SourceText> known = {};           ///< those that are there without files
};

/// One JSON object, described in docs/explore.md. Error "explore.dump" when the folder has no stages, no program, or kernels without their
/// texts; those of files and of the texts' readers.
Result<std::string> exploreData(const std::filesystem::path& dump, const ExploreFacts& facts);

/// One HTML page with the viewer and the data in it; it needs nothing else.
std::string explorePage(const std::string& title, std::string data);

}  // namespace lockstep::tools
