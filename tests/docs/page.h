// SPDX-License-Identifier: Apache-2.0
// Pages of docs/ as tests read them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "frontend/io/file.h"

namespace lockstep::testing {

inline std::string readPage(const std::string& name) { return *io::readTextFile(LOCKSTEP_SOURCE_DIR "/docs/" + name); }

/// The texts between fences; `language` is what stands behind the opening one.
inline std::vector<std::string> blocksOf(const std::string& page, const std::string& language) {
  std::vector<std::string> blocks;
  const std::string_view fence = "```";
  for (size_t open = page.find("\n```"); open != std::string::npos;) {
    const size_t word = open + 1 + fence.size(), begin = page.find('\n', word) + 1, end = page.find("\n```", begin - 1);
    if (end == std::string::npos) break;
    if (page.substr(word, begin - 1 - word) == language) blocks.push_back(page.substr(begin, end + 1 - begin));
    open = page.find("\n```", end + 1 + fence.size());
  }
  return blocks;
}

}  // namespace lockstep::testing
