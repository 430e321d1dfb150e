// SPDX-License-Identifier: Apache-2.0
#include "frontend/train/compiled.h"

#include <fmt/format.h>

#include <algorithm>

#include "frontend/optim/settings.h"
#include "frontend/trace/at_call.h"
#include "frontend/trace/trace_function.h"
#include "frontend/train/batch.h"
#include "frontend/train/checkpoint_settings.h"
#include "frontend/train/compile_options.h"
#include "frontend/train/describe_program.h"
#include "frontend/train/program_json.h"
#include "frontend/train/templates.h"
#include "frontend/wgsl/wgsl.h"
#include "passes/kernel/kernel_pipeline.h"
#include "passes/pipeline.h"

namespace lockstep {

std::map<std::string, std::string> CompiledProgram::texts() const {
  std::map<std::string, std::string> texts{{"traced.graph", graph::print(traced)},
                                           {"optimized.graph", graph::print(optimized)},
                                           {"program.program", program::print(program)},
                                           {"program.json", programJson(program)}};
  for (const program::Kernel& kernel : program.kernels) {
    texts.emplace(kernel.name + ".wgsl", wgsl::write(std::get<kernel::Module>(kernel.code)));
  }
  return texts;
}

std::vector<std::string> pass_names() {
  std::vector<std::string> names;
  for (const passes::PassInfo& pass : passes::listPasses()) names.emplace_back(pass.name);
  for (const passes::KernelPassInfo& pass : passes::listKernelPasses()) names.emplace_back(pass.name);
  for (const std::string_view name : passes::namesToDisable()) {
    if (std::ranges::find(names, name) == names.end()) names.emplace_back(name);
  }
  return names;
}

namespace detail {

namespace {

/// A profile is a plain struct, so anything may be in it. Its reader knows what may.
void checkProfile(const program::DeviceProfile& profile) {
  const Result<program::DeviceProfile> read = program::parseProfile(program::print(profile), profile.name);
  if (read.ok()) return;
  throw Error({.code = "profile.value",
               .message = fmt::format("profile '{}': {}", profile.name, read.diagnostics().front().message),
               .where = {},
               .notes = {},
               .remedy = "begin with program::findProfile(), and change the limits that differ"});
}

CompiledProgram compileTraced(TraceRequest request) {
  const bool training = request.optimizer.has_value();
  checkProfile(request.profile);
  CompileSettings& settings = request.settings;
  checkFunction(request.model.get(), settings.inputs, request.function, request.where);
  if (std::ranges::any_of(settings.inputs, hasDynamicExtent)) {
    throw Error({.code = "trace.dynamic",
                 .message = "an input has a dynamic extent, but there is no data that tells it",
                 .where = toLocation(request.where),
                 .notes = {},
                 .remedy = "declare the extents that are to be compiled"});
  }
  graph::Graph traced = traceFunction(request.model.get(), settings.inputs, request.function,
                                      training ? graph::OutputKind::Loss : graph::OutputKind::Result, request.where);
  passes::CompileOptions options = compileOptions(settings);
  options.profile = profileFor(request.profile, options);
  options.templates = templateSource();
  options.dump_directory = settings.dump_ir;
  if (training) {
    options.optimizer = optimizerConfig(*request.optimizer, traced.parameters, settings.accumulate, settings.precision);
    options.rate = rateFormula(request.optimizer->lr);
    options.checkpoint = checkpointEntries(checkpointForm(traced.parameters, *options.optimizer), request.optimizer->lr);
  }
  graph::ParameterLayout layout = graph::layoutParameters(traced.parameters);
  passes::Compiled compiled = passes::compile(std::move(traced), options).orThrow();
  ProgramFacts facts = programFacts(layout, compiled.plan, compiled.passes);
  facts.temporaries = temporariesOf(compiled.program);
  facts.outline = outlineOf(compiled.traced);
  return {std::move(compiled.traced), std::move(compiled.optimized), std::move(compiled.program), std::move(facts), std::move(layout)};
}

}  // namespace

CompiledProgram trace(TraceRequest request) {
  const Where where = request.where;
  return atCall(where, [&] { return compileTraced(std::move(request)); });
}

}  // namespace detail

}  // namespace lockstep
