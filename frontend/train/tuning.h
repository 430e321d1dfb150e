// SPDX-License-Identifier: Apache-2.0
// Private to the front end: the tables of measured plans. Those of tuning/ are embedded when this is built; `lockstep tune` writes the
// user's own into the cache folder.
#pragma once

#include <filesystem>
#include <span>
#include <string_view>

#include "backends/backend.h"
#include "ir/program/tuning.h"
#include "ir/support/result.h"

namespace lockstep::detail {

struct EmbeddedTuning {
  std::string_view name;
  std::string_view text;
};
std::span<const EmbeddedTuning> embeddedTuning();

/// tuning-DEVICE-DRIVER.tuning in the cache folder; empty where there is no cache folder.
std::filesystem::path tuningFile(const DeviceInfo& device);

/// What is known of a device: the user's table, and what it does not name of the embedded one with the longest name that begins the
/// device's. LOCKSTEP_TUNING names another file in place of both; "off" means no table. Errors of parseTuning() for that file, and
/// "tuning.device" where it is of another device; a damaged table in the cache is ignored.
Result<program::TuningTable> tuningOf(const DeviceInfo& device);

}  // namespace lockstep::detail
