// SPDX-License-Identifier: Apache-2.0
// Products of one row with different weights, each of which needs the one before, as a language model computes them for a token:
// x [1, inner] times the weight [columns, inner], of f32, bf16, int8 with a scale per row, and int4 with a scale per group of 32.
// usage: bench_decode_products [DEVICE] [COUNT [INNER COLUMNS]]   (auto, 32 weights of 2048 to 8192)
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "frontend/lockstep.h"

namespace {

using Clock = std::chrono::steady_clock;
enum class Kind { F32, Bf16, Int8, Int4 };
struct KindFacts {
  Kind kind;
  const char* name;
  double bytes;  ///< per element of the weight, with its share of the scales
};
constexpr int64_t kGroup = 32;

struct Shape {
  int64_t count = 32, inner = 2048, columns = 8192;
};

struct Chain : ls::Module {
  struct Weight {
    std::unique_ptr<ls::Buffer> values, scales;
  };
  Chain(Kind kind, Shape shape) : kind_(kind), shape_(shape) {
    for (int64_t i = 0; i < shape.count; ++i) {
      const auto buffer = [&](const char* name, const std::vector<int64_t>& extents, double value, ls::DType dtype) {
        return std::make_unique<ls::Buffer>(*this, fmt::format("{}{}", name, i), extents, value, dtype);
      };
      const int64_t n = shape.columns, k = shape.inner;
      // Each result is about what it was made of: numbers that grow end as infinities, which take another way.
      const double even = 1.0 / static_cast<double>(k);
      switch (kind) {
        case Kind::F32:
          weights_.push_back({buffer("w", {n, k}, even, ls::DType::F32), nullptr});
          break;
        case Kind::Bf16:
          weights_.push_back({buffer("w", {n, k}, even, ls::DType::BF16), nullptr});
          break;
        case Kind::Int8:
          weights_.push_back({buffer("w", {n, (k + 3) / 4}, 0x03030303, ls::DType::U32), buffer("s", {n, 1}, even / 3, ls::DType::F32)});
          break;
        case Kind::Int4:
          weights_.push_back({buffer("w", {n, (k + 7) / 8}, 0x13131313, ls::DType::U32),
                              buffer("s", {n, (k + kGroup - 1) / kGroup}, even / 2, ls::DType::BF16)});
          break;
      }
    }
  }

  [[nodiscard]] ls::Tensor operator()(ls::Tensor x) const {
    ls::Tensor y;
    for (const Weight& weight : weights_) {
      y = product(x, weight);
      x = ls::narrow(y, 1, 0, shape_.inner);
    }
    return y;
  }

 private:
  [[nodiscard]] ls::Tensor product(ls::Tensor x, const Weight& weight) const {
    switch (kind_) {
      case Kind::F32:
        return ls::matmul(x, ls::swap_axes(*weight.values, 0, 1));
      case Kind::Bf16:
        return ls::matmul(x, ls::swap_axes(ls::cast(*weight.values, ls::f32), 0, 1));
      case Kind::Int8:
        return ls::quantized_matmul(x, *weight.values, *weight.scales, {.bits = 8, .group = shape_.inner});
      case Kind::Int4:
        return ls::quantized_matmul(x, *weight.values, *weight.scales, {.bits = 4, .group = kGroup});
    }
    return {};
  }

  Kind kind_;
  Shape shape_;
  std::vector<Weight> weights_;
};

double secondsPerProduct(const std::string& device, Kind kind, Shape shape) {
  auto chain = ls::forward<Chain>({.inputs = {{"x", ls::f32(1, shape.inner)}},
                                   .forward = [](const Chain& chain, const ls::Inputs& in) { return ls::Outputs(chain(in["x"])); },
                                   .device = device,
                                   .seed = 1,
                                   .make = [=] { return std::make_unique<Chain>(kind, shape); }});
  const std::vector<float> x(static_cast<size_t>(shape.inner), 1.0f);
  std::vector<double> seconds;
  const auto begin = Clock::now();
  // The first half warms up: clocks that fell while nothing ran stay low for a while.
  while (seconds.size() < 5 || Clock::now() - begin < std::chrono::seconds(1)) {
    const auto start = Clock::now();
    if (start - begin < std::chrono::milliseconds(500)) seconds.clear();
    (void)chain.run({{"x", x}});
    seconds.push_back(std::chrono::duration<double>(Clock::now() - start).count() / static_cast<double>(shape.count));
  }
  std::ranges::nth_element(seconds, seconds.begin() + static_cast<ptrdiff_t>(seconds.size() / 2));
  return seconds[seconds.size() / 2];
}

}  // namespace

int main(int count, char** arguments) {
  Shape shape;
  const std::string device = count > 1 ? arguments[1] : "auto";
  if (count > 2) shape.count = std::max(1, std::atoi(arguments[2]));
  if (count > 4) shape.inner = std::max(1, std::atoi(arguments[3])), shape.columns = std::max(1, std::atoi(arguments[4]));
  if (shape.columns < shape.inner) {
    fmt::print(stderr, "bench_decode_products: {} columns feed {} elements of the next row, wanted at least as many\n", shape.columns,
               shape.inner);
    return 2;
  }
  try {
    for (const KindFacts& facts : {KindFacts{Kind::F32, "f32", 4}, KindFacts{Kind::Bf16, "bf16", 2},
                                   KindFacts{Kind::Int8, "int8, scale per row", 1 + 4.0 / static_cast<double>(shape.inner)},
                                   KindFacts{Kind::Int4, "int4, groups of 32", 0.5 + 2.0 / kGroup}}) {
      const double seconds = secondsPerProduct(device, facts.kind, shape);
      const double bytes = facts.bytes * static_cast<double>(shape.inner * shape.columns);
      fmt::print("{:20} {:>9.1f} us per product  {:>7.0f} GB/s of weights\n", facts.name, seconds * 1e6, bytes / seconds / 1e9);
      std::fflush(stdout);
    }
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
}
