// SPDX-License-Identifier: Apache-2.0
#include "frontend/train/tuning.h"

#include <fmt/format.h>

#include <cstdlib>

#include "frontend/io/file.h"
#include "ir/support/cache_folder.h"

namespace lockstep::detail {
namespace {

using program::TuningTable;

Result<TuningTable> readTable(const std::filesystem::path& file, const DeviceInfo& device) {
  LS_TRY(const std::string text, io::readTextFile(file));
  LS_TRY(TuningTable table, program::parseTuning(text, file.string()));
  if (device.name.starts_with(table.device)) return table;
  return fail("tuning.device", fmt::format("'{}' was measured on '{}', and the device is '{}'", file.string(), table.device, device.name),
              {}, "run 'lockstep tune' for this device, or unset LOCKSTEP_TUNING");
}

Result<TuningTable> embeddedFor(const DeviceInfo& device) {
  for (const EmbeddedTuning& embedded : embeddedTuning()) {
    LS_TRY(TuningTable table, program::parseTuning(embedded.text, std::string(embedded.name)));
    if (device.name.starts_with(table.device)) return table;
  }
  return TuningTable{.device = device.name, .plans = {}};
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
  LS_TRY(TuningTable table, readTable(own, device));
  return merge(std::move(table), embedded);
}

}  // namespace lockstep::detail
