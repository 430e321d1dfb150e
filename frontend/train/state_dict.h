// SPDX-License-Identifier: Apache-2.0
// Parameters under the names and in the layout of PyTorch, as in the files of safetensors.torch.save_file(model.state_dict(), path).
#pragma once

#include <string>
#include <vector>

#include "frontend/io/safetensors.h"
#include "frontend/trace/host_values.h"
#include "frontend/trace/module.h"

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
  std::string parameter;        ///< "layers.0.q.W"
  std::string name;             ///< "layers.0.q.weight"
  TensorType type;              ///< here
  bool transposed = false;      ///< [in, out] here, [out, in] there
  int64_t part = 0, parts = 1;  ///< it is this one of so many equal parts along axis 0 there
};

/// One entry per parameter, then one per buffer. Parameters of the layers of nn get PyTorch's names and layouts:
///   Linear     W [in,out] <-> weight [out,in], b <-> bias
///   LayerNorm, RMSNorm, GroupNorm, BatchNorm  g <-> weight, b <-> bias
///   Embedding  W <-> weight
///   Conv1d, Conv2d, ConvTranspose2d  W <-> weight, b <-> bias
///   LSTM, GRU  W_ih [in, gates hidden] <-> weight_ih_l0 [gates hidden, in], W_hh <-> weight_hh_l0, b_ih <-> bias_ih_l0, b_hh <->
///   bias_hh_l0;
///              gates have PyTorch's order; of LSTMCell and GRUCell the names have no _l0
///   MultiHeadAttention  q, k, v <-> in_proj_weight [3 width, width] and in_proj_bias where all three are equally wide, else as Linear;
///                       o <-> out_proj
/// Any other keeps its name and layout, and so do buffers (running_mean). The parts of a TransformerBlock (ln1, attn, ln2, mlp.up, …) keep
/// their names, and each is translated by its own line.
std::vector<StateDictEntry> stateDictEntries(const Module& model);

/// The values as tensors of PyTorch's shapes, f32 or the integer type of a buffer.
io::TensorFile formatStateDict(const Module& model, const ParameterValues& values);

/// Reads f32, f64, f16 and bf16 tensors over `values`, and i32, u32 and i64 for integer buffers; nothing is changed when it fails. A
/// "num_batches_tracked" that no buffer takes, which PyTorch counts and mostly does not use, is passed over; it is not written either, and
/// PyTorch fills it in. One Error has all that is wrong: "state_dict.missing" or, when nothing is missing, "state_dict.unexpected" (strict
/// only; its message names what is missing and what is unexpected), and each "state_dict.shape" and "state_dict.type".
LoadReport readStateDict(const Module& model, const io::TensorFile& file, LoadOptions options, ParameterValues& values);

}  // namespace lockstep
