// SPDX-License-Identifier: Apache-2.0
// Private to the front end: the model that a trainer trains now, as its forwards see it.
#pragma once

#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "frontend/trace/module.h"
#include "frontend/train/forward.h"
#include "ir/graph/graph.h"
#include "passes/graph/optimizer_config.h"
#include "runtime/checkpoint_file.h"
#include "runtime/device_states.h"

namespace lockstep::detail {

/// One model with its optimizer and states. Immutable but for the values of the states; replaced as a whole.
struct TrainedModel {
  std::shared_ptr<const Module> module;
  std::vector<graph::ParameterInfo> parameters;
  graph::ParameterLayout layout;  ///< of all parameters
  passes::OptimizerConfig config;
  CheckpointForm form;
  std::shared_ptr<States> states;
};

class SharedModel {
 public:
  explicit SharedModel(std::shared_ptr<const TrainedModel> model) : model_(std::move(model)) {}
  [[nodiscard]] std::shared_ptr<const TrainedModel> get() const {
    std::lock_guard lock(mutex_);
    return model_;
  }
  void set(std::shared_ptr<const TrainedModel> model) {
    std::lock_guard lock(mutex_);
    model_ = std::move(model);
  }

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<const TrainedModel> model_;
};

/// A forward of a model that others may replace. Errors of checkFunction() and of its compilation.
Forward makeForward(ForwardRequest request, const Device& device, const std::shared_ptr<SharedModel>& model);

}  // namespace lockstep::detail
