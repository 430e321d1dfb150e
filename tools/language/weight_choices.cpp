// SPDX-License-Identifier: Apache-2.0
#include "tools/language/weight_choices.h"

#include <fmt/format.h>

namespace lockstep::tools {

void WeightChoices::addTo(console::Options& options, const std::string& of) {
  options.value(weights_, "--weights",
                fmt::format("{}how the device keeps matrices: {}; by default as the folder says, mostly f32", of, nn::kWeightFormats));
  options.choices("--weights", {"f32", "f16", "bf16", "int8", "int4", "int4:128"});
  options.value(cache_, "--cache", of + "how it keeps keys and values: f32, f16 or bf16");
  options.choices("--cache", {"f32", "f16", "bf16"});
}

Result<std::optional<nn::WeightFormat>> WeightChoices::weights() const {
  if (weights_.empty()) return std::optional<nn::WeightFormat>();
  LS_TRY(const nn::WeightFormat format, console::asUsage(nn::WeightFormat::parse(weights_)));
  return std::optional(format);
}

Result<graph::DType> WeightChoices::cache() const {
  // The formats that are floats have the names of their types.
  const Result<nn::WeightFormat> format = nn::WeightFormat::parse(cache_);
  if (format.ok() && format->bits() == 0) return format->dtype();
  return console::usage("value", fmt::format("--cache '{}' is no type of keys and values", cache_), "it is f32, f16 or bf16");
}

}  // namespace lockstep::tools
