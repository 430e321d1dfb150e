// SPDX-License-Identifier: Apache-2.0
// The options of a verb that say how a device keeps weights, keys and values.
#pragma once

#include <optional>
#include <string>

#include "console/options.h"
#include "frontend/nn/weight_format.h"

namespace lockstep::tools {

/// As they were written.
class WeightChoices {
 public:
  /// `of`: what the help begins with, where the verb has other things than language models.
  void addTo(console::Options& options, const std::string& of = {});
  /// None: nothing was written, and the folder says. A failure of usage for a word that is no format.
  [[nodiscard]] Result<std::optional<nn::WeightFormat>> weights() const;
  [[nodiscard]] Result<graph::DType> cache() const;
  [[nodiscard]] bool areSaid() const { return !weights_.empty() || cache_ != "f32"; }

 private:
  std::string weights_, cache_ = "f32";
};

}  // namespace lockstep::tools
