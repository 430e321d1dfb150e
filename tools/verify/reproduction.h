// SPDX-License-Identifier: Apache-2.0
// A folder with one dispatch: the kernel, what it read, what it should have written. `sh run.sh` there shows the difference again on any
// machine that has the command.
#pragma once

#include <filesystem>
#include <string>

#include "ir/support/result.h"
#include "tools/verify/kernel_check.h"

namespace lockstep::tools {

/// Writes kernel.kir, kernel.wgsl, before_<binding>.npy, expected_<binding>.npy, bound_<binding>.npy and got_<binding>.npy of the binding
/// that differs, difference.txt with `report`, and run.sh. Codes of io.
Status writeReproduction(const std::filesystem::path& folder, const KernelDifference& difference, const std::string& device,
                         const std::string& report);

/// What run.sh gives the command: "run kernel.kir --dispatch 4,1,1 --bind 0.0=before_0.npy ... --expect 0.1=expected_1.npy --device
/// vulkan:0".
std::string runLine(const KernelDifference& difference, const std::string& device);

}  // namespace lockstep::tools
