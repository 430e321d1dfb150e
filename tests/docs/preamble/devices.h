// SPDX-License-Identifier: Apache-2.0
// What the fragment of docs/devices.md stands behind.
#pragma once

#include <fmt/format.h>

#include <lockstep/lockstep.h>

struct Line : ls::Module {
  ls::nn::Linear fit{*this, "fit", 1, 1};
};
