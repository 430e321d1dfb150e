// SPDX-License-Identifier: Apache-2.0
#include "frontend/train/micro_batches.h"

#include <fmt/format.h>

#include <algorithm>

#include "frontend/trace/throw_error.h"
#include "frontend/train/batch.h"

namespace lockstep::detail {

namespace {

/// Elements of one run when the item is to be cut; 0 otherwise.
size_t partSize(const BatchItem& item, const std::vector<InputSpec>& inputs, int64_t count) {
  auto input = std::find_if(inputs.begin(), inputs.end(), [&](const InputSpec& spec) { return spec.name == item.name; });
  if (input == inputs.end()) return 0;
  const size_t given = std::visit([](auto values) { return values.size(); }, item.data), runs = static_cast<size_t>(count);
  if (hasDynamicExtent(*input)) {
    if (given % runs == 0) return given / runs;
    reject("batch.length", fmt::format("input '{}' gets {} elements, which {} runs do not share evenly", input->name, given, runs),
           "give every run of the step the same extent, so that the number of elements is a multiple of the runs");
  }
  const auto declared = static_cast<size_t>(input->type.shape.elementCount());
  return given == declared * runs ? declared : 0;
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
