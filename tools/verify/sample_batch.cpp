// SPDX-License-Identifier: Apache-2.0
#include "tools/verify/sample_batch.h"

#include <cmath>

#include "frontend/nn/init.h"

namespace lockstep::tools {
namespace {

constexpr uint64_t kSeed = 2;

}  // namespace

ValueMap initialParameters(const examples::SampleProgram& sample) {
  ValueMap values;
  const std::vector<NamedParameter> parameters = sample.model->parameters();
  for (uint32_t i = 0; i < parameters.size(); ++i) {
    const std::vector<float> initial = parameters[i].parameter->initial(kSeed, i);
    values.emplace(parameters[i].name, std::vector<double>(initial.begin(), initial.end()));
  }
  return values;
}

ValueMap stepInputs(const examples::SampleProgram& sample, const passes::OptimizerConfig& config, int64_t step) {
  ValueMap inputs;
  for (uint32_t i = 0; i < sample.inputs.size(); ++i) {
    const InputSpec& input = sample.inputs[i];
    std::vector<double> values;
    for (uint32_t k = 0; k < static_cast<uint32_t>(input.type.shape.elementCount()); ++k) {
      const double unit = std::ldexp(static_cast<double>(random::words({k, i, static_cast<uint32_t>(step), 7}, {kSeed, 0})[0] >> 8), -24);
      values.push_back(input.type.dtype == DType::F32 ? unit : std::floor(unit * static_cast<double>(sample.integers)));
    }
    inputs.emplace(input.name, std::move(values));
  }
  const auto scalars = passes::stepScalars(config, rateAt(sample.optimizer.lr, step), static_cast<uint64_t>(step));
  inputs.emplace(passes::kScalarsInput, std::vector<double>(scalars.begin(), scalars.end()));
  inputs.emplace(graph::kRandomKeyInput, std::vector<double>{static_cast<double>(kSeed), 0, static_cast<double>(step), 0});
  return inputs;
}

}  // namespace lockstep::tools
