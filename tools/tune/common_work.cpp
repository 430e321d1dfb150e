// SPDX-License-Identifier: Apache-2.0
#include "tools/tune/common_work.h"

#include <array>
#include <span>
#include <string>
#include <utility>

#include "ir/graph/builder.h"

namespace lockstep::tools {
namespace {

using graph::Builder;
using graph::DType;
using graph::ValueId;

struct Size {
  int64_t rows, columns;
};
constexpr int64_t kSmallestSquare = 128, kLargestSquareGpu = 4096, kLargestSquareCpu = 512;
constexpr std::array kSizesGpu{Size{16384, 16}, Size{8192, 64}, Size{2048, 512}, Size{8192, 1024}, Size{4096, 4096}};
constexpr std::array kSizesCpu{Size{4096, 16}, Size{1024, 64}, Size{256, 512}, Size{64, 4096}};

ValueId input(Builder& b, const std::string& name, std::vector<int64_t> shape, DType dtype = DType::F32) {
  return b.make("input", {}, {{"name", name}, {"dtype", dtype}, {"shape", std::move(shape)}});
}

graph::Graph product(int64_t m, int64_t n, int64_t k) {
  Builder b;
  const ValueId left = input(b, "a", {m, k}), right = input(b, "b", {k, n});
  b.output(graph::OutputKind::Result, "c", b.make("matmul", {left, right}));
  return b.take();
}

/// Square products, those of a batch of rows with a layer, and their gradients' shapes.
void addProducts(std::vector<graph::Graph>& work, int64_t largest) {
  for (int64_t n = kSmallestSquare; n <= largest; n *= 2) {
    work.push_back(product(n, n, n));
    work.push_back(product(n, n, n / 4));
    work.push_back(product(n, n / 4, n));
    work.push_back(product(n / 4, n, n));
  }
}

ValueId cast(Builder& b, ValueId x, DType dtype) { return b.typeOf(x).dtype == dtype ? x : b.make("cast", {x}, {{"dtype", dtype}}); }

/// An op of one operand.
struct RowWork {
  ValueId (*make)(Builder& b, ValueId x);
  bool is_reduced;  ///< its result is small, and stays f32
};
ValueId sumOver(Builder& b, ValueId x, int64_t axis) { return b.make("sum", {x}, {{"axes", std::vector{axis}}, {"keep_dims", false}}); }
constexpr std::array kRowWork{
    RowWork{[](Builder& b, ValueId x) { return b.make("softmax", {x}); }, false},
    RowWork{[](Builder& b, ValueId x) {
              const int64_t columns = b.shapeOf(x).extent(1);
              return b.make("layer_norm", {x, input(b, "gain", {columns}), input(b, "bias", {columns})}, {{"eps", 1e-5}});
            },
            false},
    RowWork{[](Builder& b, ValueId x) { return sumOver(b, x, 0); }, true},
    RowWork{[](Builder& b, ValueId x) { return sumOver(b, x, 1); }, true},
    RowWork{[](Builder& b, ValueId x) { return b.make("gelu", {x}); }, false},
};

graph::Graph rowWork(const RowWork& what, const Size& size, DType dtype) {
  Builder b;
  const ValueId y = what.make(b, cast(b, input(b, "x", {size.rows, size.columns}, dtype), DType::F32));
  b.output(graph::OutputKind::Result, "y", what.is_reduced ? y : cast(b, y, dtype));
  return b.take();
}

graph::Graph sumOfTwo(const Size& size, DType dtype) {
  Builder b;
  const ValueId x = cast(b, input(b, "x", {size.rows, size.columns}, dtype), DType::F32);
  const ValueId y = cast(b, input(b, "y", {size.rows, size.columns}, dtype), DType::F32);
  b.output(graph::OutputKind::Result, "z", cast(b, b.add(x, y), dtype));
  return b.take();
}

}  // namespace

std::vector<graph::Graph> commonWork(program::ExecutionStyle style) {
  const bool is_gpu = style == program::ExecutionStyle::Gpu;
  std::vector<graph::Graph> work;
  addProducts(work, is_gpu ? kLargestSquareGpu : kLargestSquareCpu);
  const auto addSize = [&](const Size& size) {
    for (const DType dtype : {DType::F32, DType::BF16}) {
      for (const RowWork& what : kRowWork) work.push_back(rowWork(what, size, dtype));
      work.push_back(sumOfTwo(size, dtype));
    }
  };
  for (const Size& size : is_gpu ? std::span<const Size>(kSizesGpu) : std::span<const Size>(kSizesCpu)) addSize(size);
  return work;
}

}  // namespace lockstep::tools
