// SPDX-License-Identifier: Apache-2.0
#include "frontend/trainer.h"

#include <fmt/format.h>

#include <cmath>
#include <random>

#include "frontend/io/safetensors.h"
#include "frontend/optimizer_settings.h"
#include "frontend/parameters.h"
#include "frontend/session.h"
#include "frontend/trace.h"
#include "frontend/tracing.h"

namespace lockstep {

using detail::Session;
using graph::OutputKind;

namespace {

ProgramFacts factsOf(const Session& session, const graph::ParameterLayout& layout) {
  const passes::PlanSummary& plan = session.plan();
  const ChosenDevice& chosen = session.device().chosen;
  ProgramFacts facts{.device = chosen.info.id,
                     .device_name = chosen.info.name,
                     .device_reason = chosen.reason,
                     .dispatches = plan.dispatches,
                     .levels = plan.levels,
                     .distinct_kernels = plan.distinct_kernels,
                     .planned_bytes = plan.total_bytes,
                     .workspace_bytes = plan.workspace_bytes,
                     .unpooled_bytes = plan.unpooled_bytes,
                     .parameters = 0,
                     .passes = {}};
  for (const graph::ParameterLayout::Slot& slot : layout.slots) facts.parameters += slot.size;
  for (const passes::PassRecord& record : session.passRecords()) {
    facts.passes.push_back(
        fmt::format("{} {:.3f} s: {}{}", record.name, record.seconds, record.statistics, record.changed ? "" : " (unchanged)"));
  }
  return facts;
}

io::Array toArray(const detail::StepValue& value) {
  io::ElementType type = value.type.dtype == graph::DType::F32 ? io::ElementType::F32 : io::ElementType::U32;
  std::span<const std::byte> bytes = std::as_bytes(std::span(value.words));
  return {type, value.type.shape.extents(), {bytes.begin(), bytes.end()}};
}

uint64_t randomSeed() {
  std::random_device device;
  return device();  // 32 bits, so that a report of it stays readable
}

}  // namespace

struct Trainer::Impl {
  std::shared_ptr<const Module> model;
  graph::ParameterLayout layout;
  OptimizerSpec optimizer;
  passes::OptimizerConfig config;
  uint64_t seed = 0;
  uint64_t step = 0;
  std::string dump_directory;  ///< cleared once the inputs of the first step are written
  std::vector<std::string> disabled;
  Session session;
  ProgramFacts facts;
  std::map<uint64_t, uint64_t> first_steps;  ///< of each ticket that was not waited for

  Impl(detail::CompileRequest request, graph::Graph traced, uint64_t chosen_seed)
      : model(std::move(request.model)),
        layout(graph::layoutParameters(traced.parameters)),
        optimizer(std::move(request.optimizer)),
        config(detail::optimizerConfig(optimizer, traced.parameters)),
        seed(chosen_seed),
        dump_directory(request.dump_ir),
        disabled(request.disable),
        session(std::move(traced),
                {.profile = {},
                 .optimizer = config,
                 .parameter_state = std::string(passes::kParameterState),
                 .keep_gradients = false,
                 .wrt = {},
                 .templates = nullptr,
                 .disabled = std::move(request.disable),
                 .verify_each = true,
                 .dump_directory = std::move(request.dump_ir),
                 .memory_limit = request.memory_limit},
                detail::openChosenDevice(request.device), std::move(request.inputs)),
        facts(factsOf(session, layout)) {
    initialise();
  }

  void initialise() {
    std::vector<float> flat(static_cast<size_t>(layout.total), 0.0f);
    std::vector<NamedParameter> parameters = model->parameters();
    for (uint32_t i = 0; i < parameters.size(); ++i) {
      std::vector<float> values = parameters[i].parameter->initial(seed, i);
      std::copy(values.begin(), values.end(), flat.begin() + layout.slots[i].offset);
    }
    session.writeState(passes::kParameterState, flat);
  }

  /// Computed here in f64, once for each step, when the call is made.
  [[nodiscard]] detail::StepValues scalars(uint64_t t) const {
    auto values = passes::stepScalars(config, rateAt(optimizer.lr, static_cast<int64_t>(t)), t);
    return {detail::stepValue(passes::kScalarsInput, values), detail::randomKey(seed, t)};
  }

  /// The states that make up a training run; the program has others that only live within a step.
  [[nodiscard]] std::vector<std::string> trainedStates() const {
    std::vector<std::string> names;
    for (std::string_view name : {passes::kParameterState, passes::kFirstMomentState, passes::kSecondMomentState}) {
      if (session.hasState(name)) names.emplace_back(name);
    }
    return names;
  }

  [[nodiscard]] ParameterValues download() const { return detail::splitParameters(layout, session.readState(passes::kParameterState)); }

  /// What a replay of any dumped stage needs: weights, states, batch and scalars of the first step.
  void dumpInputs(const Batch& batch, const detail::StepValues& step_values) {
    io::TensorFile file;
    for (const graph::ParameterLayout::Slot& slot : layout.slots) {
      file.tensors.emplace(slot.name, io::Array::fromFloats(slot.type.shape.extents(), download().at(slot.name)));
    }
    for (const auto& [name, memory] : session.state()) {
      std::vector<float> values = session.readState(name);
      file.tensors.emplace(name, io::Array::fromFloats({static_cast<int64_t>(values.size())}, values));
    }
    for (const BatchItem& item : batch) file.tensors.emplace(std::string(item.name), detail::toArray(item));
    for (const detail::StepValue& value : step_values) file.tensors.emplace(std::string(value.name), toArray(value));
    (void)io::writeSafetensors(std::filesystem::path(dump_directory) / "inputs.safetensors", file).orThrow();
    dump_directory.clear();
  }

  std::vector<std::byte> encode(const Batch& batch, uint64_t t) {
    detail::StepValues values = scalars(t);
    std::vector<std::byte> bytes = session.encode(batch, values);
    if (!dump_directory.empty()) dumpInputs(batch, values);
    return bytes;
  }
};

Trainer::Trainer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Trainer::Trainer(Trainer&&) noexcept = default;
Trainer& Trainer::operator=(Trainer&&) noexcept = default;
Trainer::~Trainer() = default;

StepResult Trainer::step(const Batch& batch) {
  return std::move(steps(1, [&](size_t) { return batch; }).front());
}

std::vector<StepResult> Trainer::steps(size_t count, const std::function<Batch(size_t)>& batch) { return wait(enqueue(count, batch)); }

uint64_t Trainer::enqueue(size_t count, const std::function<Batch(size_t)>& batch) {
  if (count == 0) throw Error({.code = "steps.count", .message = "0 steps were asked for", .where = {}, .notes = {}, .remedy = {}});
  std::vector<std::vector<std::byte>> inputs;
  inputs.reserve(count);
  for (size_t i = 0; i < count; ++i) inputs.push_back(impl_->encode(batch(i), impl_->step + i + 1));
  uint64_t ticket = impl_->session.submit(inputs);
  impl_->first_steps.emplace(ticket, impl_->step + 1);
  impl_->step += count;
  return ticket;
}

std::vector<StepResult> Trainer::wait(uint64_t ticket) {
  auto found = impl_->first_steps.find(ticket);
  if (found == impl_->first_steps.end()) {
    throw Error(
        {.code = "steps.ticket", .message = "the ticket is unknown or was waited for already", .where = {}, .notes = {}, .remedy = {}});
  }
  uint64_t step = found->second;
  impl_->first_steps.erase(found);
  std::vector<StepResult> results;
  for (const std::vector<std::byte>& arena : impl_->session.wait(ticket)) {
    float loss = impl_->session.outputs(arena, OutputKind::Loss).front().floats().front();
    results.push_back({step++, loss, Captures(impl_->session.outputs(arena, OutputKind::Capture))});
  }
  return results;
}

std::vector<std::pair<std::string, double>> Trainer::profile(const Batch& batch) {
  auto times = impl_->session.time(impl_->encode(batch, impl_->step + 1));
  ++impl_->step;
  return times;
}

ParameterValues Trainer::download() const { return impl_->download(); }

void Trainer::upload(const ParameterValues& values) {
  impl_->session.writeState(passes::kParameterState, detail::joinParameters(impl_->layout, values));
}

void Trainer::reset(ResetOptions options) {
  if (options.parameters) impl_->initialise();
  if (!options.optimizer) return;
  for (std::string_view name : {passes::kFirstMomentState, passes::kSecondMomentState}) {
    if (impl_->session.hasState(name)) impl_->session.fillState(name);
  }
  impl_->step = 0;
}

io::TensorFile Trainer::checkpoint() const {
  detail::TrainingState state{
      .optimizer = std::string(toString(impl_->optimizer.name)), .step = impl_->step, .seed = impl_->seed, .states = {}};
  for (const std::string& name : impl_->trainedStates()) state.states.emplace(name, impl_->session.readState(name));
  return detail::formatCheckpoint(impl_->layout, state);
}

void Trainer::restore(const io::TensorFile& file) {
  detail::TrainingState state = detail::readCheckpoint(impl_->layout, toString(impl_->optimizer.name), impl_->trainedStates(), file);
  for (const auto& [name, values] : state.states) impl_->session.writeState(name, values);
  impl_->step = state.step;
  impl_->seed = state.seed;
}

void Trainer::save(const std::filesystem::path& path) const { (void)io::writeSafetensors(path, checkpoint()).orThrow(); }
void Trainer::load(const std::filesystem::path& path) { restore(io::readSafetensors(path).orThrow()); }

void Trainer::set_lr(Schedule schedule) {
  if (!std::isfinite(rateAt(schedule, 1))) {
    throw Error({.code = "schedule.number", .message = "the learning rate is not finite", .where = {}, .notes = {}, .remedy = {}});
  }
  if (!schedule.start_step) schedule.start_step = static_cast<int64_t>(impl_->step);
  impl_->optimizer.lr = std::move(schedule);
}

double Trainer::lr() const { return rateAt(impl_->optimizer.lr, static_cast<int64_t>(impl_->step) + 1); }
uint64_t Trainer::step_count() const { return impl_->step; }
uint64_t Trainer::seed() const { return impl_->seed; }
const ProgramFacts& Trainer::facts() const { return impl_->facts; }
const Module& Trainer::module() const { return *impl_->model; }

std::vector<ParameterSlot> Trainer::parameter_layout() const {
  std::vector<ParameterSlot> slots;
  for (const graph::ParameterLayout::Slot& slot : impl_->layout.slots)
    slots.push_back({slot.name, slot.type, slot.decay, slot.offset, slot.size});
  return slots;
}

RunFacts Trainer::run_facts() const {
  ExecutionStatistics counts = impl_->session.statistics();
  return {counts.submissions, counts.steps, counts.device_allocations, counts.device_bytes};
}

struct Forward::Impl {
  Session session;
  ProgramFacts facts;
  uint64_t seed = 0;
  uint64_t runs = 0;
};

// Random numbers of forward programs: a stream apart from those of the training steps.
constexpr uint64_t kForwardStream = uint64_t{1} << 63;

Forward::Forward(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Forward::Forward(Forward&&) noexcept = default;
Forward& Forward::operator=(Forward&&) noexcept = default;
Forward::~Forward() = default;
const ProgramFacts& Forward::facts() const { return impl_->facts; }

ForwardResult Forward::run(const Batch& batch) {
  std::vector<std::vector<std::byte>> arenas = impl_->session.wait(
      impl_->session.submit({impl_->session.encode(batch, {detail::randomKey(impl_->seed, kForwardStream | ++impl_->runs)})}));
  return {std::move(impl_->session.outputs(arenas.front(), OutputKind::Result).front()),
          Captures(impl_->session.outputs(arenas.front(), OutputKind::Capture))};
}

Forward Trainer::attachForward(detail::ForwardRequest request) const {
  graph::Graph traced = detail::traceFunction(impl_->model.get(), request.inputs, request.forward, OutputKind::Result, request.where);
  passes::CompileOptions options;
  options.disabled = impl_->disabled;
  options.disabled.insert(options.disabled.end(), request.disable.begin(), request.disable.end());
  options.dump_directory = std::move(request.dump_ir);
  Session session(std::move(traced), std::move(options), impl_->session.device(), std::move(request.inputs), impl_->session.state());
  ProgramFacts facts = factsOf(session, impl_->layout);
  return Forward(std::make_unique<Forward::Impl>(Forward::Impl{std::move(session), std::move(facts), impl_->seed}));
}

Trainer detail::compile(CompileRequest request) {
  graph::Graph traced = traceFunction(request.model.get(), request.inputs, request.loss, OutputKind::Loss, request.where);
  uint64_t seed = request.seed ? *request.seed : randomSeed();
  return Trainer(std::make_unique<Trainer::Impl>(std::move(request), std::move(traced), seed));
}

}  // namespace lockstep
