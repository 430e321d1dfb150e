// SPDX-License-Identifier: Apache-2.0
#include "frontend/train/model_buffers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "frontend/trace/throw_error.h"
#include "frontend/trace/trace.h"
#include "frontend/train/parameters.h"
#include "passes/graph/optimizer_config.h"
#include "runtime/memory_array.h"

namespace lockstep::detail {

void declareBuffers(const Module& module, States& states) {
  for (const NamedBuffer& buffer : module.buffers())
    (void)states.declare(bufferState(buffer.name), {buffer.buffer->type(), buffer.buffer->initial(), true});
}

ParameterValues readBuffers(const TrainedModel& model) {
  ParameterValues values;
  for (const NamedBuffer& buffer : model.module->buffers()) values.emplace(buffer.name, model.states->readFloats(bufferState(buffer.name)));
  return values;
}

std::pair<ParameterValues, ParameterValues> splitBuffers(const TrainedModel& model, const ParameterValues& values) {
  std::pair<ParameterValues, ParameterValues> split{values, {}};
  for (const NamedBuffer& buffer : model.module->buffers()) {
    auto found = split.first.extract(buffer.name);
    if (found.empty())
      reject("parameters.missing", fmt::format("there is no value for the buffer '{}'", buffer.name),
             "give all of them, as download() does");
    const TensorType& type = buffer.buffer->type();
    if (static_cast<int64_t>(found.mapped().size()) != type.shape.elementCount()) {
      reject("parameters.length",
             fmt::format("buffer '{}' is {} with {} elements but gets {}", buffer.name, toString(type), type.shape.elementCount(),
                         found.mapped().size()),
             "give its elements in row-major order");
    }
    const graph::DTypeFacts& facts = graph::factsOf(type.dtype);
    const bool fits = facts.is_float || std::ranges::all_of(found.mapped(), [&](float value) {
                        const auto number = static_cast<double>(value);
                        return std::trunc(number) == number && number >= static_cast<double>(facts.lowest) &&
                               number <= static_cast<double>(facts.highest);
                      });
    if (!fits)
      reject("parameters.type", fmt::format("buffer '{}' is {} but gets numbers that are not", buffer.name, toString(type)),
             "give whole numbers within the range of its type");
    split.second.insert(std::move(found));
  }
  return split;
}

void writeBuffers(const TrainedModel& model, const ParameterValues& values) {
  for (const NamedBuffer& buffer : model.module->buffers())
    model.states->write(bufferState(buffer.name), encodeArray(buffer.buffer->type(), values.at(buffer.name)));
}

ParameterValues readValues(const TrainedModel& model) {
  ParameterValues values = splitParameters(model.layout, model.states->readFloats(passes::kParameterState));
  values.merge(readBuffers(model));
  return values;
}

void writeValues(const TrainedModel& model, const ParameterValues& values) {
  const auto [parameters, buffers] = splitBuffers(model, values);
  writeParameters(model, joinParameters(model.layout, parameters));
  writeBuffers(model, buffers);
}

void writeArrays(const TrainedModel& model, const io::TensorFile& file) {
  std::map<std::string, TensorType> parameters, buffers;
  for (const graph::ParameterInfo& parameter : model.parameters) parameters.emplace(parameter.name, parameter.type);
  for (const NamedBuffer& named : model.module->buffers()) buffers.emplace(named.name, named.buffer->type());
  for (const auto& [name, array] : file.tensors) {
    const auto parameter = parameters.find(name), buffer = buffers.find(name);
    if (parameter == parameters.end() && buffer == buffers.end())
      reject("parameters.unknown", fmt::format("the model has no parameter or buffer '{}'", name), "give arrays the names of the model");
    const TensorType& type = parameter != parameters.end() ? parameter->second : buffer->second;
    if (array.type != elementType(type.dtype) || array.shape != type.shape.extents())
      reject("parameters.type", fmt::format("'{}' is {} but gets {}", name, toString(type), describe(array)),
             "give an array of its type and shape");
  }
  for (const auto& [name, type] : parameters) {
    if (const io::Array* array = file.find(name)) writeParameter(model, name, array->toFloats());
  }
  for (const auto& [name, type] : buffers) {
    if (const io::Array* array = file.find(name)) model.states->write(bufferState(name), *array);
  }
}

}  // namespace lockstep::detail
