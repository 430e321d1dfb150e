// SPDX-License-Identifier: Apache-2.0
#include "frontend/train/trainer.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <random>
#include <utility>

#include "frontend/io/safetensors.h"
#include "frontend/optim/checks.h"
#include "frontend/optim/settings.h"
#include "frontend/trace/at_call.h"
#include "frontend/trace/throw_error.h"
#include "frontend/trace/trace_function.h"
#include "frontend/train/batch.h"
#include "frontend/train/checkpoint_settings.h"
#include "frontend/train/compile_options.h"
#include "frontend/train/micro_batches.h"
#include "frontend/train/model_buffers.h"
#include "frontend/train/parameters.h"
#include "frontend/train/trainer_impl.h"
#include "passes/graph/optimizer_config.h"

namespace lockstep {

using detail::reject;
using detail::Session;
using graph::OutputKind;

namespace {

uint64_t randomSeed() {
  std::random_device device;
  return device();  // 32 bits, so that a report of it stays readable
}

/// A smaller loss scale may help.
bool isOverflow(const StepResult& result) {
  return result.loss_scale.value_or(1) > 1 && std::isfinite(result.loss) && !std::isfinite(result.grad_norm.value_or(0));
}

bool isDeviceFailure(ExitCode code) { return code == ExitCode::OutOfMemory || code == ExitCode::DeviceLost; }

StepFailure failureOf(const Failure& failure) {
  FailureKind kind = FailureKind::Device;
  if (failure.exit_code == ExitCode::DeviceLost) kind = FailureKind::DeviceLost;
  if (failure.exit_code == ExitCode::OutOfMemory) kind = FailureKind::OutOfMemory;
  return {.kind = kind, .diagnostics = failure.diagnostics, .origin = {}, .exit_code = failure.exit_code};
}

}  // namespace

Trainer::Impl::Impl(detail::CompileRequest request)
    : loss(std::move(request.loss)),
      settings(std::move(request.settings)),
      where(request.where),
      device(detail::openChosenDevice(settings.device)),
      optimizer(std::move(request.optimizer)),
      first_schedule(optimizer.lr),
      seed(settings.seed ? *settings.seed : randomSeed()),
      dump(settings.dump_ir, settings.dump_steps * settings.accumulate),
      programs(settings.cached_programs) {
  auto model = makeModel(std::move(request.model), optimizer);
  shared = std::make_shared<detail::SharedModel>(model);
  if (isDynamic()) {
    facts = detail::programFacts(device, model->layout, nullptr);
  } else {
    (void)program({});
  }
  detail::initialiseParameters(*model, seed);
}

bool Trainer::Impl::isDynamic() const { return std::ranges::any_of(settings.inputs, detail::hasDynamicExtent); }

std::unique_lock<detail::Turn> Trainer::Impl::enter() const {
  if (turn.heldHere()) {
    reject("trainer.busy", "a trainer was called by the batch function of its own step",
           "prepare there only data; getters such as step_count() may be called");
  }
  return std::unique_lock(turn);
}

std::unique_lock<detail::Turn> Trainer::Impl::look() const {
  return turn.heldHere() ? std::unique_lock(turn, std::defer_lock) : std::unique_lock(turn);
}

std::shared_ptr<const detail::TrainedModel> Trainer::Impl::makeModel(std::shared_ptr<const Module> module,
                                                                     const OptimizerSpec& with) const {
  auto model = std::make_shared<detail::TrainedModel>();
  model->parameters = detail::parameterInfos(*module);
  model->layout = graph::layoutParameters(model->parameters);
  model->config = detail::optimizerConfig(with, model->parameters, settings.accumulate, settings.precision);
  model->form = detail::checkpointForm(model->parameters, model->config);
  model->states = std::make_shared<detail::States>(device);
  // The parameters are there before the first program is.
  const detail::StateInfo flat{{DType::F32, Shape{model->layout.total}}, 0, true};
  if (model->layout.total > 0) model->states->declare(std::string(passes::kParameterState), flat);
  if (model->layout.total > 0 && with.ema_decay > 0) model->states->declare(std::string(passes::kAverageState), flat);
  detail::declareBuffers(*module, *model->states);
  model->module = std::move(module);
  return model;
}

detail::ProgramSource Trainer::Impl::sourceOf(const detail::TrainedModel& model) const {
  const auto trace = [this, &model](const std::vector<InputSpec>& concrete) {
    return detail::traceFunction(model.module.get(), concrete, loss, OutputKind::Loss, where);
  };
  const auto options = [this, &model] {
    passes::CompileOptions options = detail::compileOptions(settings);
    options.optimizer = model.config;
    options.rate = rateFormula(optimizer.lr);
    options.checkpoint = detail::checkpointEntries(model.form, optimizer.lr);
    if (programs.compiled() == 0) options.dump_directory = dump.folder();
    return options;
  };
  return {settings.inputs, trace, options, model.states, settings.disable};
}

std::shared_ptr<Session> Trainer::Impl::program(const detail::ProgramKey& key) {
  const auto model = shared->get();
  const uint64_t before = programs.compiled();
  auto session = programs.get(key, sourceOf(*model));
  if (programs.compiled() != before) facts = detail::programFacts(device, model->layout, session.get());
  return session;
}

detail::RunNumbers Trainer::Impl::numbers(uint64_t t, int64_t run) const {
  return {.step = t,
          .rate = detail::checkedRate(optimizer.lr, static_cast<int64_t>(t)),
          .last = run + 1 == settings.accumulate,
          .seed = seed,
          .run = (t - 1) * static_cast<uint64_t>(settings.accumulate) + static_cast<uint64_t>(run) + 1};
}

uint64_t Trainer::Impl::enqueue(size_t count, const std::function<Batch(size_t)>& batch, const StepOptions& options) {
  OpenTicket ticket;
  ticket.model = shared->get();
  ticket.first_step = step + 1;
  ticket.captures = options.captures;
  for (size_t i = 0; i < count; ++i) ticket.rates.push_back(rateAt(optimizer.lr, static_cast<int64_t>(ticket.first_step + i)));
  for (size_t i = 0; i < count; ++i) {
    const Batch whole = batch(i);
    const std::vector<Batch> runs = detail::microBatches(whole, settings.inputs, settings.accumulate);
    const int64_t extent = detail::matchBatch(settings.inputs, runs.front()).extent;
    if (i == 0) {
      ticket.extent = extent;
      try {
        ticket.session = program({extent, options.captures});
      } catch (const Error& error) {
        if (!isDeviceFailure(error.exitCode())) throw;
        ticket.failure = Failure{error.diagnostics(), error.exitCode()};
        ticket.inputs.resize(count * runs.size());
        break;
      }
    } else if (extent != ticket.extent) {
      reject("batch.extent", fmt::format("the dynamic extent is {} in the first step and {} in a later one", ticket.extent, extent),
             "steps of one call run the same program; make one call an extent");
    }
    ticket.session->checkIndices(whole, extent, fmt::format("step {}", step + i + 1));
    for (size_t run = 0; run < runs.size(); ++run) {
      const detail::StepValues values = ticket.session->stepValues(numbers(step + i + 1, static_cast<int64_t>(run)));
      ticket.inputs.push_back(ticket.session->encode(runs[run], values));
      if (dump.wants(ticket.session)) dumpRun(ticket.session, runs[run], values, ticket.inputs.back());
    }
  }
  if (!ticket.failure) {
    // Whatever ends it, a submission that came to nothing leaves the parameters as they were.
    const uint64_t before = ticket.session->statistics().submissions;
    const bool was_uncertain = std::exchange(uncertain, true);
    const auto settle = [&] { uncertain = was_uncertain || ticket.session->statistics().submissions != before; };
    try {
      Result<Ticket> submitted = ticket.session->submit(ticket.inputs);
      if (submitted) {
        uncertain = was_uncertain;
        ticket.ticket = *submitted;
        ticket.revision = ++revision;
        step += count;
      } else {
        settle();
        ticket.failure = submitted.failure();
      }
    } catch (...) {
      settle();
      throw;
    }
  }
  open.emplace(++last_ticket, std::move(ticket));
  return last_ticket;
}

std::vector<StepResult> Trainer::Impl::wait(uint64_t id) {
  auto found = open.find(id);
  if (found == open.end())
    reject("steps.ticket", "the ticket is unknown or was waited for already",
           "wait once for each ticket that enqueue() of this trainer gave");
  OpenTicket ticket = std::move(found->second);
  open.erase(found);
  const auto runs = static_cast<size_t>(settings.accumulate);
  std::vector<StepResult> results(ticket.inputs.size() / runs);
  for (size_t i = 0; i < results.size(); ++i) {
    results[i].step = ticket.first_step + i;
    results[i].lr = ticket.rates[i];
  }

  std::vector<std::vector<std::byte>> arenas;
  if (!ticket.failure) {
    auto waited = ticket.session->wait(ticket.ticket);
    if (waited) {
      arenas = std::move(*waited);
    } else {
      ticket.failure = waited.failure();
    }
  }
  if (ticket.failure) {
    for (StepResult& result : results) {
      result.loss = std::numeric_limits<float>::quiet_NaN();
      result.failure = failureOf(*ticket.failure);
    }
    return results;
  }
  for (size_t i = 0; i < results.size(); ++i) {
    StepResult& result = results[i];
    const auto own = std::span(arenas).subspan(i * runs, runs);
    double sum = 0;
    for (const std::vector<std::byte>& arena : own) {
      sum += static_cast<double>(ticket.session->outputs(arena, OutputKind::Loss).front().floats().front());
      ticket.session->printOutputs(arena, fmt::format("step {}", result.step), settings.print);
    }
    result.loss = static_cast<float>(sum / static_cast<double>(runs));
    result.grad_norm = ticket.session->gradientNorm(own.back());
    result.loss_scale = ticket.session->lossScale(own.back());
    result.overflowed = isOverflow(result);
    if (ticket.captures) result.captures = Captures(ticket.session->outputs(own.back(), OutputKind::Capture));
    for (size_t run = 0; run < runs && !result.failure; ++run) {
      const std::string when = runs == 1 ? fmt::format("step {}", result.step) : fmt::format("run {} of step {}", run + 1, result.step);
      std::optional<Diagnostic> wrong = ticket.session->wrongIndex(own[run], when);
      if (!wrong) continue;
      result.loss = std::numeric_limits<float>::quiet_NaN();
      result.failure = StepFailure{FailureKind::Index, {std::move(*wrong)}, {}, ExitCode::BadInput};
    }
  }
  const auto isFinite = [](const StepResult& result) {
    return std::isfinite(result.loss) && (result.overflowed || std::isfinite(result.grad_norm.value_or(0)));
  };
  const auto isBad = [&](const StepResult& result) { return !result.failure && !isFinite(result); };
  const auto first = std::ranges::find_if(results, isBad);
  for (auto result = first; result != results.end(); ++result) {
    if (!isBad(*result)) continue;
    // Steps after the first one that is not finite mostly fail because of it.
    if (result == first && settings.find_non_finite) {
      const bool unchanged = ticket.revision == revision && skipsNonFinite(*ticket.model) && std::none_of(first, results.end(), isFinite);
      const auto at = static_cast<size_t>(first - results.begin());
      result->failure = explainNonFinite(ticket, *result, std::span(ticket.inputs).subspan(at * runs, runs), !unchanged);
    } else {
      result->failure = StepFailure{FailureKind::NonFinite, {detail::describeNonFinite(*result, {})}, {}};
    }
  }
  return results;
}

bool Trainer::Impl::skipsNonFinite(const detail::TrainedModel& model) const {
  // Runs of a step whose own loss is finite update buffers.
  return model.config.skip_non_finite && (settings.accumulate == 1 || model.module->buffers().empty());
}

StepFailure Trainer::Impl::explainNonFinite(const OpenTicket& ticket, const StepResult& result,
                                            std::span<const std::vector<std::byte>> runs, bool later) {
  StepFailure failure{.kind = FailureKind::NonFinite, .diagnostics = {}, .origin = {}};
  try {
    if (diagnosis.model != ticket.model || diagnosis.extent != ticket.extent) {
      diagnosis = {};  // the memory of the one before, before more is asked for
      const std::vector<InputSpec> concrete = detail::withExtent(settings.inputs, ticket.extent);
      // Of a program for several extents the surplus would be counted, too.
      const graph::Graph traced =
          ticket.session->isShared() ? detail::withoutCaptures(sourceOf(*ticket.model).trace(concrete)) : ticket.session->traced();
      auto probe = std::make_unique<detail::NonFiniteProbe>(traced, detail::compileOptions(settings), ticket.model->states, concrete);
      diagnosis = {ticket.model, ticket.extent, std::move(probe)};
    }
    for (const std::vector<std::byte>& run : runs) {
      if (!failure.origin) failure.origin = diagnosis.probe->find(ticket.session->decode(run, ticket.extent));
    }
    failure.diagnostics.push_back(detail::describeNonFinite(result, failure.origin));
    std::vector<Note>& notes = failure.diagnostics.back().notes;
    if (later) notes.push_back({"it was looked for with states that have changed since the step, so it may have begun elsewhere", {}});
    if (!failure.origin && !later && std::isfinite(result.loss))
      notes.push_back({"every value is finite: the squares of the gradients are too large to be summed", {}});
  } catch (const Error& error) {
    // The search may need more memory than there is; the step's own failure stays the news.
    failure.diagnostics.push_back(detail::describeNonFinite(result, {}));
    failure.diagnostics.back().notes.push_back({fmt::format("where that began was not found: {}", error.what()), {}});
  }
  return failure;
}

void Trainer::Impl::dumpRun(const std::shared_ptr<Session>& session, const Batch& batch, const detail::StepValues& values,
                            const std::vector<std::byte>& input) {
  if (!dump.begun()) {
    // What a replay of any stage needs: weights, states, batch and scalars.
    auto model = shared->get();
    io::TensorFile inputs;
    const ParameterValues parameters = detail::splitParameters(model->layout, model->states->readFloats(passes::kParameterState));
    for (const graph::ParameterLayout::Slot& slot : model->layout.slots)
      inputs.tensors.emplace(slot.name, io::Array::fromFloats(slot.type.shape.extents(), parameters.at(slot.name)));
    for (const auto& [name, info] : model->states->infos()) inputs.tensors.emplace(name, model->states->read(name));
    const detail::MatchedBatch matched = detail::matchBatch(settings.inputs, batch);
    for (size_t i = 0; i < settings.inputs.size(); ++i)
      inputs.tensors.emplace(settings.inputs[i].name, detail::toArray(*matched.items[i], settings.inputs[i].type.dtype));
    for (const detail::StepValue& value : values) inputs.tensors.emplace(std::string(value.name), detail::toArray(value));
    dump.begin(session, checkpoint({}), inputs);
  }
  dump.add(input);
}

Trainer::Trainer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Trainer::Trainer(Trainer&&) noexcept = default;
Trainer& Trainer::operator=(Trainer&&) noexcept = default;
Trainer::~Trainer() = default;

StepResult Trainer::step(const Batch& batch, StepOptions options, Where where) {
  return std::move(steps(1, [&](size_t) { return batch; }, options, where).front());
}

std::vector<StepResult> Trainer::steps(size_t count, const std::function<Batch(size_t)>& batch, StepOptions options, Where where) {
  return wait(enqueue(count, batch, options, where), where);
}

uint64_t Trainer::enqueue(size_t count, const std::function<Batch(size_t)>& batch, StepOptions options, Where where) {
  return detail::atCall(where, impl_->where, [&] {
    if (count == 0) reject("steps.count", "0 steps were asked for", "ask for 1 or more");
    auto turn = impl_->enter();
    return impl_->enqueue(count, batch, options);
  });
}

std::vector<StepResult> Trainer::wait(uint64_t ticket, Where where) {
  return detail::atCall(where, [&] {
    auto turn = impl_->enter();
    return impl_->wait(ticket);
  });
}

StepProfile Trainer::profile(const Batch& batch, Where where) {
  return detail::atCall(where, impl_->where, [&] {
    auto turn = impl_->enter();
    return impl_->profile(batch);
  });
}

StepProfile Trainer::Impl::profile(const Batch& batch) {
  using Clock = std::chrono::steady_clock;
  const auto since = [](Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); };
  const std::vector<Batch> runs = detail::microBatches(batch, settings.inputs, settings.accumulate);
  const int64_t extent = detail::matchBatch(settings.inputs, runs.front()).extent;
  auto session = program({extent, false});
  StepProfile profile;
  const Clock::time_point begun = Clock::now();
  session->checkIndices(batch, extent, fmt::format("step {}", step + 1));
  std::vector<std::vector<std::byte>> encoded;
  for (size_t run = 0; run < runs.size(); ++run) {
    const detail::StepValues values = session->stepValues(numbers(step + 1, static_cast<int64_t>(run)));
    encoded.push_back(session->encode(runs[run], values));
    if (dump.wants(session)) dumpRun(session, runs[run], values, encoded.back());
  }
  profile.prepare_seconds = since(begun);
  profile.input_bytes = session->inputBytes() * runs.size();
  profile.output_bytes = session->outputBytes() * runs.size();
  const Clock::time_point submitted = Clock::now();
  const bool was_uncertain = std::exchange(uncertain, true);
  for (const std::vector<std::byte>& input : encoded) {
    const bool first = profile.commands.empty();
    const double start = first ? 0 : profile.commands.back().start + profile.commands.back().seconds;
    const uint32_t level = first ? 0 : profile.commands.back().level + 1;
    for (ProfiledCommand& command : session->time(input)) {
      command.start += start;
      command.level += level;
      profile.commands.push_back(std::move(command));
    }
  }
  profile.run_seconds = since(submitted);
  uncertain = was_uncertain;
  profile.step = ++step;
  ++revision;
  return profile;
}

Trainer detail::compile(CompileRequest request) {
  const Where where = request.where;
  return atCall(where, [&] {
    checkFunction(request.model.get(), request.settings.inputs, request.loss, where);
    if (request.settings.accumulate < 1) {
      reject("compile.accumulate", fmt::format("accumulate is {}, but must be at least 1", request.settings.accumulate),
             "1 is a step of one batch, which is the default");
    }
    return Trainer(std::make_unique<Trainer::Impl>(std::move(request)));
  });
}

}  // namespace lockstep
