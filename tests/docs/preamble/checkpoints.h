// SPDX-License-Identifier: Apache-2.0
// What the fragments of docs/checkpoints.md stand behind.
#pragma once

#include <lockstep/lockstep.h>

struct Point : ls::Module {
  ls::Parameter at{*this, "at", {1}};
};
inline ls::ModelTrainer<Point> makeTrainer() {
  return ls::compile<Point>({
      .inputs = {{"x", ls::f32(1)}},
      .loss = [](const Point& point, const ls::Inputs& in) { return ls::mean(ls::square(point.at - in["x"])); },
      .device = "reference",
  });
}

/// The first lines of main().
#define LOCKSTEP_DOC_SETUP \
  int64_t epoch = 0;       \
  auto trainer = makeTrainer();
