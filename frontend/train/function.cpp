// SPDX-License-Identifier: Apache-2.0
#include "frontend/train/function.h"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>

#include "frontend/trace/at_call.h"
#include "frontend/trace/trace.h"
#include "frontend/trace/trace_function.h"
#include "frontend/train/batch.h"
#include "frontend/train/program_cache.h"
#include "frontend/train/trainer_impl.h"

namespace lockstep {

using detail::Session;
using graph::OutputKind;

struct Function::Impl {
  FunctionSpec spec;
  Where where;
  detail::Device device;
  std::shared_ptr<detail::States> states;
  Module no_parameters{};

  mutable detail::Turn turn;  ///< guards what follows
  detail::ProgramCache programs;
  ProgramFacts facts;
  uint64_t calls = 0;

  Impl(FunctionSpec wanted, Where place)
      : spec(std::move(wanted)),
        where(place),
        device(detail::openChosenDevice(spec.device)),
        states(std::make_shared<detail::States>(device)),
        programs(spec.cached_programs),
        facts(detail::programFacts(device, {}, nullptr)) {
    detail::checkFunction(&no_parameters, spec.inputs, erased(), where);
    for (const std::string& name : spec.gradients) checkGradient(name);
    if (std::ranges::none_of(spec.inputs, detail::hasDynamicExtent)) (void)program(0);
  }

  [[nodiscard]] detail::ModelFunction erased() const {
    if (!spec.body) return {};
    return [this](const Module&, const Inputs& in) { return spec.body(in); };
  }

  void checkGradient(const std::string& name) const {
    auto input = std::ranges::find(spec.inputs, name, &InputSpec::name);
    const bool known = input != spec.inputs.end();
    if (known && input->type.dtype == DType::F32) return;
    throw Error({.code = known ? "grad.C4" : "grad.C3",
                 .message = known ? fmt::format("input '{}' is {}, which has no gradient", name, toString(input->type))
                                  : fmt::format("there is no input '{}' to differentiate by", name),
                 .where = detail::toLocation(where),
                 .notes = {},
                 .remedy = "name f32 inputs of the function"});
  }

  std::shared_ptr<Session> program(int64_t extent) {
    const auto trace = [this](const std::vector<InputSpec>& concrete) {
      const OutputKind kind = spec.gradients.empty() ? OutputKind::Result : OutputKind::Loss;
      return detail::traceFunction(&no_parameters, concrete, erased(), kind, where);
    };
    const auto options = [this] {
      passes::CompileOptions options;
      options.disabled = spec.disable;
      options.check_indices = spec.check_indices;
      options.keep_gradients = !spec.gradients.empty();
      options.wrt = spec.gradients;
      if (programs.compiled() == 0) options.dump_directory = spec.dump_ir;
      return options;
    };
    const uint64_t before = programs.compiled();
    auto session = programs.get({extent, true}, {spec.inputs, trace, options, states, spec.disable});
    if (programs.compiled() != before) facts = detail::programFacts(device, {}, session.get());
    return session;
  }
};

Function::Function(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Function::Function(Function&&) noexcept = default;
Function& Function::operator=(Function&&) noexcept = default;
Function::~Function() = default;

FunctionResult Function::operator()(const Batch& batch, Where where) {
  std::lock_guard turn(impl_->turn);
  return detail::atCall(where, impl_->where, [&] {
    const int64_t extent = detail::matchBatch(impl_->spec.inputs, batch).extent;
    auto session = impl_->program(extent);
    session->checkIndices(batch, extent, fmt::format("call {}", impl_->calls + 1));
    const std::vector<std::byte> arena = session->run(session->encode(batch, {detail::randomKey(impl_->spec.seed, ++impl_->calls)}));
    session->printOutputs(arena, fmt::format("call {}", impl_->calls), impl_->spec.print);
    if (std::optional<Diagnostic> wrong = session->wrongIndex(arena, fmt::format("call {}", impl_->calls))) throw Error(std::move(*wrong));
    const OutputKind kind = impl_->spec.gradients.empty() ? OutputKind::Result : OutputKind::Loss;
    FunctionResult result{
        std::move(session->outputs(arena, kind, extent).front()), {}, Captures(session->outputs(arena, OutputKind::Capture))};
    for (HostTensor& gradient : session->outputs(arena, OutputKind::Gradient, extent)) {
      std::string name = gradient.name();
      result.gradients.emplace(std::move(name), std::move(gradient));
    }
    return result;
  });
}

ProgramFacts Function::facts() const {
  std::lock_guard turn(impl_->turn);
  return impl_->facts;
}

RunFacts Function::run_facts() const {
  std::lock_guard turn(impl_->turn);
  return detail::runFacts(impl_->programs);
}

Function function(FunctionSpec spec, Where where) {
  return detail::atCall(where, [&] { return Function(std::make_unique<Function::Impl>(std::move(spec), where)); });
}

}  // namespace lockstep
