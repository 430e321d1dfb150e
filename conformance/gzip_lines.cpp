// SPDX-License-Identifier: Apache-2.0
#include "conformance/gzip_lines.h"

#include <fmt/format.h>
#include <zlib.h>

#include <vector>

#include "conformance/recorded_number.h"
#include "frontend/io/regular_file.h"

namespace lockstep::conformance {

struct GzipLines::State {
  std::string path;
  gzFile file = nullptr;
  std::vector<char> buffer = std::vector<char>(size_t{1} << 20u);
  size_t begin = 0, end = 0;          // of what is in the buffer and was not read yet
  uint64_t most_bytes = 0, left = 0;  // of the whole text, and of what may still come

  State(std::string name, gzFile opened, uint64_t most) : path(std::move(name)), file(opened), most_bytes(most), left(most) {}
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() {
    if (file != nullptr) gzclose(file);
  }
};

GzipLines::GzipLines(std::unique_ptr<State> state) : state_(std::move(state)) {}
GzipLines::GzipLines(GzipLines&&) noexcept = default;
GzipLines& GzipLines::operator=(GzipLines&&) noexcept = default;
GzipLines::~GzipLines() = default;

Result<GzipLines> GzipLines::open(const std::filesystem::path& path, uint64_t most_bytes) {
  const auto cannot = [&](const std::string& why) {
    return fail("conformance.file", fmt::format("cannot open '{}': {}", path.string(), why), {},
                "give the folder that has the recorded files");
  };
  Result<io::RegularFile> opened = io::openRegularFile(path);
  if (!opened.ok()) return cannot(opened.diagnostics().front().message);
  const gzFile file = gzdopen(opened->descriptor(), "rb");
  if (file == nullptr) return cannot("no memory is left");
  (void)opened->release();  // closed with `file`
  return GzipLines(std::make_unique<State>(path.string(), file, most_bytes));
}

Result<std::optional<std::string>> GzipLines::next() {
  State& s = *state_;
  std::string line;
  for (;;) {
    const std::string_view rest(s.buffer.data() + s.begin, s.end - s.begin);
    if (const size_t newline = rest.find('\n'); newline != std::string_view::npos) {
      line += rest.substr(0, newline);
      s.begin += newline + 1;
      return std::optional(std::move(line));
    }
    line += rest;
    if (line.size() > kMostLineBytes) {
      return fail("conformance.file", fmt::format("'{}' has a line of more than {} MiB", s.path, kMostLineBytes >> 20u), {},
                  "copy it again");
    }
    const int count = gzread(s.file, s.buffer.data(), static_cast<unsigned>(s.buffer.size()));
    int error = Z_OK;
    const char* message = gzerror(s.file, &error);
    if (count < 0 || (error != Z_OK && error != Z_STREAM_END)) {
      return fail("conformance.file", fmt::format("'{}' is damaged: {}", s.path, message), {}, "copy it again");
    }
    if (static_cast<uint64_t>(count) > s.left) {
      return fail("conformance.file", fmt::format("'{}' unpacks to more than {} bytes, which is the limit", s.path, s.most_bytes), {},
                  "copy it again");
    }
    s.left -= static_cast<uint64_t>(count);
    s.begin = 0;
    s.end = static_cast<size_t>(count);
    if (count == 0) return line.empty() ? std::optional<std::string>() : std::optional(std::move(line));
  }
}

}  // namespace lockstep::conformance
