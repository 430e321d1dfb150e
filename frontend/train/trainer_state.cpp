// SPDX-License-Identifier: Apache-2.0
// What a trainer keeps between steps: parameters, checkpoints, rates, and the model itself.
#include <fmt/format.h>

#include <random>
#include <utility>

#include "frontend/io/sealed.h"
#include "frontend/optim/checks.h"
#include "frontend/optim/settings.h"
#include "frontend/trace/at_call.h"
#include "frontend/trace/throw_error.h"
#include "frontend/trace/trace_function.h"
#include "frontend/train/checkpoint_settings.h"
#include "frontend/train/model_buffers.h"
#include "frontend/train/parameters.h"
#include "frontend/train/trainer_impl.h"
#include "passes/graph/optimizer_config.h"

namespace lockstep {

namespace {

/// All that a checkpoint has, of the states that are saved.
io::TensorFile fileOf(const detail::TrainedModel& model, const detail::SavedTraining& saved, const Schedule& schedule,
                      const DataCursor& cursor) {
  io::TensorFile file = detail::formatCheckpoint(model.form, saved);
  detail::writeSchedule(file.metadata, "lockstep.schedule.", schedule);
  detail::writeCursor(file.metadata, cursor);
  return file;
}

}  // namespace

io::TensorFile Trainer::Impl::checkpoint(const DataCursor& cursor) const {
  if (uncertain) {
    detail::reject("checkpoint.uncertain", "a step or a load() failed on the way, so the parameters may be those of no step",
                   "load() an earlier checkpoint, which also makes the trainer usable again");
  }
  auto model = shared->get();
  detail::SavedTraining saved{.step = step, .seed = seed, .infos = detail::persistentStates(*model->states), .states = {}};
  for (const auto& [name, info] : saved.infos) saved.states.emplace(name, model->states->read(name));
  return fileOf(*model, saved, optimizer.lr, cursor);
}

std::map<std::string, std::string, std::less<>> Trainer::Impl::metadata() const {
  auto model = shared->get();
  const detail::SavedTraining saved{.step = step, .seed = seed, .infos = detail::persistentStates(*model->states), .states = {}};
  return fileOf(*model, saved, optimizer.lr, {}).metadata;
}

DataCursor Trainer::Impl::restore(const io::TensorFile& file) {
  auto model = shared->get();
  ++revision;
  // Before its first program a trainer does not know all of its states.
  const detail::SavedTraining saved =
      detail::readCheckpoint(model->form, detail::persistentStates(*model->states), programs.size() == 0, file);
  Schedule schedule = detail::readSchedule(file.metadata, "lockstep.schedule.");
  DataCursor cursor = detail::readCursor(file.metadata);
  uncertain = true;
  for (const auto& [name, info] : saved.infos) (void)model->states->declare(name, info);
  for (const auto& [name, values] : saved.states) model->states->write(name, values);
  step = saved.step;
  seed = saved.seed;
  optimizer.lr = std::move(schedule);
  uncertain = false;
  return cursor;
}

void Trainer::Impl::reset(const ResetOptions& options) {
  auto model = shared->get();
  ++revision;
  for (const auto& [name, info] : model->states->infos()) {
    if (name == passes::kParameterState || !info.persistent) continue;
    if (passes::isOptimizerState(name) ? options.optimizer : options.parameters) model->states->fill(name);
  }
  if (options.optimizer) detail::restartAverages(*model);
  if (options.parameters) detail::initialiseParameters(*model, seed);
  if (options.step) step = 0;
  if (options.schedule) optimizer.lr = first_schedule;
}

void Trainer::Impl::replace(detail::ReplaceRequest request) {
  OptimizerSpec with = request.options.optimizer.value_or(optimizer);
  if (with.name != optimizer.name) {
    throw Error({.code = "replace.optimizer",
                 .message = fmt::format("the trainer uses {}, which {} cannot replace", toString(optimizer.name), toString(with.name)),
                 .where = detail::toLocation(request.where),
                 .notes = {},
                 .remedy = "compile a trainer of its own for another kind of optimizer"});
  }
  if (!request.options.optimizer) with.lr = first_schedule;
  detail::checkFunction(request.model.get(), settings.inputs, loss, request.where);
  auto model = makeModel(std::move(request.model), with);
  const detail::ProgramKey plain;
  std::shared_ptr<detail::Session> made;
  if (!isDynamic()) made = detail::ProgramCache::compile(plain, sourceOf(*model));
  const uint64_t new_seed = request.options.seed ? *request.options.seed : std::random_device{}();
  detail::initialiseParameters(*model, new_seed);

  // Everything that can fail is done.
  programs.clear();
  if (made) programs.insert(plain, made);
  facts = detail::programFacts(device, model->layout, made.get());
  diagnosis = {};
  optimizer = std::move(with);
  first_schedule = optimizer.lr;
  seed = new_seed;
  step = 0;
  uncertain = false;
  shared->set(std::move(model));
}

ParameterValues Trainer::download() const {
  auto turn = impl_->look();
  return detail::readValues(*impl_->shared->get());
}

ParameterValues Trainer::download_ema(Where where) const {
  auto turn = impl_->look();
  auto model = impl_->shared->get();
  detail::atCall(where, [&] { detail::requireAverages(*model); });
  ParameterValues values = detail::splitParameters(model->layout, model->states->readFloats(passes::kAverageState));
  values.merge(detail::readBuffers(*model));
  return values;
}

void Trainer::upload(const ParameterValues& values, Where where) {
  detail::atCall(where, [&] {
    auto turn = impl_->enter();
    ++impl_->revision;
    detail::writeValues(*impl_->shared->get(), values);
  });
}

void Trainer::reset(ResetOptions options) {
  auto turn = impl_->enter();
  impl_->reset(options);
}

io::TensorFile Trainer::checkpoint(const DataCursor& cursor) const {
  auto turn = impl_->look();
  return impl_->checkpoint(cursor);
}

std::map<std::string, std::string, std::less<>> Trainer::settings() const {
  auto turn = impl_->look();
  return impl_->metadata();
}

DataCursor Trainer::restore(const io::TensorFile& file, Where where) {
  return detail::atCall(where, [&] {
    auto turn = impl_->enter();
    return impl_->restore(file);
  });
}

void Trainer::save(const std::filesystem::path& path, const DataCursor& cursor, Where where) const {
  detail::atCall(where, [&] { (void)io::writeSealed(path, checkpoint(cursor)).orThrow(); });
}

DataCursor Trainer::load(const std::filesystem::path& path, Where where) {
  return detail::atCall(where, [&] {
    const io::TensorFile file = io::readSealed(path).orThrow();
    auto turn = impl_->enter();
    return detail::inFile(path, [&] { return impl_->restore(file); });
  });
}

io::TensorFile Trainer::state_dict() const {
  auto turn = impl_->look();
  return formatStateDict(module(), download());
}

LoadReport Trainer::load_state_dict(const io::TensorFile& file, LoadOptions options, Where where) {
  return detail::atCall(where, [&] {
    auto turn = impl_->enter();
    ++impl_->revision;
    ParameterValues values = detail::readValues(*impl_->shared->get());
    LoadReport report = readStateDict(module(), file, options, values);
    detail::writeValues(*impl_->shared->get(), values);
    return report;
  });
}

void Trainer::replaceModel(detail::ReplaceRequest request) {
  const Where where = request.where;
  detail::atCall(where, [&] {
    auto turn = impl_->enter();
    impl_->replace(std::move(request));
  });
}

void Trainer::set_lr(Schedule schedule, Where where) {
  detail::atCall(where, [&] { detail::checkSchedule(schedule); });
  auto turn = impl_->enter();
  if (!schedule.start_step) schedule.start_step = static_cast<int64_t>(impl_->step);
  impl_->optimizer.lr = std::move(schedule);
}

double Trainer::lr() const {
  auto turn = impl_->look();
  return rateAt(impl_->optimizer.lr, static_cast<int64_t>(impl_->step) + 1);
}

uint64_t Trainer::step_count() const {
  auto turn = impl_->look();
  return impl_->step;
}

uint64_t Trainer::seed() const {
  auto turn = impl_->look();
  return impl_->seed;
}

ProgramFacts Trainer::facts() const {
  auto turn = impl_->look();
  return impl_->facts;
}

std::vector<Finding> Trainer::findings() const {
  auto turn = impl_->look();
  return *impl_->device.findings;
}

RunFacts Trainer::run_facts() const {
  auto turn = impl_->look();
  return detail::runFacts(impl_->programs);
}

Where Trainer::compiled_at() const { return impl_->where; }

const Module& Trainer::module() const { return *impl_->shared->get()->module; }

std::vector<ParameterSlot> Trainer::parameter_layout() const {
  std::vector<ParameterSlot> slots;
  for (const graph::ParameterLayout::Slot& slot : impl_->shared->get()->layout.slots)
    slots.push_back({slot.name, slot.type, slot.decay, slot.offset, slot.size});
  return slots;
}

}  // namespace lockstep
