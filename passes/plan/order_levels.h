// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/program/program.h"

namespace lockstep::passes {

/// The commands of each level in another order, for devices that run them one beside the other: first chains of rows, then those that wait
/// for memory most of the time, which leave room for others, then those that compute, and among each the one whose workgroups take longest.
/// A long workgroup that began when all others are done would have the device for itself.
program::Program orderLevels(const program::Program& planned, const program::DeviceProfile& profile);

}  // namespace lockstep::passes
