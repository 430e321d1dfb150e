// SPDX-License-Identifier: Apache-2.0
#include "frontend/io/file.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <memory>
#include <new>
#include <system_error>
#include <utility>

#include "ir/support/descriptor.h"

namespace lockstep::io {
namespace {

std::string reason(int error) { return std::generic_category().message(error); }

Failure readFailure(const std::filesystem::path& path, std::string why) {
  return fail("file.read", fmt::format("'{}' cannot be read: {}", path.string(), why), {}, "check the path and its permissions");
}

Failure writeFailure(const std::filesystem::path& path, std::string why) {
  return fail("file.write", fmt::format("'{}' cannot be written: {}", path.string(), why), {},
              "check that the directory exists, is writable and has room");
}

template <class Container>
Result<Container> readWhole(const std::filesystem::path& path) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) return readFailure(path, reason(errno));
  struct stat status{};
  if (::fstat(file.get(), &status) != 0) return readFailure(path, reason(errno));
  if (S_ISDIR(status.st_mode)) return readFailure(path, "it is a directory");
  Container data;
  // Pipes have no size, so the size is only a hint.
  size_t capacity = status.st_size > 0 ? static_cast<size_t>(status.st_size) + 1 : 65536;
  size_t filled = 0;
  while (true) {
    data.resize(capacity);
    const ssize_t got = ::read(file.get(), data.data() + filled, capacity - filled);
    if (got < 0) {
      if (errno == EINTR) continue;
      return readFailure(path, reason(errno));
    }
    if (got == 0) break;
    filled += static_cast<size_t>(got);
    if (filled == capacity) capacity *= 2;
  }
  data.resize(filled);
  return data;
}

}  // namespace

Result<std::vector<std::byte>> readFile(const std::filesystem::path& path) { return readWhole<std::vector<std::byte>>(path); }
Result<std::string> readTextFile(const std::filesystem::path& path) { return readWhole<std::string>(path); }

namespace {

constexpr std::string_view kTemporary = ".tmp-";  // then the number of the process, "-" and a counter

bool isNumber(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

/// Whether openTemporary() could have made this name; a name that only looks similar is the user's.
bool isTemporary(std::string_view name) {
  const size_t mark = name.rfind(kTemporary);
  if (mark == std::string_view::npos || mark == 0) return false;
  const std::string_view numbers = name.substr(mark + kTemporary.size());
  const size_t dash = std::min(numbers.find('-'), numbers.size());
  return isNumber(numbers.substr(0, dash)) && dash < numbers.size() && isNumber(numbers.substr(dash + 1));
}

struct TemporaryFile {
  std::filesystem::path path;
  Descriptor file;
};

/// A new file beside `path`. Its writer holds a lock on it, which the system drops when the writer dies: so others can tell a file that is
/// being written from one that was left behind, even if process numbers repeat (as they do in containers).
Result<TemporaryFile> openTemporary(const std::filesystem::path& path) {
  static std::atomic<unsigned> counter{0};
  while (true) {
    std::filesystem::path name = path;
    name += fmt::format("{}{}-{}", kTemporary, ::getpid(), counter.fetch_add(1));
    const int fd = ::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0 && errno == EEXIST) continue;  // left behind by a process with our number
    if (fd < 0) return writeFailure(path, reason(errno));
    TemporaryFile made{std::move(name), Descriptor(fd)};
    // Somebody who looks for leftovers may have been faster.
    struct stat status{};
    const bool taken = ::flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    if (taken || ::fstat(fd, &status) != 0 || status.st_nlink == 0) continue;
    return made;
  }
}

/// Makes a rename last through a power cut.
Status syncFolder(const std::filesystem::path& path) {
  const std::filesystem::path folder = path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
  const Descriptor opened(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  // Some file systems cannot sync folders; they say EINVAL.
  if (opened.get() < 0 || (::fsync(opened.get()) != 0 && errno != EINVAL)) return writeFailure(path, reason(errno));
  return Success{};
}

/// Into a device or a pipe: a new file in its place would be the end of it.
Status writeInto(const std::filesystem::path& path, std::span<const std::byte> data) {
  Descriptor opened(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (opened.get() < 0 || !writeAll(opened.get(), data) || !opened.close()) return writeFailure(path, reason(errno));
  return Success{};
}

/// The new file gets owner and mode of the one that it replaces, before it has any content: who may not read the old one may not read this
/// one. File systems without modes refuse, which does no harm.
void takeOverMode(int file, const std::filesystem::path& path) {
  struct stat old{};
  if (::stat(path.c_str(), &old) != 0) return;
  constexpr mode_t kPermissions = 0777;
  (void)!::fchown(file, old.st_uid, old.st_gid);
  (void)!::fchmod(file, old.st_mode & kPermissions);
}

/// `path` is no link.
Status replaceFile(const std::filesystem::path& path, std::span<const std::byte> data) {
  LS_TRY(TemporaryFile temporary, openTemporary(path));
  takeOverMode(temporary.file.get(), path);
  const auto abandon = [&](int error) {
    ::unlink(temporary.path.c_str());
    return writeFailure(path, reason(error));
  };
  if (!writeAll(temporary.file.get(), data)) return abandon(errno);
  if (::fsync(temporary.file.get()) != 0 && errno != EINVAL) return abandon(errno);
  // Renamed while the lock is held: before that nobody else may remove it.
  if (::rename(temporary.path.c_str(), path.c_str()) != 0) return abandon(errno);
  if (!temporary.file.close()) return writeFailure(path, reason(errno));
  return syncFolder(path);
}

}  // namespace

Status writeFileAtomically(const std::filesystem::path& path, std::span<const std::byte> data) {
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(path, error);
  const bool is_there = std::filesystem::exists(status);
  if (is_there && !std::filesystem::is_regular_file(status) && !std::filesystem::is_directory(status)) return writeInto(path, data);
  if (!is_there || !std::filesystem::is_symlink(path, error)) return replaceFile(path, data);
  const std::filesystem::path target = std::filesystem::canonical(path, error);
  return replaceFile(error ? path : target, data);
}

Status writeFileAtomically(const std::filesystem::path& path, std::string_view text) {
  return writeFileAtomically(path, std::as_bytes(std::span(text.data(), text.size())));
}

Status appendToFile(const std::filesystem::path& path, std::string_view text) {
  Descriptor opened(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666));
  struct stat before{};
  if (opened.get() < 0 || ::fstat(opened.get(), &before) != 0) return writeFailure(path, reason(errno));
  if (!writeAll(opened.get(), std::as_bytes(std::span(text.data(), text.size())))) {
    const int error = errno;
    (void)!::ftruncate(opened.get(), before.st_size);
    return writeFailure(path, reason(error));
  }
  if (!opened.close()) return writeFailure(path, reason(errno));
  return Success{};
}

Status makeDirectories(const std::filesystem::path& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error || !std::filesystem::is_directory(path, error)) {
    return fail("file.directory", fmt::format("directory '{}' cannot be made: {}", path.string(), error ? error.message() : "it is a file"),
                {}, "name another directory");
  }
  return Success{};
}

Result<std::vector<std::filesystem::path>> listFolder(const std::filesystem::path& folder) {
  const std::unique_ptr<DIR, int (*)(DIR*)> opened(::opendir(folder.c_str()), ::closedir);
  int error = opened == nullptr ? errno : 0;
  std::vector<std::filesystem::path> entries;
  while (error == 0) {
    errno = 0;
    const dirent* entry = ::readdir(opened.get());
    error = errno;
    if (entry == nullptr) break;
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") entries.push_back(folder / name);
  }
  if (error == ENOMEM) throw std::bad_alloc();
  if (error != 0) return fail("file.directory", fmt::format("directory '{}' cannot be read: {}", folder.string(), reason(error)));
  std::ranges::sort(entries);
  return entries;
}

std::vector<std::filesystem::path> entriesOf(const std::filesystem::path& folder) {
  Result<std::vector<std::filesystem::path>> entries = listFolder(folder);
  return entries.ok() ? std::move(*entries) : std::vector<std::filesystem::path>{};
}

Status removeAbandonedWrites(const std::filesystem::path& folder) {
  LS_TRY(const std::vector<std::filesystem::path> entries, listFolder(folder));
  for (const std::filesystem::path& path : entries) {
    if (!isTemporary(path.filename().string())) continue;
    // Opening a pipe must not wait for its writer.
    const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    struct stat status{};
    if (file.get() < 0 || ::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) continue;
    if (::flock(file.get(), LOCK_EX | LOCK_NB) == 0) ::unlink(path.c_str());
  }
  return Success{};
}

}  // namespace lockstep::io
