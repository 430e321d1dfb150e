// SPDX-License-Identifier: Apache-2.0
// The model whose checkpoints and dumps are fuzzed.
#pragma once

#include <string>

#include "frontend/lockstep.h"

namespace lockstep::fuzz {

struct SmallModel : Module {
  nn::Linear l{*this, "l", 2, 1};
  Tensor operator()(Tensor x) const { return l(x); }
};

/// On the reference; `dump_ir` as in CompileSpec.
inline Trainer compileSmallModel(const std::string& dump_ir = {}) {
  return compile<SmallModel>({.inputs = {{"x", f32(3, 2)}},
                              .loss = [](const SmallModel& model, const Inputs& in) { return mean(square(model(in["x"]))); },
                              .optimizer = adam({.lr = 0.01}),
                              .seed = 7,
                              .device = "reference",
                              .dump_ir = dump_ir});
}

}  // namespace lockstep::fuzz
