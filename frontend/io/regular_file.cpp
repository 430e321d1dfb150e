// SPDX-License-Identifier: Apache-2.0
#include "frontend/io/regular_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

namespace lockstep::io {
namespace {

namespace fs = std::filesystem;

Failure cannotRead(const fs::path& path, const std::string& why) {
  return fail("file.read", fmt::format("'{}' cannot be read: {}", path.string(), why), {}, "check the path and its permissions");
}

std::string reason(int error) { return std::generic_category().message(error); }

}  // namespace

RegularFile::~RegularFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

Result<RegularFile> openRegularFile(const fs::path& path, Links links) {
  // Asked before it is opened, since opening alone can have an effect on a device; and again after, since it may have changed.
  struct stat status{};
  if ((links == Links::Follow ? ::stat(path.c_str(), &status) : ::lstat(path.c_str(), &status)) != 0)
    return cannotRead(path, reason(errno));
  if (!S_ISREG(status.st_mode)) return cannotRead(path, "it is not a regular file");
  const int flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | (links == Links::Refuse ? O_NOFOLLOW : 0);
  const int descriptor = ::open(path.c_str(), flags);
  if (descriptor < 0) return cannotRead(path, reason(errno));
  RegularFile file(descriptor, 0);
  if (::fstat(descriptor, &status) != 0) return cannotRead(path, reason(errno));
  if (!S_ISREG(status.st_mode)) return cannotRead(path, "it is not a regular file");
  return RegularFile(file.release(), static_cast<uint64_t>(status.st_size));
}

Result<std::string> readRegularTextFile(const fs::path& path, uint64_t most_bytes, Links links) {
  LS_TRY(const RegularFile file, openRegularFile(path, links));
  const auto tooLarge = [&] { return cannotRead(path, fmt::format("it has more than {} bytes, which is the limit here", most_bytes)); };
  if (file.size() > most_bytes) return tooLarge();
  // Files of /proc have more bytes than they say.
  std::string text;
  constexpr size_t kPart = 65536;
  text.reserve(file.size() + 1);
  for (;;) {
    const size_t filled = text.size();
    text.resize(filled + kPart);
    const ssize_t got = ::read(file.descriptor(), text.data() + filled, kPart);
    text.resize(filled + static_cast<size_t>(std::max<ssize_t>(got, 0)));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return cannotRead(path, reason(errno));
    if (text.size() > most_bytes) return tooLarge();
    if (got == 0) return text;
  }
}

Result<std::string> readTextFileBelow(const fs::path& folder, const fs::path& name, uint64_t most_bytes) {
  std::error_code error;
  const fs::path root = fs::canonical(folder, error);
  if (error) return cannotRead(folder, error.message());
  const fs::path relative = name.is_absolute() ? name.lexically_normal().lexically_relative(root) : name;
  const bool inside = !relative.empty() && relative.is_relative() &&
                      std::ranges::none_of(relative, [](const fs::path& part) { return part.string().starts_with('.') && part != "."; });
  if (!inside) return cannotRead(name, fmt::format("it does not lie below '{}'", root.string()));
  const fs::path found = fs::canonical(root / relative, error);
  if (error) return cannotRead(name, error.message());
  // A link may lead out of the folder.
  const auto [rest, unused] = std::ranges::mismatch(root, found);
  if (rest != root.end()) return cannotRead(name, fmt::format("it does not lie below '{}'", root.string()));
  return readRegularTextFile(found, most_bytes, Links::Refuse);
}

}  // namespace lockstep::io
