// SPDX-License-Identifier: Apache-2.0
#include "conformance/gzip_lines.h"

#include <fmt/format.h>
#include <zlib.h>

#include <vector>

namespace lockstep::conformance {

struct GzipLines::State {
  std::string path;
  gzFile file = nullptr;
  std::vector<char> buffer = std::vector<char>(size_t{1} << 20u);
  size_t begin = 0, end = 0;  // of what is in the buffer and was not read yet

  explicit State(std::string name) : path(std::move(name)), file(gzopen(path.c_str(), "rb")) {}
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

Result<GzipLines> GzipLines::open(const std::filesystem::path& path) {
  auto state = std::make_unique<State>(path.string());
  if (state->file == nullptr) return fail("conformance.file", fmt::format("cannot open '{}'", path.string()));
  return GzipLines(std::move(state));
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
    const int count = gzread(s.file, s.buffer.data(), static_cast<unsigned>(s.buffer.size()));
    int error = Z_OK;
    const char* message = gzerror(s.file, &error);
    if (count < 0 || (error != Z_OK && error != Z_STREAM_END)) {
      return fail("conformance.file", fmt::format("'{}' is damaged: {}", s.path, message), {}, "copy it again");
    }
    s.begin = 0;
    s.end = static_cast<size_t>(count);
    if (count == 0) return line.empty() ? std::optional<std::string>() : std::optional(std::move(line));
  }
}

}  // namespace lockstep::conformance
