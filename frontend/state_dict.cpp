// SPDX-License-Identifier: Apache-2.0
#include "frontend/state_dict.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <set>

#include "frontend/nn.h"
#include "frontend/nn_conv.h"
#include "frontend/nn_norm.h"
#include "ir/support/diagnostic.h"

namespace lockstep {

namespace {

[[noreturn]] void reject(std::string code, std::string message, std::string remedy = {}) {
  throw Error({.code = std::move(code), .message = std::move(message), .where = {}, .notes = {}, .remedy = std::move(remedy)});
}

template <class Layer>
bool isLayer(const Module& module) {
  return dynamic_cast<const Layer*>(&module) != nullptr;
}

struct Row {
  bool (*layer)(const Module&);
  std::string_view ours, theirs;
  bool transposed = false;
};
constexpr std::array kRows{
    Row{isLayer<nn::Linear>, "W", "weight", true},    Row{isLayer<nn::Linear>, "b", "bias"},
    Row{isLayer<nn::LayerNorm>, "g", "weight"},       Row{isLayer<nn::LayerNorm>, "b", "bias"},
    Row{isLayer<nn::RMSNorm>, "g", "weight"},         Row{isLayer<nn::GroupNorm>, "g", "weight"},
    Row{isLayer<nn::GroupNorm>, "b", "bias"},         Row{isLayer<nn::BatchNorm>, "g", "weight"},
    Row{isLayer<nn::BatchNorm>, "b", "bias"},         Row{isLayer<nn::Embedding>, "W", "weight"},
    Row{isLayer<nn::Conv1d>, "W", "weight"},          Row{isLayer<nn::Conv1d>, "b", "bias"},
    Row{isLayer<nn::Conv2d>, "W", "weight"},          Row{isLayer<nn::Conv2d>, "b", "bias"},
    Row{isLayer<nn::ConvTranspose2d>, "W", "weight"}, Row{isLayer<nn::ConvTranspose2d>, "b", "bias"},
};

template <class T>
std::vector<T> transpose(const std::vector<T>& values, size_t rows, size_t columns) {
  std::vector<T> turned(values.size());
  for (size_t row = 0; row < rows; ++row) {
    for (size_t column = 0; column < columns; ++column) turned[column * rows + row] = values[row * columns + column];
  }
  return turned;
}

/// The shape there.
std::vector<int64_t> theirShape(const StateDictEntry& entry) {
  std::vector<int64_t> extents = entry.type.shape.extents();
  if (entry.transposed) std::ranges::reverse(extents);
  return extents;
}

}  // namespace

std::vector<StateDictEntry> stateDictEntries(const Module& model) {
  std::vector<StateDictEntry> entries;
  for (const NamedParameter& named : model.parameters()) {
    StateDictEntry entry{named.name, named.name, named.parameter->type()};
    const size_t start = named.name.rfind('.') + 1;  // 0 without a dot
    const std::string_view last = std::string_view(named.name).substr(start);
    for (const Row& row : kRows) {
      if (row.ours != last || !row.layer(named.parameter->owner())) continue;
      entry.name = named.name.substr(0, start) + std::string(row.theirs);
      entry.transposed = row.transposed;
    }
    entries.push_back(std::move(entry));
  }
  for (const NamedBuffer& named : model.buffers()) entries.push_back({named.name, named.name, named.buffer->type()});
  return entries;
}

io::TensorFile formatStateDict(const Module& model, const ParameterValues& values) {
  io::TensorFile file;
  for (const StateDictEntry& entry : stateDictEntries(model)) {
    std::vector<float> data = values.find(entry.parameter)->second;
    const Shape& shape = entry.type.shape;
    if (entry.transposed) data = transpose(data, static_cast<size_t>(shape.extent(0)), static_cast<size_t>(shape.extent(1)));
    file.tensors.emplace(entry.name, io::Array::fromFloats(theirShape(entry), data));
  }
  return file;
}

LoadReport readStateDict(const Module& model, const io::TensorFile& file, LoadOptions options, ParameterValues& values) {
  LoadReport report;
  ParameterValues read = values;
  std::set<std::string> taken;
  for (const StateDictEntry& entry : stateDictEntries(model)) {
    const io::Array* array = file.find(entry.name);
    if (array == nullptr) {
      report.missing.push_back(entry.name);
      continue;
    }
    taken.insert(entry.name);
    const std::vector<int64_t> shape = theirShape(entry);
    if (array->type != io::ElementType::F32 && array->type != io::ElementType::F64) {
      reject("state_dict.type", fmt::format("tensor '{}' is {}, but a parameter takes floats", entry.name, describe(*array)));
    }
    if (array->shape != shape) {
      reject("state_dict.shape",
             fmt::format("tensor '{}' is {}, but '{}' takes [{}]", entry.name, describe(*array), entry.parameter, fmt::join(shape, ",")));
    }
    std::vector<float> data = array->toFloats();
    if (entry.transposed) data = transpose(data, static_cast<size_t>(shape[0]), static_cast<size_t>(shape[1]));
    read.insert_or_assign(entry.parameter, std::move(data));
  }
  for (const auto& [name, array] : file.tensors) {
    if (!taken.contains(name) && !name.ends_with("num_batches_tracked")) report.unexpected.push_back(name);
  }
  const std::string remedy = "load with strict = false to take what matches";
  if (options.strict && !report.missing.empty())
    reject("state_dict.missing", fmt::format("the file lacks {}", fmt::join(report.missing, ", ")), remedy);
  if (options.strict && !report.unexpected.empty())
    reject("state_dict.unexpected", fmt::format("the model has no parameter for {}", fmt::join(report.unexpected, ", ")), remedy);
  values = std::move(read);
  return report;
}

}  // namespace lockstep
