// SPDX-License-Identifier: Apache-2.0
#include "frontend/llm/weight_names.h"

#include <fmt/format.h>

#include <algorithm>

#include "frontend/llm/language_model.h"

namespace lockstep::llm {
namespace {

constexpr std::string_view kHole = "{}";

/// "layers.12.norm1.g" as "layers.{}.norm1.g" and "12".
std::pair<std::string, std::string> patternOf(const std::string& name) {
  constexpr std::string_view kLayers = "layers.";
  if (!name.starts_with(kLayers)) return {name, ""};
  const size_t end = name.find('.', kLayers.size());
  const std::string number = name.substr(kLayers.size(), end - kLayers.size());
  return {std::string(kLayers) + std::string(kHole) + name.substr(end), number};
}

std::string filled(std::string_view pattern, const std::string& number) {
  std::string name(pattern);
  if (const size_t hole = name.find(kHole); hole != std::string::npos) name.replace(hole, kHole.size(), number);
  return name;
}

}  // namespace

std::vector<float> transposed(std::span<const float> values, size_t rows, size_t columns) {
  constexpr size_t kBlock = 32;
  std::vector<float> turned(values.size());
  for (size_t row = 0; row < rows; row += kBlock) {
    for (size_t column = 0; column < columns; column += kBlock) {
      for (size_t r = row; r < std::min(row + kBlock, rows); ++r) {
        for (size_t c = column; c < std::min(column + kBlock, columns); ++c) turned[c * rows + r] = values[r * columns + c];
      }
    }
  }
  return turned;
}

std::vector<int64_t> WeightTensor::theirs() const {
  std::vector<int64_t> shape = ours;
  if (layout == Layout::Transposed) std::ranges::reverse(shape);
  if (layout == Layout::Taps) shape.insert(shape.begin() + 1, 1);
  return shape;
}

namespace {

Result<std::vector<WeightTensor>> tensorsOf(const LanguageModel& model, const LanguageConfig& config, const Family& family) {
  std::vector<WeightTensor> tensors;
  // Parameters that share a tensor are declared next to each other, in the order of its parts.
  for (const NamedParameter& named : model.parameters()) {
    const auto [pattern, number] = patternOf(named.name);
    const NameRow* row = nullptr;
    for (const std::span<const NameRow> rows : family.names) {
      const auto found = std::ranges::find(rows, std::string_view(pattern), &NameRow::ours);
      if (found != rows.end()) row = &*found;
    }
    if (row == nullptr) {
      return fail("language_weights.config", fmt::format("files of type '{}' have no tensor for '{}'", config.family, named.name), {},
                  "use a config of that family as it was read, or save a checkpoint of the trainer");
    }
    const graph::TensorType& type = named.parameter->type();
    const std::string name = filled(row->theirs, number);
    auto found = std::ranges::find(tensors, name, &WeightTensor::name);
    if (found == tensors.end()) {
      tensors.push_back({.name = name, .layout = row->layout, .parts = {}, .ours = type.shape.extents()});
      tensors.back().ours.back() = 0;
      found = tensors.end() - 1;
    }
    const int64_t columns = type.shape.extents().back();
    found->parts.push_back({.parameter = named.name, .type = type, .columns = columns});
    found->ours.back() += columns;
  }
  return tensors;
}

}  // namespace

Result<std::vector<WeightTensor>> weightTensors(const LanguageConfig& config, const Family& family) {
  LanguageConfig plain = config;
  plain.weights = {};
  try {
    return tensorsOf(LanguageModel(plain), config, family);
  } catch (const Error& error) {  // a size that no tensor can have
    return Failure{.diagnostics = error.diagnostics(), .exit_code = error.exitCode()};
  }
}

std::vector<float> toOurs(const WeightTensor& tensor, std::vector<float> values) {
  if (tensor.layout != Layout::Transposed) return values;
  return transposed(values, static_cast<size_t>(tensor.ours[1]), static_cast<size_t>(tensor.ours[0]));
}

std::vector<float> toTheirs(const WeightTensor& tensor, std::vector<float> values) {
  if (tensor.layout != Layout::Transposed) return values;
  return transposed(values, static_cast<size_t>(tensor.ours[0]), static_cast<size_t>(tensor.ours[1]));
}

}  // namespace lockstep::llm
