// SPDX-License-Identifier: Apache-2.0
#include "runtime/program_trainer.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <string_view>
#include <utility>

#include "ir/kernel/claims.h"
#include "runtime/checkpoint_file.h"
#include "runtime/execution.h"
#include "runtime/memory_array.h"

namespace lockstep {

using detail::Metadata;
using graph::OutputKind;

namespace {

/// Results of a step, as the optimizer's pass names them.
constexpr std::string_view kGradientNorm = "step.grad_norm", kLossScale = "step.loss_scale";

template <class T>
T scalarOf(std::span<const std::byte> bytes) {
  T value{};
  std::memcpy(&value, bytes.data(), sizeof(value));
  return value;
}

/// The part of an input's values that one run takes. Whole arrays were checked.
std::span<const std::byte> partOf(const io::Array& array, uint64_t bytes, uint64_t run) {
  const uint64_t count = array.data.size() / bytes;
  return std::span(array.data).subspan((run - 1) % count * bytes, bytes);
}

Status checkRange(const program::InputPort& port, const program::BatchSource& source, std::span<const std::byte> bytes, uint64_t step) {
  if (!source.below) return Success{};
  for (size_t at = 0; at < bytes.size(); at += sizeof(int32_t)) {
    const auto value = scalarOf<int32_t>(bytes.subspan(at));
    if ((value >= 0 && value < *source.below) || value == source.ignored) continue;
    return fail("batch.index",
                fmt::format("element {} of '{}' is {}, outside of its range (step {})", at / sizeof(int32_t), port.name, value, step), {},
                fmt::format("0 to {} are right{}; look at the data", *source.below - 1,
                            source.ignored ? fmt::format(", and the ignored {}", *source.ignored) : ""));
  }
  return Success{};
}

}  // namespace

struct ProgramTrainer::Impl {
  std::string device;
  std::shared_ptr<detail::States> states;
  std::unique_ptr<detail::Execution> execution;
  detail::CheckpointForm form;
  program::Formula rate;
  int64_t accumulate = 1;
  bool started = false;  ///< the states have values to begin with
  uint64_t seed = 0, step = 0;

  [[nodiscard]] const program::Program& program() const { return execution->program(); }

  [[nodiscard]] double rateOf(uint64_t t) const { return rate(std::array{static_cast<double>(t)}); }

  /// Every input of the batch is there, and nothing else.
  Status check(const io::TensorFile& batches) const;
  /// The Input arena of a run.
  Result<std::vector<std::byte>> encode(const io::TensorFile& batches, const detail::RunNumbers& numbers) const;
  /// An index that the run computed and that is outside of its range.
  [[nodiscard]] Status checkIndices(std::span<const std::byte> arena, uint64_t t) const;
  Result<ProgramStep> run(const io::TensorFile& batches);
};

ProgramTrainer::ProgramTrainer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ProgramTrainer::ProgramTrainer(ProgramTrainer&&) noexcept = default;
ProgramTrainer& ProgramTrainer::operator=(ProgramTrainer&&) noexcept = default;
ProgramTrainer::~ProgramTrainer() = default;

namespace {

/// Runs something that throws; what it throws becomes a Failure.
template <class Body>
auto caught(Body&& body) -> Result<decltype(body())> {
  try {
    return body();
  } catch (const Error& error) {
    return Failure{error.diagnostics(), error.exitCode()};
  }
}

}  // namespace

Result<ProgramTrainer> ProgramTrainer::open(program::Program program, const std::string& device) {
  LS_TRY(const detail::Device opened, detail::tryOpenDevice(device));
  return openOn(opened, std::move(program));
}

Result<ProgramTrainer> ProgramTrainer::openOn(const detail::Device& opened, program::Program program) {
  for (const program::Kernel& kernel : program.kernels) {
    if (std::holds_alternative<kernel::Module>(kernel.code)) continue;
    return fail("program_run.stage", fmt::format("kernel '{}' of the program is not emitted yet", kernel.name), {},
                "take a .program of the dump that comes after the pass 'emit'");
  }
  if (!program.steps || program.findOutput("loss") == nullptr) {
    return fail("program_run.steps", "the program does not say how it trains: it has no steps or no loss", {},
                "dump a training step with --dump-ir; --inputs FILE runs a program once");
  }
  for (program::Kernel& kernel : program.kernels) {
    auto& module = std::get<kernel::Module>(kernel.code);
    module = kernel::dropClaims(std::move(module));
  }
  // It may have been made for a device that allows more.
  program.profile = opened.chosen.info.profile;
  const program::Steps steps = *program.steps;
  LS_TRY(program::ValidProgram valid, program::validate(std::move(program)));
  return caught([&] {
    auto impl = std::make_unique<Impl>();
    impl->device = opened.chosen.info.name;
    impl->accumulate = steps.accumulate;
    impl->rate = program::Formula::parse(steps.rate, program::kRateNames).orThrow();
    impl->states = std::make_shared<detail::States>(opened);
    impl->form = detail::formOf(*valid);
    impl->started = impl->form.flat.empty();
    impl->execution = std::make_unique<detail::Execution>(std::move(valid), impl->states);
    return ProgramTrainer(std::move(impl));
  });
}

Status ProgramTrainer::load(const io::TensorFile& checkpoint) {
  Result<bool> loaded = caught([&] {
    const detail::SavedTraining saved = detail::readCheckpoint(impl_->form, detail::persistentStates(*impl_->states), false, checkpoint);
    detail::compareMetadata("schedule", impl_->form.entries, checkpoint.metadata);
    impl_->started = false;
    for (const auto& [name, values] : saved.states) impl_->states->write(name, values);
    impl_->seed = saved.seed;
    impl_->step = saved.step;
    impl_->started = true;
    return true;
  });
  return loaded.ok() ? Status(Success{}) : Status(loaded.failure());
}

Result<io::TensorFile> ProgramTrainer::checkpoint() const {
  return caught([&] {
    detail::SavedTraining saved{.step = impl_->step, .seed = impl_->seed, .infos = detail::persistentStates(*impl_->states), .states = {}};
    for (const auto& [name, info] : saved.infos) saved.states.emplace(name, impl_->states->read(name));
    return detail::formatCheckpoint(impl_->form, saved);
  });
}

Status ProgramTrainer::Impl::check(const io::TensorFile& batches) const {
  size_t wanted = 0;
  for (const program::InputPort& port : program().inputs) {
    if (!std::holds_alternative<program::BatchSource>(port.source)) continue;
    ++wanted;
    const graph::TensorType& type = program()[port.buffer].type;
    const auto wrong = [&](const std::string& problem) {
      return fail("program_run.batch", fmt::format("input '{}' is {}, but {}", port.name, toString(type), problem), {},
                  "a file of batches has each input: the values of one run, or of several after one another");
    };
    const io::Array* array = batches.find(port.name);
    if (array == nullptr) return wrong("the batches have no tensor of that name");
    if (array->type != detail::elementType(type.dtype)) return wrong(fmt::format("the batches have {}", describe(*array)));
    if (array->data.empty() || array->data.size() % detail::elementBytes(type) != 0)
      return wrong(fmt::format("the batches have {}, which is no whole number of them", describe(*array)));
  }
  if (wanted == batches.tensors.size()) return Success{};
  for (const auto& [name, array] : batches.tensors) {
    const program::InputPort* port = program().findInput(name);
    if (port != nullptr && std::holds_alternative<program::BatchSource>(port->source)) continue;
    return fail("program_run.batch", fmt::format("the batches have a tensor '{}', but the program has no such input", name), {},
                "give the inputs of the batch alone; the others are made by the program");
  }
  return Success{};
}

Result<std::vector<std::byte>> ProgramTrainer::Impl::encode(const io::TensorFile& batches, const detail::RunNumbers& numbers) const {
  std::vector<detail::NamedBytes> items;
  for (const program::InputPort& port : program().inputs) {
    const auto* source = std::get_if<program::BatchSource>(&port.source);
    if (source == nullptr) continue;
    const std::span<const std::byte> bytes =
        partOf(*batches.find(port.name), detail::elementBytes(program()[port.buffer].type), numbers.run);
    LS_CHECK(checkRange(port, *source, bytes, numbers.step));
    items.push_back({port.name, bytes});
  }
  return execution->encode(items, execution->stepValues(numbers));
}

Status ProgramTrainer::Impl::checkIndices(std::span<const std::byte> arena, uint64_t t) const {
  for (const program::OutputPort& port : program().outputs) {
    if (port.kind != OutputKind::Check || !port.name.ends_with(graph::kCheckRow)) continue;
    const auto row = scalarOf<int32_t>(execution->bytesOf(port, arena));
    if (row == graph::kNoRow) continue;
    const std::string check = port.name.substr(0, port.name.size() - graph::kCheckRow.size());
    const program::OutputPort* value = program().findOutput(check + std::string(graph::kCheckValue));
    return fail("step.index",
                fmt::format("'{}' of step {} is {} at {}, outside of its range", check, t,
                            value == nullptr ? 0 : scalarOf<int32_t>(execution->bytesOf(*value, arena)), row),
                {}, "look at the data");
  }
  return Success{};
}

Result<ProgramStep> ProgramTrainer::Impl::run(const io::TensorFile& batches) {
  if (!started) {
    return fail("program_run.start", "the parameters have no values yet", {},
                "load a checkpoint; a dump has one from before its first step, start.safetensors");
  }
  LS_CHECK(check(batches));
  const uint64_t t = step + 1;
  const double lr = rateOf(t);
  if (!(lr >= 0) || !std::isfinite(static_cast<float>(lr)))
    return fail("schedule.number", fmt::format("the learning rate of step {} is {}", t, lr), {},
                "a learning rate is a finite number and at least 0");
  std::vector<std::vector<std::byte>> inputs;
  for (int64_t i = 0; i < accumulate; ++i) {
    const uint64_t before = (t - 1) * static_cast<uint64_t>(accumulate) + static_cast<uint64_t>(i);
    LS_TRY(inputs.emplace_back(), encode(batches, {.step = t, .rate = lr, .last = i + 1 == accumulate, .seed = seed, .run = before + 1}));
  }
  // Until it is known that all runs are through, the states may be those of no step.
  started = false;
  LS_TRY(const Ticket ticket, execution->submit(inputs));
  LS_TRY(const std::vector<std::vector<std::byte>> arenas, execution->wait(ticket));
  started = true;
  step = t;

  ProgramStep result{.step = t, .lr = lr, .grad_norm = {}, .loss_scale = {}, .captures = {}};
  double sum = 0;
  for (const std::vector<std::byte>& arena : arenas) {
    LS_CHECK(checkIndices(arena, t));
    for (const program::OutputPort& port : program().outputs) {
      if (port.kind == OutputKind::Loss) sum += static_cast<double>(scalarOf<float>(execution->bytesOf(port, arena)));
    }
  }
  result.loss = static_cast<float>(sum / static_cast<double>(arenas.size()));
  for (const program::OutputPort& port : program().outputs) {
    const std::span<const std::byte> bytes = execution->bytesOf(port, arenas.back());
    if (port.name == kGradientNorm) result.grad_norm = scalarOf<float>(bytes);
    if (port.name == kLossScale) result.loss_scale = scalarOf<float>(bytes);
    if (port.kind != OutputKind::Capture && port.kind != OutputKind::Print) continue;
    result.captures.emplace(port.name, detail::arrayIn(program()[port.buffer].type, bytes));
  }
  // Gradients that are too large for the scale leave out the step and halve the scale.
  const bool overflowed = result.loss_scale.value_or(1) > 1;
  if (!std::isfinite(result.loss) || (!overflowed && !std::isfinite(result.grad_norm.value_or(0)))) {
    Failure failure = fail("step.non_finite", fmt::format("the loss of step {} is {}", t, result.loss), {},
                           "lower the learning rate; the trainer that the program comes from says where it begins");
    failure.exit_code = ExitCode::NumericCheck;
    return failure;
  }
  return result;
}

Result<ProgramStep> ProgramTrainer::step(const io::TensorFile& batches) {
  try {
    return impl_->run(batches);
  } catch (const Error& error) {
    return Failure{error.diagnostics(), error.exitCode()};
  }
}

uint64_t ProgramTrainer::steps() const { return impl_->step; }
const program::Program& ProgramTrainer::program() const { return impl_->program(); }
const std::string& ProgramTrainer::device() const { return impl_->device; }
const std::vector<Finding>& ProgramTrainer::findings() const { return *impl_->states->device().findings; }

}  // namespace lockstep
