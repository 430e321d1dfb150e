// SPDX-License-Identifier: Apache-2.0
// What a token costs: commands and levels of the program that a generator runs for each, at the size of a small checkpoint.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "frontend/llm/generator_session.h"
#include "frontend/trace/trace_function.h"
#include "frontend/train/templates.h"
#include "passes/pipeline.h"
#include "tests/llm/tiny.h"
#include "tests/passes/gpu_profile.h"

namespace lockstep::llm {
namespace {

LanguageConfig qwen(int64_t layers) {
  return testing::configOf(fmt::format(R"({{"model_type": "qwen2", "vocab_size": 151936, "hidden_size": 896, "num_hidden_layers": {},
      "num_attention_heads": 14, "num_key_value_heads": 2, "intermediate_size": 4864, "max_position_embeddings": 32768,
      "rms_norm_eps": 1e-6, "rope_theta": 1000000.0, "tie_word_embeddings": true}})", layers));
}

passes::Compiled step(int64_t layers, bool samples = false, int64_t several = 1) {
  LanguageConfig config = qwen(layers);
  config.init_scale = 0;
  const GeneratorOptions options{.positions = 1024, .chunk = 1, .tokens_per_submission = several, .samples = samples};
  const GeneratorSession session(config, options);
  graph::Graph graph = detail::traceFunction(
      &session, several > 1 ? inputsOfSeveral(options) : inputsOf(options, 1),
      [&](const Module&, const Inputs& in) { return several > 1 ? advanceSeveral(session, in, options) : advance(session, in, options); }, graph::OutputKind::Result, Where::current(), true);
  passes::CompileOptions compile;
  compile.profile = gpuProfile();
  compile.profile.parallel_units = 132;
  compile.templates = detail::templateSource();
  compile.check_indices = true;
  compile.verify_each = false;
  if (const char* folder = std::getenv("DUMP")) compile.dump_directory = folder;
  return passes::compile(detail::withoutCaptures(std::move(graph)), compile).orThrow();
}

TEST(DecodePlans, show) {
  for (int64_t layers : {std::getenv("DUMP") ? 1 : 2, 24}) {
  const passes::Compiled compiled = step(layers, std::getenv("SAMPLES"), std::getenv("SEVERAL") ? 7 : 1);
  if (layers == 2)
  for (const program::Command& command : compiled.program.commands) {
    std::string name;
    if (const auto* d = std::get_if<program::Dispatch>(&command.action)) name = fmt::format("{} {}x{}x{}", compiled.program[d->kernel].name, d->groups[0], d->groups[1], d->groups[2]);
    fmt::print("L{} {} | {}\n", command.level, command.label, name);
  }
  fmt::print("layers {}: {} dispatches {} levels {} kernels\n", layers, compiled.plan.dispatches, compiled.plan.levels, compiled.plan.distinct_kernels);
  }
}

}  // namespace
}  // namespace lockstep::llm
