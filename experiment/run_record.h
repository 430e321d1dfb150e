// SPDX-License-Identifier: Apache-2.0
// What ran, for the files of a run: the Lockstep, the moment, the device, the optimizer.
#pragma once

#include <string>

#include "frontend/io/jsonl.h"
#include "frontend/train/trainer.h"

namespace lockstep::experiment {

/// Of one start of a run.
struct RunRecord {
  std::string version, commit;                  ///< of Lockstep; the commit may be empty
  std::string date;                             ///< "2026-03-01T12:00:00Z"
  std::string device, device_name, driver;      ///< that ran: "vulkan:0" where "auto" was asked for
  io::Json optimizer = io::Json::object();      ///< its name and settings
  io::Json learning_rate = io::Json::object();  ///< its schedule
};

/// Of a trainer, now.
RunRecord recordOf(const Trainer& trainer);

/// Adds "version", "commit", "date", "device", "device_name" and "driver" to an object.
void addStart(io::Json& object, const RunRecord& record);

}  // namespace lockstep::experiment
