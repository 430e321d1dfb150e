// SPDX-License-Identifier: Apache-2.0
#include "frontend/io/file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <system_error>
#include <utility>

namespace lockstep::io {
namespace {

std::string reason(int error) { return std::generic_category().message(error); }

/// A file descriptor that closes itself.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  [[nodiscard]] int get() const { return fd_; }
  /// Closes now; false when the system reports a late write error.
  bool close() { return ::close(std::exchange(fd_, -1)) == 0; }

 private:
  int fd_;
};

Failure readFailure(const std::filesystem::path& path, std::string why) {
  return fail("file.read", fmt::format("'{}' cannot be read: {}", path.string(), why), {}, "check the path and its permissions");
}

Failure writeFailure(const std::filesystem::path& path, std::string why) {
  return fail("file.write", fmt::format("'{}' cannot be written: {}", path.string(), why), {},
              "check that the directory exists, is writable and has room");
}

template <class Container>
Result<Container> readAll(const std::filesystem::path& path) {
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

Result<std::vector<std::byte>> readFile(const std::filesystem::path& path) { return readAll<std::vector<std::byte>>(path); }
Result<std::string> readTextFile(const std::filesystem::path& path) { return readAll<std::string>(path); }

Status writeFileAtomically(const std::filesystem::path& path, std::span<const std::byte> data) {
  // Process and counter make the name unique among concurrent writers; O_EXCL catches the rest.
  static std::atomic<unsigned> counter{0};
  std::filesystem::path temporary = path;
  temporary += fmt::format(".tmp-{}-{}", ::getpid(), counter.fetch_add(1));
  Descriptor file(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (file.get() < 0) return writeFailure(path, reason(errno));
  const auto abandon = [&](int error) {
    ::unlink(temporary.c_str());
    return writeFailure(path, reason(error));
  };
  size_t written = 0;
  while (written < data.size()) {
    const ssize_t count = ::write(file.get(), data.data() + written, data.size() - written);
    if (count < 0) {
      if (errno == EINTR) continue;
      return abandon(errno);
    }
    written += static_cast<size_t>(count);
  }
  if (::fsync(file.get()) != 0 && errno != EINVAL) return abandon(errno);
  if (!file.close()) return abandon(errno);
  if (::rename(temporary.c_str(), path.c_str()) != 0) return abandon(errno);
  return Success{};
}

Status writeFileAtomically(const std::filesystem::path& path, std::string_view text) {
  return writeFileAtomically(path, std::as_bytes(std::span(text.data(), text.size())));
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

}  // namespace lockstep::io
