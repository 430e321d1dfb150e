// SPDX-License-Identifier: Apache-2.0
// The matrix of a layer.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "frontend/nn/weight_format.h"
#include "frontend/trace/module.h"
#include "frontend/trace/tensor.h"

namespace lockstep::nn {

/// Which axis of a matrix a product with it sums over.
enum class SumAxis : uint8_t {
  First,  ///< [in, out]: x · W
  Last,   ///< [rows, width], a table: x · Wᵀ
};

struct WeightOptions {
  Initializer init = init::randn();
  std::optional<bool> decay = {};
  WeightFormat format = {};
  SumAxis sums = SumAxis::First;
  /// Floats of 16 bits are kept as the transpose, so that a sum reads neighbours: best for products of one row. Of a table they are.
  bool keeps_sums_together = false;
};

/// A parameter; or, in another format than f32, the same numbers with fewer bits in buffers, which are not trained and begin as zeros.
/// Where `name` is W, floats of 16 bits are a buffer W of the same shape, or W_transposed (WeightOptions::keeps_sums_together); whole
/// numbers are W_words, u32 [N, ceil(K bits / 32)] with the first of a word in its lowest bits, and W_scales [N, groups], for N sums of K
/// terms. Inside a trace it converts to its Tensor, f32.
class Weight {
 public:
  /// Errors of Parameter.
  Weight(Module& owner, const std::string& name, int64_t rows, int64_t columns, const WeightOptions& options = {},
         Where where = Where::current());

  operator Tensor() const { return tensor(where_); }
  /// All of it as f32. What only multiplies or looks up reads fewer bytes by product() and rows().
  [[nodiscard]] Tensor tensor(Where where = Where::current()) const;
  /// x [..., K] to [..., N], with sums in f32.
  [[nodiscard]] Tensor product(const Tensor& x, Where where = Where::current()) const;
  /// The rows of a table at i32 indices, f32 [indices..., width].
  [[nodiscard]] Tensor rows(const Tensor& indices, Where where = Where::current()) const;

  /// f32, whatever the format.
  [[nodiscard]] const TensorType& type() const { return type_; }
  [[nodiscard]] const WeightFormat& format() const { return options_.format; }
  [[nodiscard]] SumAxis sums() const { return options_.sums; }
  /// Whether floats of 16 bits are kept as the transpose.
  [[nodiscard]] bool is_turned() const { return options_.sums == SumAxis::First && options_.keeps_sums_together; }
  [[nodiscard]] std::string path() const;
  /// Error "weight.parameter" where the format is not f32.
  [[nodiscard]] const Parameter& parameter() const;
  [[nodiscard]] bool decay() const { return parameter().decay(); }
  [[nodiscard]] std::vector<float> initial(uint64_t seed, uint32_t index) const { return parameter().initial(seed, index); }

 private:
  /// Of so many rows of words and of scales.
  [[nodiscard]] Tensor dequantized(const Tensor& words, const Tensor& scales, const Where& where) const;
  [[nodiscard]] bool isQuantized() const { return options_.format.bits() > 0; }
  [[nodiscard]] int64_t sumLength() const { return type_.shape.extent(options_.sums == SumAxis::First ? 0 : 1); }

  TensorType type_;
  WeightOptions options_;
  Where where_;
  std::unique_ptr<Parameter> parameter_;       ///< null in other formats than f32
  std::vector<std::unique_ptr<Buffer>> kept_;  ///< then: floats of 16 bits; or words, and scales
};

}  // namespace lockstep::nn
