// SPDX-License-Identifier: Apache-2.0
#include "frontend/io/temporary_folder.h"

#include <fmt/format.h>
#include <ftw.h>
#include <stdlib.h>  // mkdtemp

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <system_error>

namespace lockstep::io {

Result<TemporaryFolder> TemporaryFolder::make(std::string_view prefix) {
  const auto cannot = [](const std::filesystem::path& where, const std::string& why) {
    return fail("file.directory", fmt::format("no temporary directory can be made in '{}': {}", where.string(), why), {},
                "set TMPDIR to a directory that exists and is writable");
  };
  std::error_code error;
  const std::filesystem::path parent = std::filesystem::temp_directory_path(error);
  if (error) {
    const char* chosen = std::getenv("TMPDIR");
    return cannot(chosen == nullptr ? "/tmp" : chosen, error.message());
  }
  // A name that nobody can know before, and a folder that was not there: so no link that lies in wait is followed.
  std::string name = (parent / fmt::format("{}-XXXXXX", prefix)).string();
  if (::mkdtemp(name.data()) == nullptr) return cannot(parent, std::generic_category().message(errno));
  return TemporaryFolder(std::filesystem::path(std::move(name)));
}

TemporaryFolder::~TemporaryFolder() {
  constexpr int kOpenFolders = 16;
  // std::filesystem::remove_all ends the process where memory runs out.
  const auto remove = [](const char* path, const struct stat*, int, FTW*) { return ::remove(path); };
  if (!path_.empty()) ::nftw(path_.c_str(), remove, kOpenFolders, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
}

}  // namespace lockstep::io
