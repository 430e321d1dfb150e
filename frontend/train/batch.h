// SPDX-License-Identifier: Apache-2.0
// Private to the front end: a batch against the declared inputs. All errors are thrown before anything is submitted.
#pragma once

#include <vector>

#include "frontend/io/array.h"
#include "frontend/trace/host_values.h"
#include "ir/support/where.h"

namespace lockstep::detail {

/// What is wrong with declared inputs: Error "compile.input" for a name that is empty, taken or reserved, for bool, and for more than one
/// dynamic extent in one input.
void checkDeclarations(const std::vector<InputSpec>& inputs, const Where& where);

[[nodiscard]] bool hasDynamicExtent(const InputSpec& input);
/// The same inputs with every dynamic extent replaced.
std::vector<InputSpec> withExtent(std::vector<InputSpec> inputs, int64_t extent);

/// A batch whose items were found and checked.
struct MatchedBatch {
  std::vector<const BatchItem*> items;  ///< of each input, in the order of declaration
  int64_t extent = 0;                   ///< what the dynamic extents are in this call; 0: there are none
};
/// Errors "batch.missing", "batch.unknown", "batch.twice", "batch.type", "batch.length" (wrong, or no multiple of the other extents) and
/// "batch.extent" (dynamic extents that do not agree).
MatchedBatch matchBatch(const std::vector<InputSpec>& inputs, const Batch& batch);

/// Whether the data of such an input is not yet what memory holds: floats for f16 or bf16.
bool needsRounding(graph::DType dtype);
std::span<const std::byte> bytesOf(const BatchItem& item);
/// The data of a matched item as elements of the input's type, on one axis.
io::Array toArray(const BatchItem& item, graph::DType dtype);

}  // namespace lockstep::detail
