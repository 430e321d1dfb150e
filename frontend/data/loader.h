// SPDX-License-Identifier: Apache-2.0
// Batches of a dataset in memory: shuffled anew in each epoch, prepared ahead on a thread of their own.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "frontend/trace/host_values.h"
#include "ir/support/variant.h"
#include "ir/support/where.h"

namespace lockstep {

/// One input of the program for every row of the dataset, row-major: floats for f32, f16 and bf16, bytes for u8.
struct Column {
  std::string name;
  Variant<std::vector<float>, std::vector<int32_t>, std::vector<uint8_t>> values;
};

struct LoaderOptions {
  size_t batch = 64;    ///< rows
  uint64_t seed = 42;   ///< of the order
  bool shuffle = true;  ///< else rows come as they lie
  size_t prefetch = 2;  ///< batches that are prepared ahead; 0: no thread
};

/// The batch of a step depends on dataset, options and step only, so a resumed run sees what the unbroken one would have. The rows that an
/// epoch has over are left out; each epoch leaves out others.
class Loader {
 public:
  /// Every column has the same number of rows. Errors "loader.rows" (columns disagree, or there are fewer rows than in a batch) and
  /// "loader.batch" (0 rows).
  Loader(std::vector<Column> columns, size_t rows, LoaderOptions options = {}, Where where = Where::current());
  Loader(Loader&&) noexcept;
  Loader& operator=(Loader&&) noexcept;
  ~Loader();

  /// Of step `step`, counted from 1; valid until the next call. Steps in order are prepared ahead.
  Batch batch(uint64_t step);
  [[nodiscard]] size_t rows() const;
  [[nodiscard]] uint64_t steps_per_epoch() const;
  /// The rows of a step, as numbers from 0.
  [[nodiscard]] std::vector<uint32_t> rows_of(uint64_t step) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace lockstep
