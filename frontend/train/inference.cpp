// SPDX-License-Identifier: Apache-2.0
#include "frontend/train/inference.h"

#include <fmt/format.h>

#include <mutex>
#include <random>

#include "frontend/io/sealed.h"
#include "frontend/trace/at_call.h"
#include "frontend/trace/trace.h"
#include "frontend/trace/trace_function.h"
#include "frontend/train/batch.h"
#include "frontend/train/model_buffers.h"
#include "frontend/train/parameters.h"
#include "frontend/train/shared_model.h"
#include "passes/graph/optimizer_config.h"
#include "runtime/checkpoint_metadata.h"
#include "runtime/memory_array.h"

namespace lockstep {

namespace {

/// A model on a device whose parameters nobody trains.
std::shared_ptr<const detail::TrainedModel> makeModel(std::shared_ptr<const Module> module, const detail::Device& device, uint64_t seed) {
  auto model = std::make_shared<detail::TrainedModel>();
  model->parameters = detail::parameterInfos(*module);
  model->layout = graph::layoutParameters(model->parameters);
  model->states = std::make_shared<detail::States>(device);
  if (model->layout.total > 0) {
    const detail::StateInfo flat{{DType::F32, Shape{model->layout.total}}, 0, true};
    (void)model->states->declare(std::string(passes::kParameterState), flat);
  }
  detail::declareBuffers(*module, *model->states);
  model->module = std::move(module);
  detail::initialiseParameters(*model, seed);
  return model;
}

/// The values of parameters and buffers in a checkpoint. What else is in it belongs to the optimizer.
ParameterValues valuesOf(const Module& module, const io::TensorFile& file) {
  ParameterValues values;
  const auto take = [&](const std::string& name, const std::string& tensor, const TensorType& type) {
    const io::Array* array = file.find(tensor);
    if (array == nullptr)
      detail::incompatible("missing", fmt::format("the file has no tensor '{}'", tensor), "load a checkpoint of this model");
    if (array->shape != type.shape.extents())
      detail::incompatible("shape", fmt::format("tensor '{}' is {}, but the model has {}", tensor, describe(*array), toString(type)));
    values.emplace(name, array->toFloats());
  };
  for (const NamedParameter& named : module.parameters()) take(named.name, named.name, named.parameter->type());
  for (const NamedBuffer& named : module.buffers()) take(named.name, detail::bufferState(named.name), named.buffer->type());
  return values;
}

/// Buffers of whole numbers as they are in a checkpoint: f32 does not have all of them.
io::TensorFile exactBuffers(const Module& module, const io::TensorFile& file) {
  io::TensorFile exact;
  for (const NamedBuffer& named : module.buffers()) {
    const io::Array* array = file.find(detail::bufferState(named.name));
    if (!io::isFloat(array->type) && array->type == detail::elementType(named.buffer->type().dtype))
      exact.tensors.emplace(named.name, *array);
  }
  return exact;
}

}  // namespace

struct Inference::Impl {
  Impl(std::shared_ptr<detail::SharedModel> model, detail::Device chosen, detail::CompileSettings given, uint64_t its_seed, Forward program)
      : shared(std::move(model)), device(std::move(chosen)), settings(std::move(given)), seed(its_seed), forward(std::move(program)) {}

  std::shared_ptr<detail::SharedModel> shared;
  detail::Device device;
  detail::CompileSettings settings;
  uint64_t seed;
  Forward forward;
  mutable detail::Turn turn;  ///< of the calls that write parameters
};

Inference::Inference(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Inference::Inference(Inference&&) noexcept = default;
Inference& Inference::operator=(Inference&&) noexcept = default;
Inference::~Inference() = default;

ForwardResult Inference::run(const Batch& batch, RunOptions options, Where where) { return impl_->forward.run(batch, options, where); }

StepProfile Inference::profile(const Batch& batch, Where where) { return impl_->forward.profile(batch, where); }

LoadReport Inference::load(const std::filesystem::path& path, LoadOptions options, Where where) {
  return detail::atCall(where, [&] {
    const io::TensorFile file = io::readSealed(path).orThrow();
    if (!file.metadata.contains("lockstep.checkpoint")) return load_state_dict(file, options, where);
    std::lock_guard turn(impl_->turn);
    detail::writeValues(*impl_->shared->get(), valuesOf(module(), file));
    detail::writeArrays(*impl_->shared->get(), exactBuffers(module(), file));
    return LoadReport{};
  });
}

LoadReport Inference::load_state_dict(const io::TensorFile& file, LoadOptions options, Where where) {
  return detail::atCall(where, [&] {
    std::lock_guard turn(impl_->turn);
    ParameterValues values = detail::readValues(*impl_->shared->get());
    LoadReport report = readStateDict(module(), file, options, values);
    detail::writeValues(*impl_->shared->get(), values);
    return report;
  });
}

void Inference::upload(const ParameterValues& values, Where where) {
  detail::atCall(where, [&] {
    std::lock_guard turn(impl_->turn);
    detail::writeValues(*impl_->shared->get(), values);
  });
}

void Inference::write(const io::TensorFile& values, Where where) {
  detail::atCall(where, [&] {
    std::lock_guard turn(impl_->turn);
    detail::writeArrays(*impl_->shared->get(), values);
  });
}

ParameterValues Inference::download() const {
  std::lock_guard turn(impl_->turn);
  return detail::readValues(*impl_->shared->get());
}

ProgramFacts Inference::facts() const { return impl_->forward.facts(); }
RunFacts Inference::run_facts() const { return impl_->forward.run_facts(); }
const Module& Inference::module() const { return *impl_->shared->get()->module; }

Forward Inference::attachForward(detail::ForwardRequest request) const {
  const Where where = request.where;
  return detail::atCall(where, [&] {
    request.seed = impl_->seed;
    detail::CompileSettings& settings = request.settings;
    const detail::CompileSettings& own = impl_->settings;
    settings.print = own.print;
    settings.check_indices = settings.check_indices && own.check_indices;
    if (!settings.has_own_precision) settings.precision = own.precision;
    settings.disable.insert(settings.disable.begin(), own.disable.begin(), own.disable.end());
    return detail::makeForward(std::move(request), impl_->device, impl_->shared);
  });
}

Inference detail::makeInference(std::shared_ptr<const Module> model, ForwardRequest request) {
  return atCall(request.where, [&] {
    checkFunction(model.get(), request.settings.inputs, request.forward, request.where);
    const uint64_t seed = request.settings.seed ? *request.settings.seed : std::random_device{}();
    request.seed = seed;
    const Device device = openChosenDevice(request.settings.device);
    auto shared = std::make_shared<SharedModel>(lockstep::makeModel(std::move(model), device, seed));
    CompileSettings settings = request.settings;
    Forward forward = makeForward(std::move(request), device, shared);
    return Inference(std::make_unique<Inference::Impl>(shared, device, std::move(settings), seed, std::move(forward)));
  });
}

}  // namespace lockstep
