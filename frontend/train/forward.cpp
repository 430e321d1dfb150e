// SPDX-License-Identifier: Apache-2.0
#include "frontend/train/forward.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <mutex>

#include "frontend/trace/at_call.h"
#include "frontend/trace/trace_function.h"
#include "frontend/train/batch.h"
#include "frontend/train/compile_options.h"
#include "frontend/train/parameters.h"
#include "frontend/train/trainer_impl.h"

namespace lockstep {

using detail::Session;
using graph::OutputKind;

namespace {
// Random numbers of forward programs: a stream apart from those of the training steps.
constexpr uint64_t kForwardStream = uint64_t{1} << 63;
}  // namespace

struct Forward::Impl {
  detail::ForwardRequest request;
  detail::Device device;
  std::shared_ptr<detail::SharedModel> shared;

  mutable detail::Turn turn;                          ///< guards what follows
  std::shared_ptr<const detail::TrainedModel> model;  ///< that the programs were compiled for
  detail::ProgramCache programs;
  ProgramFacts facts;
  uint64_t runs = 0;

  Impl(detail::ForwardRequest wanted, detail::Device on, std::shared_ptr<detail::SharedModel> source)
      : request(std::move(wanted)),
        device(std::move(on)),
        shared(std::move(source)),
        model(shared->get()),
        programs(request.settings.cached_programs),
        facts(detail::programFacts(device, model->layout, nullptr)) {}

  std::shared_ptr<Session> program(const detail::ProgramKey& key) {
    if (auto now = shared->get(); now != model) {
      programs.clear();
      model = std::move(now);
    }
    const auto trace = [this](const std::vector<InputSpec>& concrete) {
      return detail::traceFunction(model->module.get(), concrete, request.forward, OutputKind::Result, request.where,
                                   request.settings.updates_buffers);
    };
    const auto options = [this] {
      passes::CompileOptions options = detail::compileOptions(request.settings);
      if (programs.compiled() == 0) options.dump_directory = request.settings.dump_ir;
      return options;
    };
    const uint64_t before = programs.compiled();
    auto session = programs.get(key, {request.settings.inputs, trace, options, model->states, request.settings.disable});
    if (programs.compiled() != before) facts = detail::programFacts(device, model->layout, session.get());
    return session;
  }
};

Forward::Forward(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Forward::Forward(Forward&&) noexcept = default;
Forward& Forward::operator=(Forward&&) noexcept = default;
Forward::~Forward() = default;

ForwardResult Forward::run(const Batch& batch, RunOptions options, Where where) {
  std::lock_guard turn(impl_->turn);
  return detail::atCall(where, impl_->request.where, [&] {
    const int64_t extent = detail::matchBatch(impl_->request.settings.inputs, batch).extent;
    auto session = impl_->program({extent, options.captures});
    session->checkIndices(batch, extent, fmt::format("run {}", impl_->runs + 1));
    const std::vector<std::byte> arena =
        session->run(session->encode(batch, {detail::randomKey(impl_->request.seed, kForwardStream | ++impl_->runs)}));
    if (std::optional<Diagnostic> wrong = session->wrongIndex(arena, fmt::format("run {}", impl_->runs))) throw Error(std::move(*wrong));
    std::vector<HostTensor> outputs = session->outputs(arena, OutputKind::Result, extent);
    ForwardResult result{outputs.front(), {}, {}};
    if (outputs.size() > 1) result.outputs = Captures(std::move(outputs));
    session->printOutputs(arena, fmt::format("run {}", impl_->runs), impl_->request.settings.print);
    if (options.captures) result.captures = Captures(session->outputs(arena, OutputKind::Capture));
    return result;
  });
}

StepProfile Forward::profile(const Batch& batch, Where where) {
  using Clock = std::chrono::steady_clock;
  const auto since = [](Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); };
  std::lock_guard turn(impl_->turn);
  return detail::atCall(where, impl_->request.where, [&] {
    const int64_t extent = detail::matchBatch(impl_->request.settings.inputs, batch).extent;
    auto session = impl_->program({extent, false});
    StepProfile profile;
    const Clock::time_point begun = Clock::now();
    session->checkIndices(batch, extent, fmt::format("run {}", impl_->runs + 1));
    const auto input = session->encode(batch, {detail::randomKey(impl_->request.seed, kForwardStream | ++impl_->runs)});
    profile.prepare_seconds = since(begun);
    const Clock::time_point submitted = Clock::now();
    profile.commands = session->time(input);
    profile.run_seconds = since(submitted);
    profile.step = impl_->runs;
    profile.input_bytes = session->inputBytes();
    profile.output_bytes = session->outputBytes();
    return profile;
  });
}

ProgramFacts Forward::facts() const {
  std::lock_guard turn(impl_->turn);
  return impl_->facts;
}

RunFacts Forward::run_facts() const {
  std::lock_guard turn(impl_->turn);
  return detail::runFacts(impl_->programs);
}

Forward detail::makeForward(ForwardRequest request, const Device& device, const std::shared_ptr<SharedModel>& model) {
  checkFunction(model->get()->module.get(), request.settings.inputs, request.forward, request.where);
  const bool later = std::ranges::any_of(request.settings.inputs, hasDynamicExtent);
  auto made = std::make_unique<Forward::Impl>(std::move(request), device, model);
  if (!later) (void)made->program({});
  return Forward(std::move(made));
}

Forward Trainer::attachForward(detail::ForwardRequest request) const {
  const Where where = request.where;
  return detail::atCall(where, [&] {
    request.seed = impl_->seed;
    detail::CompileSettings& settings = request.settings;
    const detail::CompileSettings& own = impl_->settings;
    settings.print = own.print;
    settings.check_indices = settings.check_indices && own.check_indices;
    if (!settings.has_own_precision) settings.precision = own.precision;
    settings.disable.insert(settings.disable.begin(), own.disable.begin(), own.disable.end());
    if (settings.use_ema) detail::requireAverages(*impl_->shared->get());
    return detail::makeForward(std::move(request), impl_->device, impl_->shared);
  });
}

}  // namespace lockstep
