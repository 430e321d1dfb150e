// SPDX-License-Identifier: Apache-2.0
#include "frontend/train/tuning.h"

#include <fmt/format.h>

#include <cctype>
#include <cstdlib>
#include <string_view>

#include "frontend/io/file.h"
#include "ir/support/cache_folder.h"

namespace lockstep::detail {
namespace {

using program::TuningTable;

/// Whether `name` is that of the device or its beginning up to the end of a word: "NVIDIA A10" is no "NVIDIA A100".
bool names(std::string_view name, const DeviceInfo& device) {
  if (name.empty() || !device.name.starts_with(name)) return false;
  return name.size() == device.name.size() || std::isalnum(static_cast<unsigned char>(device.name[name.size()])) == 0;
}

Result<TuningTable> readTable(const std::filesystem::path& file, const DeviceInfo& device) {
  LS_TRY(const std::string text, io::readTextFile(file));
  LS_TRY(TuningTable table, program::parseTuning(text, file.string()));
  if (names(table.device, device)) return table;
  return fail("tuning.device", fmt::format("'{}' was measured on '{}', and the device is '{}'", file.string(), table.device, device.name),
              {}, "run 'lockstep tune' for this device, or unset LOCKSTEP_TUNING");
}

Result<TuningTable> embeddedFor(const DeviceInfo& device) {
  TuningTable best{.device = {}, .plans = {}};
  for (const EmbeddedTuning& embedded : embeddedTuning()) {
    LS_TRY(TuningTable table, program::parseTuning(embedded.text, std::string(embedded.name)));
    if (names(table.device, device) && table.device.size() > best.device.size()) best = std::move(table);
  }
  best.device = device.name;
  return best;
}

}  // namespace

std::filesystem::path tuningFile(const DeviceInfo& device) {
  const std::filesystem::path folder = cacheFolder();
  return folder.empty() ? folder : folder / fmt::format("tuning-{}.tuning", plainFileName(device.name + " " + device.driver));
}

Result<TuningTable> tuningOf(const DeviceInfo& device) {
  const char* chosen = std::getenv("LOCKSTEP_TUNING");
  if (chosen != nullptr && std::string_view(chosen) == "off") return TuningTable{.device = device.name, .plans = {}};
  if (chosen != nullptr && *chosen != '\0') return readTable(chosen, device);
  LS_TRY(const TuningTable embedded, embeddedFor(device));
  const std::filesystem::path own = tuningFile(device);
  std::error_code ignored;
  if (own.empty() || !std::filesystem::exists(own, ignored)) return embedded;
  // A damaged file of the cache is as good as none.
  Result<TuningTable> table = readTable(own, device);
  return table ? merge(std::move(*table), embedded) : embedded;
}

}  // namespace lockstep::detail
