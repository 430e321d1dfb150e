// SPDX-License-Identifier: Apache-2.0
// Parameters under the names and in the layout of PyTorch, as in the files of safetensors.torch.save_file(model.state_dict(), path).
#pragma once

#include <string>
#include <vector>

#include "frontend/host.h"
#include "frontend/io/safetensors.h"
#include "frontend/module.h"

namespace lockstep {

struct LoadOptions {
  /// Whether every parameter must be in the file and every tensor of the file in the model.
  bool strict = true;
};

/// What did not match; both empty after a strict load.
struct LoadReport {
  std::vector<std::string> missing;     ///< PyTorch's names of parameters that the file lacks; they keep their values
  std::vector<std::string> unexpected;  ///< tensors that no parameter takes
};

/// A parameter's or buffer's counterpart in a state dict.
struct StateDictEntry {
  std::string parameter;    ///< "layers.0.q.W"
  std::string name;         ///< "layers.0.q.weight"
  TensorType type;          ///< here
  bool transposed = false;  ///< [in, out] here, [out, in] there
};

/// One entry a parameter, then one a buffer. Parameters of the layers of nn get PyTorch's names and layouts:
///   Linear     W [in,out] <-> weight [out,in], b <-> bias
///   LayerNorm, RMSNorm, GroupNorm, BatchNorm  g <-> weight, b <-> bias
///   Embedding  W <-> weight
///   Conv1d, Conv2d, ConvTranspose2d  W <-> weight, b <-> bias
/// Any other keeps its name and layout, and so do buffers (running_mean).
std::vector<StateDictEntry> stateDictEntries(const Module& model);

/// The values as f32 tensors of PyTorch's shapes.
io::TensorFile formatStateDict(const Module& model, const ParameterValues& values);

/// Reads f32, f64, f16 and bf16 tensors over `values`; nothing is changed when it fails. A "num_batches_tracked", which PyTorch counts and
/// does not use, is passed over. Errors: "state_dict.missing" and
/// "state_dict.unexpected" (all of them named; strict only), "state_dict.shape", "state_dict.type".
LoadReport readStateDict(const Module& model, const io::TensorFile& file, LoadOptions options, ParameterValues& values);

}  // namespace lockstep
