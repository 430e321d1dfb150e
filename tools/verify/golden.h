// SPDX-License-Identifier: Apache-2.0
// Golden files: operands and results of single ops, or a whole training run, computed by an independent implementation.
//   ops:   __metadata__[case] = {"op", "attrs"}; <case>/in/<operand>, <case>/out/<result>, <case>/cotangent/<result>, <case>/grad/<operand>
//   train: __metadata__[model] = {"optimizer": {...}}; init/<parameter>, batchNNNN/<input>, losses, grad_norms, grad1/<parameter>,
//          final/<parameter>
// Reading checks that every tensor has its place; anything else is a damaged file.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "frontend/io/safetensors.h"
#include "ir/graph/graph.h"
#include "ir/support/result.h"
#include "passes/graph/optimizer_config.h"

namespace lockstep::tools {

using ArrayMap = std::map<std::string, io::Array, std::less<>>;

struct GoldenCase {
  std::string name;
  std::string op;
  graph::Attributes attributes = {};  ///< whole numbers as int64_t, other numbers as double, lists of whole numbers as vectors
  ArrayMap inputs = {}, outputs = {};
  ArrayMap cotangents = {};  ///< one an output, or none at all
  ArrayMap gradients = {};   ///< d sum(output * cotangent) / d input, of the inputs that have one
};

struct GoldenTraining {
  std::string model;  ///< "mlp_sin": the file's name without "train_"
  passes::OptimizerConfig optimizer;
  std::function<double(int64_t)> rate;             ///< learning rate of a step, 1-based
  std::function<bool(const std::string&)> decays;  ///< whether weight decay applies to a parameter
  ArrayMap initial;                                ///< parameters; flat in recordings of other programs
  std::vector<ArrayMap> batches;                   ///< inputs of each step
  std::vector<double> losses;                      ///< of each step, before its update
  ArrayMap first_gradients;                        ///< of step 1; empty when not recorded
  ArrayMap final;                                  ///< after the last step
  bool recorded_in_f32 = false;                    ///< the source itself rounded to f32, so even an exact run differs
};

/// Either a training or cases.
struct GoldenFile {
  std::vector<GoldenCase> cases = {};  ///< sorted by name
  std::optional<GoldenTraining> training = {};
};

/// Codes golden.metadata, golden.tensor, golden.case, golden.train, and those of io::readSafetensors.
Result<GoldenFile> readGolden(const std::filesystem::path& path);
Result<GoldenFile> interpretGolden(const io::TensorFile& file, const std::string& name);

}  // namespace lockstep::tools
