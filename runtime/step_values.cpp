// SPDX-License-Identifier: Apache-2.0
#include "runtime/step_values.h"

#include <bit>

#include "ir/graph/graph.h"
#include "runtime/memory_array.h"

namespace lockstep::detail {

using graph::DType;

StepValue stepValue(std::string_view name, std::span<const double> values) {
  StepValue made{name, graph::TensorType{DType::F32, graph::Shape{static_cast<int64_t>(values.size())}}, {}};
  for (double value : values) made.words.push_back(std::bit_cast<uint32_t>(static_cast<float>(value)));
  return made;
}

StepValue randomKey(uint64_t seed, uint64_t run) {
  return {graph::kRandomKeyInput,
          graph::TensorType{DType::U32, graph::Shape{4}},  // named: g++ 12 destroys it twice when the next line throws
          {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32), static_cast<uint32_t>(run), static_cast<uint32_t>(run >> 32)}};
}

io::Array toArray(const StepValue& value) { return arrayIn(value.type, std::as_bytes(std::span(value.words))); }

}  // namespace lockstep::detail
