// SPDX-License-Identifier: Apache-2.0
// Every kernel of every sample: its text is read as a module that reads and writes the same from then on. The first reading drops what
// WGSL cannot say (strict floats, origins, memory that needs no zeros).
#include <gtest/gtest.h>

#include "examples/models/samples.h"
#include "frontend/optim/settings.h"
#include "frontend/trace/trace_function.h"
#include "frontend/train/templates.h"
#include "ir/program/profile.h"
#include "passes/pipeline.h"
#include "tests/frontend/wgsl/wgsl_reading.h"

namespace lockstep::wgsl::testing {
namespace {

TEST(SampleKernels, readTheSameAgain) {
  size_t kernels = 0;
  for (const examples::SampleProgram& sample : examples::samplePrograms()) {
    graph::Graph graph =
        lockstep::detail::traceFunction(sample.model.get(), sample.inputs, sample.loss, graph::OutputKind::Loss, Where::current());
    passes::CompileOptions options;
    options.profile = program::findProfile("portable").orThrow();
    options.optimizer = lockstep::detail::optimizerConfig(sample.optimizer, graph.parameters);
    options.templates = lockstep::detail::templateSource();
    const auto compiled = passes::compile(std::move(graph), options).orThrow();
    for (const program::Kernel& kernel : compiled.program.kernels) {
      SCOPED_TRACE(std::string(sample.name) + " " + kernel.name);
      const std::string text = write(std::get<kernel::Module>(kernel.code));
      const kernel::Module module = readGood(text);
      EXPECT_EQ(write(module), text);
      EXPECT_EQ(roundTripProblem(module), "");
      ++kernels;
    }
  }
  EXPECT_GT(kernels, 200u);
}

}  // namespace
}  // namespace lockstep::wgsl::testing
