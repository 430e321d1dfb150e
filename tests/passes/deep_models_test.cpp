// SPDX-License-Identifier: Apache-2.0
// Models of many layers and steps: what compiling them takes must grow with them and not faster.
#include <gtest/gtest.h>

#include "examples/models/deep_models.h"
#include "frontend/optim/settings.h"
#include "frontend/trace/trace_function.h"
#include "frontend/train/templates.h"
#include "passes/pipeline.h"

namespace lockstep {
namespace {

passes::Compiled compiled(const std::string& model, int64_t size, const std::string& profile) {
  const examples::DeepCase one = examples::deepCase(model, size);
  graph::Graph traced =
      detail::traceFunction(one.model.get(), one.inputs, one.loss, graph::OutputKind::Loss, std::source_location::current());
  passes::CompileOptions options;
  options.profile = program::findProfile(profile).orThrow();
  options.optimizer = detail::optimizerConfig(adam({.lr = 0.001}), traced.parameters);
  options.templates = detail::templateSource();
  return passes::compile(std::move(traced), options).orThrow();
}

// The gradient towards all steps is a sum of one share per step, each in its place, which is computed where it is read.
TEST(DeepModels, a_recurrent_model_fits_where_kernels_bind_eight_tensors) {
  const passes::Compiled gru = compiled("gru", 32, "portable");
  for (const program::Command& command : gru.program.commands) {
    const auto* dispatch = std::get_if<program::Dispatch>(&command.action);
    if (dispatch == nullptr) continue;
    EXPECT_LE(dispatch->bindings.size(), 8u) << command.label;
  }
}

}  // namespace
}  // namespace lockstep
