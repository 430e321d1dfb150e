// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/program/program.h"

namespace lockstep::passes {

/// Small dispatches of one level become one: its first workgroups run the first kernel, the next ones the second, and so on. A dispatch
/// costs the same however small it is. One of more than 4 workgroups for each of the profile's parallel units fills the device by itself
/// and stays: it would gain nothing, and a merged kernel takes the registers of its largest part.
/// Nor are two merged of which one has more workgroups than units and little workgroup memory, where the other has one for nearly each unit
/// and takes most of its memory: the first ones would wait for room that they do not need.
/// Merged are kernels with equal workgroups that ask for nothing but their workgroup and their lane, while bindings and workgroup memory
/// stay within the profile's limits. A range is bound once, and the parts share their workgroup memory, as a workgroup runs only one of
/// them. With whole_buffer_access nothing is merged: one part could read what lies beside another's results. No bit of a result changes.
program::Program mergeDispatches(const program::Program& program, const program::DeviceProfile& profile);

}  // namespace lockstep::passes
