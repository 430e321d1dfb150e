// SPDX-License-Identifier: Apache-2.0
// What each sample trains, in one place.
#pragma once

#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "examples/models/cnn.h"
#include "examples/models/flow.h"
#include "examples/models/kan.h"
#include "examples/models/mlp.h"
#include "examples/models/nerf.h"
#include "examples/models/pokeformer.h"
#include "examples/models/policy.h"
#include "examples/models/transformer.h"
#include "examples/models/vae.h"
#include "frontend/train/trainer.h"

namespace lockstep::examples {

// Inputs, loss and optimizer of each sample.
CompileSpec<Mlp> sineSpec();
CompileSpec<Kan> kanSpec();
CompileSpec<Nerf> nerfSpec();
CompileSpec<Policy> cartpoleSpec();
CompileSpec<Policy> ticTacToeSpec();
CompileSpec<DigitMlp> digitSpec(int64_t hidden);
CompileSpec<Cnn> cnnSpec();
CompileSpec<Vae> vaeSpec();
CompileSpec<Flow> flowSpec();
CompileSpec<Pokeformer> pokeformerSpec();
CompileSpec<Transformer> makemoreSpec();
CompileSpec<Transformer> charGptSpec();

/// i32 tokens and targets, f32 mask, each [batch, length].
std::vector<InputSpec> tokenInputs(int64_t batch, int64_t length);

/// A sample whose model's type does not matter: what tests, tables and benchmarks go over.
struct SampleProgram {
  std::string_view name;
  std::vector<InputSpec> inputs;
  std::shared_ptr<const Module> model;
  std::function<Tensor(const Module&, const Inputs&)> loss;
  OptimizerSpec optimizer;
  int64_t integers = 0;  ///< integer inputs are below this
};
/// At full size, in the order of docs/samples.md.
std::vector<SampleProgram> samplePrograms();

}  // namespace lockstep::examples
