// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/graph/op_def.h"
#include "ir/program/plan.h"
#include "ir/program/profile.h"

namespace lockstep::passes {

/// How a workgroup shares out a row of a template of form Split.
program::SplitPlan splitPlan(const graph::TemplateShape& shape, const program::DeviceProfile& profile);

}  // namespace lockstep::passes
