// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/files.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <system_error>

namespace lockstep::fuzz {
namespace {

namespace fs = std::filesystem;

struct Folder {
  Folder() {
    std::error_code none;
    const fs::path memory = "/dev/shm";
    path = (fs::is_directory(memory, none) ? memory : fs::temp_directory_path()) / ("lockstep-fuzz-" + std::to_string(::getpid()));
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() {
    std::error_code none;
    fs::remove_all(path, none);
  }
  fs::path path;
};

const fs::path& folder() {
  static const Folder instance;
  return instance.path;
}

constexpr std::string_view kSection = "==== ";

}  // namespace

const fs::path& emptyFolder() {
  fs::remove_all(folder());
  fs::create_directories(folder());
  return folder();
}

fs::path writeFile(std::string_view name, std::span<const std::byte> bytes) {
  const fs::path path = folder() / name;
  std::ofstream out(path, std::ios::binary);
  out.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  return path;
}

void writeSections(std::string_view text) {
  for (size_t at = text.starts_with(kSection) ? 0 : text.find("\n==== "); at != std::string_view::npos;) {
    if (text[at] == '\n') ++at;
    const size_t line_end = std::min(text.find('\n', at), text.size());
    const std::string_view name = text.substr(at + kSection.size(), line_end - at - kSection.size());
    const size_t begin = std::min(line_end + 1, text.size()), next = text.find("\n==== ", line_end);
    const size_t end = next == std::string_view::npos ? text.size() : next + 1;
    const bool plain = !name.empty() && name.size() < 100 && name.find_first_of(std::string_view("/\0", 2)) == std::string_view::npos &&
                       name != "." && name != "..";
    if (plain) writeFile(name, std::as_bytes(std::span(text.substr(begin, end < begin ? 0 : end - begin))));
    at = next;
  }
}

}  // namespace lockstep::fuzz
