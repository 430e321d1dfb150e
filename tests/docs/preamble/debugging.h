// SPDX-License-Identifier: Apache-2.0
// What the fragments of docs/debugging.md stand behind.
#pragma once

#include <fmt/format.h>

#include <lockstep/lockstep.h>

struct Scale : ls::Module {
  ls::Parameter by{*this, "by", {3}, ls::init::constant(2)};
};
inline ls::ModelTrainer<Scale> makeTrainer() {
  return ls::compile<Scale>({
      .inputs = {{"x", ls::f32(3)}},
      .loss = [](const Scale& scale, const ls::Inputs& in) { return ls::mean(ls::log(scale.by * in["x"])); },
      .device = "reference",
  });
}

#define LOCKSTEP_DOC_SETUP auto trainer = makeTrainer();
