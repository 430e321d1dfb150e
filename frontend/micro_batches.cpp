// SPDX-License-Identifier: Apache-2.0
#include "frontend/micro_batches.h"

#include <algorithm>

namespace lockstep::detail {

namespace {

/// Elements of one run when the item is to be cut; 0 otherwise.
size_t partSize(const BatchItem& item, const std::vector<InputSpec>& inputs, int64_t count) {
  auto input = std::find_if(inputs.begin(), inputs.end(), [&](const InputSpec& spec) { return spec.name == item.name; });
  if (input == inputs.end()) return 0;
  auto declared = static_cast<size_t>(input->type.shape.elementCount());
  size_t given = std::visit([](auto values) { return values.size(); }, item.data);
  return given == declared * static_cast<size_t>(count) ? declared : 0;
}

}  // namespace

std::vector<Batch> microBatches(const Batch& batch, const std::vector<InputSpec>& inputs, int64_t count) {
  std::vector<Batch> runs(static_cast<size_t>(count), batch);
  if (count == 1) return runs;
  for (size_t i = 0; i < batch.size(); ++i) {
    const size_t size = partSize(batch[i], inputs, count);
    if (size == 0) continue;
    for (size_t run = 0; run < runs.size(); ++run) {
      BatchItem& item = runs[run][i];
      std::visit([&](auto& values) { values = values.subspan(run * size, size); }, item.data);
    }
  }
  return runs;
}

}  // namespace lockstep::detail
