// SPDX-License-Identifier: Apache-2.0
// How a device is shown by `devices` and `doctor`.
#pragma once

#include <string>

#include "backends/backend.h"
#include "frontend/io/jsonl.h"

namespace lockstep::tools {

/// {"id", "name", "kind", "driver", "memory_bytes", "limits": {...}, "usable", "why_not"}
io::Json deviceJson(const DeviceInfo& device);
/// Two or three lines.
std::string deviceText(const DeviceInfo& device);

}  // namespace lockstep::tools
