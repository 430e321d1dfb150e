// SPDX-License-Identifier: Apache-2.0
// Packed tensors whose rows and lengths fill no whole words, through each kind of plan, forward and gradient.
#include <gtest/gtest.h>

#include "frontend/ops/losses.h"
#include "frontend/ops/ops.h"
#include "frontend/train/graph_runner.h"
#include "frontend/train/templates.h"
#include "tests/differential/compare.h"
#include "tests/differential/packed_case.h"

namespace lockstep {
namespace {

using graph::DType;
using Body = std::function<Tensor(PackedLeaves&)>;

constexpr std::array<int64_t, 4> kLengths{1, 3, 65, 257};

struct Made {
  PackedCase one;
  std::vector<std::string> leaves;
};

Made make(const Body& body, DType dtype, const std::string& name) {
  detail::Trace trace;
  PackedLeaves leaves(trace, dtype);
  trace.output(graph::OutputKind::Result, "y", body(leaves));
  return {{trace.take(), leaves.all(), 1e-6, name}, leaves.names()};
}

/// Of f16 and bf16: the value and the gradients by all packed leaves.
void expectFloats(const std::string& name, const Body& body, bool has_gradient = true) {
  for (const DType dtype : {DType::BF16, DType::F16}) {
    Made made = make(body, dtype, name);
    expectRounded(made.one, dtype);
    if (has_gradient) expectRounded(gradientsOf(std::move(made.one), made.leaves, dtype), dtype);
  }
}

/// Of every packed type: elements are moved and chosen, and none is changed.
void expectMoved(const std::string& name, const Body& body) {
  for (const DType dtype : graph::kDTypes) {
    if (graph::isPacked(dtype)) expectRounded(make(body, dtype, name).one, dtype);
  }
}

TEST(PackedShapes, maps) {
  for (const int64_t n : kLengths) {
    expectFloats("map", [&](PackedLeaves& x) { return gelu(x.values({n})) * x.values({n}); });
    expectFloats("broadcast", [&](PackedLeaves& x) { return x.values({3, n}) + x.values({n}); });
  }
}

TEST(PackedShapes, rows) {
  for (const int64_t n : {int64_t{33}, int64_t{1}, int64_t{257}}) {
    expectFloats("softmax", [&](PackedLeaves& x) { return softmax(x.values({5, n})); });
    expectFloats("sum", [&](PackedLeaves& x) { return sum(x.values({5, n}), 1); });
  }
  expectFloats("layer_norm", [](PackedLeaves& x) { return layer_norm(x.values({7, 33}), x.values({33}), x.values({33})); });
  expectFloats("cross_entropy", [](PackedLeaves& x) { return cross_entropy(x.values({5, 33}), x.numbers({5}, 33)); });
}

TEST(PackedShapes, columns) {
  for (const int64_t n : kLengths) expectFloats("sum", [&](PackedLeaves& x) { return sum(x.values({n, 33}), 0); });
  expectFloats("reduce_max", [](PackedLeaves& x) { return reduce_max(x.values({3, 65, 5}), 1); });
}

TEST(PackedShapes, scans) {
  for (const int64_t n : kLengths) expectFloats("cumsum", [&](PackedLeaves& x) { return cumsum(x.values({n}), 0); });
  expectFloats("cumsum_rows", [](PackedLeaves& x) { return cumsum(x.values({3, 33}), 1, true); });
}

TEST(PackedShapes, scatters) {
  for (const int64_t n : kLengths)
    expectFloats("embedding", [&](PackedLeaves& x) { return embedding(x.values({17, 33}), x.numbers({n}, 17)); });
  expectFloats("segment_sum", [](PackedLeaves& x) { return segment_sum(x.values({65, 3}), x.numbers({65}, 5), 5); });
}

TEST(PackedShapes, contractions) {
  for (const int64_t n : kLengths) expectFloats("matmul", [&](PackedLeaves& x) { return matmul(x.values({3, n}), x.values({n, 33})); });
  expectFloats("conv2d", [](PackedLeaves& x) { return conv2d(x.values({1, 3, 7, 5}), x.values({5, 3, 3, 3})); });
}

TEST(PackedShapes, windows) {
  expectFloats("max_pool2d", [](PackedLeaves& x) { return max_pool2d(x.values({1, 3, 9, 7}), {3, 3}); });
  expectFloats("avg_pool2d", [](PackedLeaves& x) { return avg_pool2d(x.values({1, 3, 9, 7}), {2, 2}); });
}

TEST(PackedShapes, sorts) {
  expectFloats("sort", [](PackedLeaves& x) { return sort(x.values({33})).values; }, false);
  expectFloats("top_k", [](PackedLeaves& x) { return top_k(x.values({3, 65}), 5).values; }, false);
}

TEST(PackedShapes, elements_are_moved_as_they_are) {
  for (const int64_t n : kLengths) {
    expectMoved("concat", [&](PackedLeaves& x) { return concat({x.stored({n}), x.stored({3}), x.stored({1}), x.stored({n})}, 0); });
    expectMoved("pad", [&](PackedLeaves& x) { return pad(x.stored({n}), {{1, 2}}); });
    expectMoved("permute", [&](PackedLeaves& x) { return permute(x.stored({n, 33}), {1, 0}); });
    expectMoved("index_select", [&](PackedLeaves& x) { return index_select(x.stored({33, n}), 0, x.numbers({5}, 33)); });
  }
  expectMoved("concat_rows", [](PackedLeaves& x) { return concat({x.stored({5, 33}), x.stored({5, 1}), x.stored({5, 7})}, 1); });
  expectMoved("narrow", [](PackedLeaves& x) { return narrow(x.stored({5, 33}), 1, 3, 17); });
  expectMoved("rows_of_all", [](PackedLeaves& x) { return narrow(x.stored({65, 3}), 0, 1, 63); });
}

TEST(PackedShapes, concat_of_odd_parts_that_are_computed) {
  expectFloats("concat", [](PackedLeaves& x) {
    const Tensor a = cast(gelu(x.values({33})), DType::BF16), b = cast(softmax(x.values({3, 5})), DType::BF16);
    return cast(concat({a, reshape(b, {15}), a}, 0), DType::F32);
  });
}

/// The same of exact results on devices that bind at most 64 KiB.
void expectSameInSmallBindings(const std::string& name, const Body& body) {
  for (const DType dtype : graph::kDTypes) {
    if (!graph::isPacked(dtype)) continue;
    const PackedCase made = make(body, dtype, name).one;
    passes::CompileOptions options;
    options.profile = program::findProfile("small_bindings").orThrow();
    options.templates = detail::templateSource();
    const passes::Compiled compiled = passes::compile(made.graph, options).orThrow();
    const std::vector<double> want = runGraph(made.graph, made.leaves).front().data;
    ValueMap inputs;
    for (const auto& [leaf, tensor] : made.leaves) inputs.emplace(leaf, tensor.data);
    for (const std::string& device : devicesUnderTest()) {
      const auto runner = makeProgramRunner(compiled.program, *openedDevice(device)).orThrow();
      EXPECT_EQ(runner->step(inputs).orThrow().begin()->second, want) << name << " of " << toString(dtype) << " on " << device;
    }
  }
}

TEST(PackedShapes, tensors_above_the_binding_limit) {
  // Rows that are no whole words, in slices.
  expectSameInSmallBindings("slices", [](PackedLeaves& x) {
    const Tensor a = x.stored({4001, 33}), b = x.stored({4001, 33});
    return where(cast(a, DType::F32) > cast(b, DType::F32), a, b);
  });
  // Operand and result in windows.
  expectSameInSmallBindings("permuted", [](PackedLeaves& x) { return permute(x.stored({333, 301}), {1, 0}); });
  expectSameInSmallBindings("lookup", [](PackedLeaves& x) { return index_select(x.stored({1009, 131}), 0, x.numbers({7}, 1009)); });
  expectSameInSmallBindings("longest", [](PackedLeaves& x) { return reduce_max(x.values({401, 333}), 1); });
  // Packed results with one element per row, of which the last slice has one.
  for (const int64_t rows : {513, 1025}) {
    expectSameInSmallBindings("longest, packed",
                              [rows](PackedLeaves& x) { return cast(reduce_max(x.values({rows, 100}), 1), DType::BF16); });
  }
}

}  // namespace
}  // namespace lockstep
