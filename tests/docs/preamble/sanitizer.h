// SPDX-License-Identifier: Apache-2.0
// What the fragments of docs/sanitizer.md stand behind.
#pragma once

#include <fmt/format.h>

#include <lockstep/lockstep.h>

struct Scale : ls::Module {
  ls::Parameter by{*this, "by", {3}, ls::init::constant(2)};
};
