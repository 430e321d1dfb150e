// SPDX-License-Identifier: Apache-2.0
#include "ir/support/cache_folder.h"

#include <cstdlib>

namespace lockstep {

std::filesystem::path cacheFolder() {
  if (const char* chosen = std::getenv("LOCKSTEP_CACHE_DIR")) return chosen;
  if (const char* cache = std::getenv("XDG_CACHE_HOME"); cache != nullptr && *cache != '\0')
    return std::filesystem::path(cache) / "lockstep";
  if (const char* home = std::getenv("HOME"); home != nullptr && *home != '\0') return std::filesystem::path(home) / ".cache" / "lockstep";
  return {};
}

std::string plainFileName(std::string_view text) {
  std::string plain;
  for (const char c : text) {
    const bool keep = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '.';
    if (keep) plain += c;
    if (!keep && !plain.empty() && plain.back() != '-') plain += '-';
  }
  while (plain.ends_with('-')) plain.pop_back();
  return plain;
}

}  // namespace lockstep
