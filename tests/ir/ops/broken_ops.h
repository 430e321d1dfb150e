// SPDX-License-Identifier: Apache-2.0
// Operands and attributes that break one constraint of one op, and short names for the attributes that they are made of.
#pragma once

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph/scalar_graph.h"
#include "tests/ir/ops/op_case.h"

namespace lockstep::graph::testing {

struct Broken {
  std::string_view op, label;
  std::vector<TensorType> operands;
  Attributes attributes;
  std::vector<Constant> constants;
  [[nodiscard]] std::string name() const { return fmt::format("{}_{}", op, label); }
};
inline void PrintTo(const Broken& broken, std::ostream* out) { *out << broken.name(); }

using Integers = std::vector<int64_t>;
inline int64_t integer(int64_t value) { return value; }

inline Attributes leaf(Integers shape) { return {{"name", std::string("x")}, {"dtype", DType::F32}, {"shape", std::move(shape)}}; }
inline Attributes reduction(Integers axes) { return {{"axes", std::move(axes)}, {"keep_dims", false}}; }
inline Attributes shapeOf(Integers shape) { return {{"shape", std::move(shape)}}; }
inline Attributes range(int64_t axis, int64_t start, int64_t length) { return {{"axis", axis}, {"start", start}, {"length", length}}; }
inline Attributes padding(int64_t axis, int64_t before, int64_t after, double value) {
  return {{"axis", axis}, {"before", before}, {"after", after}, {"value", value}};
}
/// Of windows with one axis: kernel 2, and `more` in place of what it names.
inline Attributes window(const Attributes& more = {}) {
  Attributes out{{"kernel", Integers{2}},       {"stride", Integers{1}},   {"padding_low", Integers{0}},
                 {"padding_high", Integers{0}}, {"dilation", Integers{1}}, {"input_dilation", Integers{1}}};
  for (const auto& [name, value] : more.items()) out.set(name, value);
  return out;
}
inline Attributes skewed(const Attributes& more = {}) {
  Attributes out{{"extents", Integers{2}}, {"stride", Integers{1}},         {"dilation", Integers{1}},
                 {"padding", Integers{0}}, {"input_dilation", Integers{1}}, {"fill", 0.0}};
  for (const auto& [name, value] : more.items()) out.set(name, value);
  return out;
}
/// Of a convolution over two axes, of a pooling over one.
inline Attributes convolution(const Attributes& more = {}) {
  Attributes out{{"stride", Integers{1, 1}}, {"padding", Integers{0, 0}}, {"dilation", Integers{1, 1}}, {"groups", integer(1)}};
  for (const auto& [name, value] : more.items()) out.set(name, value);
  return out;
}
inline Attributes transposed(const Attributes& more = {}) {
  Attributes out = convolution(more);
  if (out.find("output_padding") == nullptr) out.set("output_padding", Integers{0, 0});
  return out;
}
inline Attributes pooling(int64_t kernel, int64_t padding, bool average) {
  Attributes out{{"kernel", Integers{kernel}}, {"stride", Integers{1}}, {"padding", Integers{padding}}};
  if (average) out.set("count_include_pad", true);
  return out;
}
inline Attributes turning(const Attributes& more = {}) {
  Attributes out{{"base", 10000.0}, {"offset", integer(0)}, {"dims", integer(2)}, {"layout", std::string("half")}, {"inverse", false}};
  for (const auto& [name, value] : more.items()) out.set(name, value);
  return out;
}
inline Attributes attention(int64_t offset = 0, double scale = 1) { return {{"causal", true}, {"offset", offset}, {"scale", scale}}; }
inline Attributes grouped(int64_t groups, double eps) { return {{"groups", groups}, {"eps", eps}}; }
inline Attributes parts(Integers offsets, int64_t total) { return {{"offsets", std::move(offsets)}, {"total", total}}; }
inline Attributes segments(int64_t axis, int64_t count) { return {{"axis", axis}, {"segments", count}}; }
inline Attributes dropping(double p, int64_t salt) { return {{"p", p}, {"salt", salt}}; }
inline Attributes userKernel(const char* results, int64_t groups, const char* operand = "array<f32>") {
  const std::string module =
      std::string("lockstep.kernel 1\nvar @x: ") + operand + R"( {access = read, binding = 0, group = 0, space = storage}
var @y: array<f32> {access = read_write, binding = 1, group = 0, space = storage}
fn @main() {workgroup_size = [1, 1, 1]} {
  %px: ptr<storage, f32> = access @x, 0u
  %x0: f32 = load %px
  %py: ptr<storage, f32, read_write> = access @y, 0u
  store %py, %x0
}
)";
  return {{"label", std::string("mine")}, {"module", module}, {"results", std::string(results)}, {"groups", Integers{groups, 1, 1}}};
}
inline Attributes mean() { return {{"reduction", std::string("mean")}}; }
inline Attributes eps(double value) { return {{"eps", value}}; }

inline Attributes scanned(int64_t axis, std::string combine) {
  return {{"axis", axis}, {"reverse", false}, {"combine", std::move(combine)}};
}
inline std::string adding(DType dtype) {
  return print(makeCombine(std::array{dtype}, [](Builder& b, auto x, auto y) { return std::vector{b.add(x[0], y[0])}; }));
}
/// No operation on elements.
inline std::string summing() {
  return print(makeCombine(std::array{DType::F32}, [](Builder& b, auto x, auto) {
    return std::vector{b.make("sum", {x[0]}, {{"axes", Integers{}}, {"keep_dims", false}})};
  }));
}

/// One for each constraint of each op.
std::vector<Broken> brokenCases();

// What brokenCases() adds of attention and of sequences, in broken_scans.cpp.
/// The constraints that all ops of attention share. `after`: the operands that come after v.
void breakAttention(std::string_view op, const std::vector<TensorType>& after, std::vector<Broken>& broken);
void breakCachedAttention(std::string_view op, std::vector<Broken>& broken);
void breakQuantized(std::vector<Broken>& broken);
/// A loop that adds its rows f32[3] to its carry, with one thing wrong in each.
void breakLoop(std::vector<Broken>& broken);
void breakCausalConv(std::vector<Broken>& broken);
void breakSelectiveScan(std::vector<Broken>& broken);
void breakScanTemplates(std::vector<Broken>& broken);
void breakSsd(std::vector<Broken>& broken);

}  // namespace lockstep::graph::testing
