// SPDX-License-Identifier: Apache-2.0
// trace(spec): what compile() would run, as values and texts, without a device.
#pragma once

#include <map>
#include <string>

#include "frontend/train/trainer.h"
#include "ir/graph/graph.h"
#include "ir/program/program.h"
#include "ir/support/where.h"

namespace lockstep {

/// A training step or a forward program after every pass.
struct CompiledProgram {
  graph::Graph traced;            ///< as the function made it
  graph::Graph optimized;         ///< the last graph before it became kernels: gradients and optimizer in it, grouped
  program::Program program;       ///< emitted: kernels, buffers with offsets, commands in order
  ProgramFacts facts;             ///< without a device
  graph::ParameterLayout layout;  ///< where parameters lie in the flat states

  /// By file name: "traced.graph", "optimized.graph", "program.program", "program.json", and each kernel as "<name>.wgsl".
  [[nodiscard]] std::map<std::string, std::string> texts() const;
};

/// Of the graph and the kernel pipeline, in their order, and then the choices within passes ("loops", "template:attention", ...): what
/// CompileSpec::disable may name, if the pass is optional.
[[nodiscard]] std::vector<std::string> pass_names();

namespace detail {

struct TraceRequest {
  std::shared_ptr<const Module> model;
  ModelFunction function;
  std::optional<OptimizerSpec> optimizer;  ///< absent: a forward program
  CompileSettings settings;
  program::DeviceProfile profile;
  Where where;
};
CompiledProgram trace(TraceRequest request);

}  // namespace detail

/// Traces and compiles the training step of a spec for a profile; its device and seed are not looked at. The same model may be traced any
/// number of times. Error "trace.dynamic" for dynamic extents, which need data.
template <class Model>
CompiledProgram trace(const CompileSpec<Model>& spec, const program::DeviceProfile& profile = {}, Where where = Where::current()) {
  return detail::trace({.model = detail::makeModel<Model>(spec.make),
                        .function = detail::eraseModel(spec.loss),
                        .optimizer = spec.optimizer,
                        .settings = detail::settingsOf(spec),
                        .profile = profile,
                        .where = where});
}

/// The same for a forward program of a model.
template <class Model>
CompiledProgram trace(const ForwardSpec<Model>& spec, const std::function<std::unique_ptr<Model>()>& make = {},
                      const program::DeviceProfile& profile = {}, Where where = Where::current()) {
  return detail::trace({.model = detail::makeModel<Model>(make),
                        .function = detail::eraseModel(spec.forward),
                        .optimizer = {},
                        .settings = detail::settingsOf(spec),
                        .profile = profile,
                        .where = where});
}

}  // namespace lockstep
