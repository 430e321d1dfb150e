// SPDX-License-Identifier: Apache-2.0
#include "frontend/train/state_dict.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <set>

#include "frontend/nn/nn.h"
#include "ir/support/diagnostic.h"
#include "ir/support/nearest.h"
#include "runtime/memory_array.h"

namespace lockstep {

namespace {

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
    Row{isLayer<nn::Linear>, "W", "weight", true},
    Row{isLayer<nn::Linear>, "b", "bias"},
    Row{isLayer<nn::LayerNorm>, "g", "weight"},
    Row{isLayer<nn::LayerNorm>, "b", "bias"},
    Row{isLayer<nn::RMSNorm>, "g", "weight"},
    Row{isLayer<nn::GroupNorm>, "g", "weight"},
    Row{isLayer<nn::GroupNorm>, "b", "bias"},
    Row{isLayer<nn::BatchNorm>, "g", "weight"},
    Row{isLayer<nn::BatchNorm>, "b", "bias"},
    Row{isLayer<nn::Embedding>, "W", "weight"},
    Row{isLayer<nn::Conv1d>, "W", "weight"},
    Row{isLayer<nn::Conv1d>, "b", "bias"},
    Row{isLayer<nn::Conv2d>, "W", "weight"},
    Row{isLayer<nn::Conv2d>, "b", "bias"},
    Row{isLayer<nn::ConvTranspose2d>, "W", "weight"},
    Row{isLayer<nn::ConvTranspose2d>, "b", "bias"},
    // Layers are cells too, and the first row that fits is taken.
    Row{isLayer<nn::LSTM>, "W_ih", "weight_ih_l0", true},
    Row{isLayer<nn::LSTM>, "W_hh", "weight_hh_l0", true},
    Row{isLayer<nn::LSTM>, "b_ih", "bias_ih_l0"},
    Row{isLayer<nn::LSTM>, "b_hh", "bias_hh_l0"},
    Row{isLayer<nn::GRU>, "W_ih", "weight_ih_l0", true},
    Row{isLayer<nn::GRU>, "W_hh", "weight_hh_l0", true},
    Row{isLayer<nn::GRU>, "b_ih", "bias_ih_l0"},
    Row{isLayer<nn::GRU>, "b_hh", "bias_hh_l0"},
    Row{isLayer<nn::RecurrentParameters>, "W_ih", "weight_ih", true},
    Row{isLayer<nn::RecurrentParameters>, "W_hh", "weight_hh", true},
    Row{isLayer<nn::RecurrentParameters>, "b_ih", "bias_ih"},
    Row{isLayer<nn::RecurrentParameters>, "b_hh", "bias_hh"},
};

template <class T>
std::vector<T> transpose(const std::vector<T>& values, size_t rows, size_t columns) {
  std::vector<T> turned(values.size());
  for (size_t row = 0; row < rows; ++row) {
    for (size_t column = 0; column < columns; ++column) turned[column * rows + row] = values[row * columns + column];
  }
  return turned;
}

/// The name up to and with its last dot; empty without one.
std::string_view prefixOf(std::string_view name) { return name.substr(0, name.rfind('.') + 1); }

/// PyTorch has the projections of queries, keys and values in one tensor.
void placeInAttention(const Parameter& parameter, StateDictEntry& entry) {
  const auto* attention = dynamic_cast<const nn::MultiHeadAttention*>(parameter.owner().parent());
  if (attention == nullptr) return;
  const std::string_view layer = prefixOf(entry.name);
  const std::string stem(prefixOf(layer.substr(0, layer.size() - 1)));
  const std::string last = entry.name.substr(layer.size());
  const std::array projections{&attention->q, &attention->k, &attention->v};
  const bool alike = std::ranges::all_of(projections, [&](const nn::Linear* one) { return one->W.type() == attention->q.W.type(); });
  const auto projection = std::ranges::find(projections, &parameter.owner());
  if (&parameter.owner() == &attention->o) entry.name = stem + "out_proj." + last;
  if (projection == projections.end() || !alike) return;
  entry.name = stem + "in_proj_" + last;
  entry.part = projection - projections.begin();
  entry.parts = std::ssize(projections);
}

/// PyTorch's recurrent layers have the weights of all their cells side by side: "gru.l1_reverse.weight_ih" is "gru.weight_ih_l1_reverse".
void placeInRecurrentLayer(const Parameter& parameter, StateDictEntry& entry) {
  const Module* layer = parameter.owner().parent();
  if (layer == nullptr || !(isLayer<nn::LSTM>(*layer) || isLayer<nn::GRU>(*layer))) return;
  const std::string_view cell = prefixOf(entry.name);
  const std::string_view stem = prefixOf(cell.substr(0, cell.size() - 1));
  const std::string_view number = cell.substr(stem.size(), cell.size() - stem.size() - 1);
  entry.name = fmt::format("{}{}_{}", stem, entry.name.substr(cell.size()), number);
}

/// The shape of the whole tensor there.
std::vector<int64_t> theirShape(const StateDictEntry& entry) {
  std::vector<int64_t> extents = entry.type.shape.extents();
  if (entry.transposed) std::ranges::reverse(extents);
  if (entry.parts > 1) extents.front() *= entry.parts;
  return extents;
}

/// Integer buffers take any whole numbers of a file, parameters floats.
bool takes(const StateDictEntry& entry, io::ElementType type) {
  return graph::isFloat(entry.type.dtype) == io::isFloat(type) && type != io::ElementType::Bool;
}

}  // namespace

std::vector<StateDictEntry> stateDictEntries(const Module& model) {
  std::vector<StateDictEntry> entries;
  for (const NamedParameter& named : model.parameters()) {
    StateDictEntry entry{named.name, named.name, named.parameter->type()};
    const size_t start = named.name.rfind('.') + 1;  // 0 without a dot
    const std::string_view last = std::string_view(named.name).substr(start);
    const auto row = std::ranges::find_if(kRows, [&](const Row& one) { return one.ours == last && one.layer(named.parameter->owner()); });
    if (row != kRows.end()) {
      entry.name = named.name.substr(0, start) + std::string(row->theirs);
      entry.transposed = row->transposed;
    }
    placeInAttention(*named.parameter, entry);
    placeInRecurrentLayer(*named.parameter, entry);
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
    io::Array part = detail::encodeArray(entry.type, data);
    io::Array& whole = file.tensors.try_emplace(entry.name, io::Array{part.type, theirShape(entry), {}}).first->second;
    // The parts of one tensor are entries in their order.
    whole.data.insert(whole.data.end(), part.data.begin(), part.data.end());
  }
  return file;
}

namespace {

/// One message for both lists: mostly a name on one of them stands for a name on the other.
Diagnostic describeNames(const LoadReport& report) {
  const std::string missing = fmt::format("the file lacks {}", fmt::join(report.missing, ", "));
  const std::string unexpected = fmt::format("{}has {}, which no parameter of the model takes",
                                             report.missing.empty() ? "the file " : " and ", fmt::join(report.unexpected, ", "));
  Diagnostic diagnostic{.code = report.missing.empty() ? "state_dict.unexpected" : "state_dict.missing",
                        .message = (report.missing.empty() ? "" : missing) + (report.unexpected.empty() ? "" : unexpected),
                        .where = {},
                        .notes = {},
                        .remedy = "give parts of the model the names of the file, or load with strict = false to take what matches"};
  for (const std::string& name : report.missing) {
    if (const std::string near = nearestName(name, report.unexpected); !near.empty())
      diagnostic.notes.push_back({fmt::format("'{}' may be '{}' of the file", name, near), {}});
  }
  return diagnostic;
}

}  // namespace

LoadReport readStateDict(const Module& model, const io::TensorFile& file, LoadOptions options, ParameterValues& values) {
  LoadReport report;
  std::vector<Diagnostic> wrong;
  ParameterValues read = values;
  std::set<std::string> taken;
  for (const StateDictEntry& entry : stateDictEntries(model)) {
    const io::Array* array = file.find(entry.name);
    if (array == nullptr) {
      if (entry.part == 0) report.missing.push_back(entry.name);
      continue;
    }
    taken.insert(entry.name);
    const std::vector<int64_t> shape = theirShape(entry);
    if (!takes(entry, array->type)) {
      if (entry.part == 0)
        wrong.push_back({.code = "state_dict.type",
                         .message = fmt::format("tensor '{}' is {}, but '{}' takes {}", entry.name, describe(*array), entry.parameter,
                                                toString(entry.type.dtype)),
                         .where = {},
                         .notes = {},
                         .remedy = "save the state dict with that type"});
      continue;
    }
    if (array->shape != shape) {
      if (entry.part == 0)
        wrong.push_back({.code = "state_dict.shape",
                         .message = fmt::format("tensor '{}' is {}, but '{}' takes [{}]", entry.name, describe(*array), entry.parameter,
                                                fmt::join(shape, ",")),
                         .where = {},
                         .notes = {},
                         .remedy = "declare the layer as large as it is in the file"});
      continue;
    }
    const std::vector<float> whole = array->toFloats();
    const auto count = static_cast<ptrdiff_t>(entry.type.shape.elementCount());
    const auto begin = whole.begin() + entry.part * count;
    std::vector<float> data(begin, begin + count);
    if (entry.transposed)
      data = transpose(data, static_cast<size_t>(entry.type.shape.extent(1)), static_cast<size_t>(entry.type.shape.extent(0)));
    read.insert_or_assign(entry.parameter, std::move(data));
  }
  for (const auto& [name, array] : file.tensors) {
    if (!taken.contains(name) && !name.ends_with("num_batches_tracked")) report.unexpected.push_back(name);
  }
  if (options.strict && !(report.missing.empty() && report.unexpected.empty())) wrong.insert(wrong.begin(), describeNames(report));
  if (!wrong.empty()) throw Error(std::move(wrong));
  values = std::move(read);
  return report;
}

}  // namespace lockstep
