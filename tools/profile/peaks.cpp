// SPDX-License-Identifier: Apache-2.0
#include "tools/profile/peaks.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string_view>

#include "frontend/io/file.h"
#include "ir/support/cache_folder.h"

namespace lockstep::tools {
namespace {

struct Field {
  const char* name;
  double Peaks::* value;
  bool may_be_zero = false;
};
constexpr std::array kFields{
    Field{"bytes_per_second", &Peaks::bytes_per_second}, Field{"operations_per_second", &Peaks::operations_per_second},
    Field{"dispatch_seconds", &Peaks::dispatch_seconds, true}, Field{"barrier_seconds", &Peaks::barrier_seconds, true},
    Field{"timed_dispatch_seconds", &Peaks::timed_dispatch_seconds, true}};

Status keep(const std::filesystem::path& file, const Peaks& peaks) {
  if (file.empty()) return fail("file.write", "there is no folder for caches", {}, "set XDG_CACHE_HOME");
  LS_CHECK(io::makeDirectories(file.parent_path()));
  return io::writeFileAtomically(file, std::string_view(peaksJson(peaks) + "\n"));
}

}  // namespace

std::string peaksJson(const Peaks& peaks) {
  nlohmann::ordered_json json;
  for (const Field& field : kFields) json[field.name] = peaks.*field.value;
  return json.dump(2);
}

std::optional<Peaks> parsePeaks(const std::string& text) {
  const auto json = nlohmann::json::parse(text, nullptr, false);
  Peaks peaks;
  for (const Field& field : kFields) {
    if (!json.is_object() || !json.contains(field.name) || !json[field.name].is_number()) return std::nullopt;
    const auto value = json[field.name].get<double>();
    if (!std::isfinite(value) || value < 0 || (value == 0 && !field.may_be_zero)) return std::nullopt;
    peaks.*field.value = value;
  }
  return peaks;
}

std::filesystem::path peaksFile(const DeviceInfo& device) {
  const std::filesystem::path folder = cacheFolder();
  if (folder.empty()) return {};
  return folder / fmt::format("peaks-{}-{}.json", plainFileName(device.name), plainFileName(device.driver));
}

Result<KnownPeaks> knownPeaks(const std::filesystem::path& file, bool remeasure, const std::function<Result<Peaks>()>& measure) {
  if (!remeasure) {
    const Result<std::string> text = io::readTextFile(file);
    const std::optional<Peaks> kept = text.ok() ? parsePeaks(*text) : std::nullopt;
    if (kept) return KnownPeaks{.peaks = *kept};
  }
  LS_TRY(const Peaks peaks, measure());
  const Status written = keep(file, peaks);
  return KnownPeaks{.peaks = peaks, .measured = true, .not_kept = written.ok() ? std::nullopt : std::optional(written.failure())};
}

}  // namespace lockstep::tools
