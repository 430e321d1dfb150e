// SPDX-License-Identifier: Apache-2.0
#include "frontend/io/temporary_folder.h"

#include <fmt/format.h>
#include <ftw.h>
#include <stdlib.h>  // mkdtemp
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <system_error>

#include "frontend/io/file.h"

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

Result<TemporaryFolder> TemporaryFolder::makeBeside(const std::filesystem::path& path) {
  static std::atomic<unsigned> counter{0};
  if (path.has_parent_path()) LS_CHECK(makeDirectories(path.parent_path()));
  while (true) {
    std::filesystem::path name = path;
    name += fmt::format(".tmp-{}-{}", ::getpid(), counter.fetch_add(1));
    if (::mkdir(name.c_str(), 0777) == 0) return TemporaryFolder(std::move(name));
    if (errno != EEXIST) {
      return fail("file.directory", fmt::format("'{}' cannot be made: {}", name.string(), std::generic_category().message(errno)), {},
                  "check the path and its permissions");
    }
  }
}

Status TemporaryFolder::moveTo(const std::filesystem::path& path, bool replace) {
  std::error_code error;
  TemporaryFolder old{std::filesystem::path()};
  if (replace && std::filesystem::exists(path, error)) {
    LS_TRY(old, makeBeside(path));
    std::filesystem::rename(path, old.path(), error);
  }
  if (!error) std::filesystem::rename(path_, path, error);
  if (error) {
    return fail("file.directory", fmt::format("'{}' cannot be moved to '{}': {}", path_.string(), path.string(), error.message()), {},
                "check the path and its permissions");
  }
  path_.clear();
  return Success{};
}

TemporaryFolder::~TemporaryFolder() {
  constexpr int kOpenFolders = 16;
  // std::filesystem::remove_all ends the process where memory runs out.
  const auto remove = [](const char* path, const struct stat*, int, FTW*) { return ::remove(path); };
  if (!path_.empty()) ::nftw(path_.c_str(), remove, kOpenFolders, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
}

}  // namespace lockstep::io
