// SPDX-License-Identifier: Apache-2.0
// The options of a verb that say how tokens are chosen.
#pragma once

#include <string>

#include "console/options.h"
#include "frontend/llm/sampling.h"

namespace lockstep::tools {

/// As they were written; empty is what the model's folder says.
class SamplingChoices {
 public:
  void addTo(console::Options& options);
  /// With what generation_config.json says where nothing was written. A setting that only matters when sampling switches that on.
  [[nodiscard]] Result<llm::SamplingOptions> with(const llm::LanguageConfig& config) const;

 private:
  std::string temperature_, top_k_, top_p_, min_p_, penalty_, seed_;
  bool greedy_ = false;
};

}  // namespace lockstep::tools
