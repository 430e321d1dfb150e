// SPDX-License-Identifier: Apache-2.0
// Every constraint of every op: operands or attributes that break it alone are refused under its code.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "ir/graph/scalar_graph.h"
#include "ir/ops/support/common.h"
#include "tests/ir/ops/op_case.h"

namespace lockstep::graph::testing {
namespace {

struct Broken {
  std::string_view op, label;
  std::vector<TensorType> operands;
  Attributes attributes;
  std::vector<Constant> constants;
  [[nodiscard]] std::string name() const { return fmt::format("{}_{}", op, label); }
};
void PrintTo(const Broken& broken, std::ostream* out) { *out << broken.name(); }

using Integers = std::vector<int64_t>;
int64_t integer(int64_t value) { return value; }

Attributes leaf(Integers shape) { return {{"name", std::string("x")}, {"dtype", DType::F32}, {"shape", std::move(shape)}}; }
Attributes reduction(Integers axes) { return {{"axes", std::move(axes)}, {"keep_dims", false}}; }
Attributes shapeOf(Integers shape) { return {{"shape", std::move(shape)}}; }
Attributes range(int64_t axis, int64_t start, int64_t length) { return {{"axis", axis}, {"start", start}, {"length", length}}; }
Attributes padding(int64_t axis, int64_t before, int64_t after, double value) {
  return {{"axis", axis}, {"before", before}, {"after", after}, {"value", value}};
}
/// Of windows with one axis: kernel 2, and `more` in place of what it names.
Attributes window(const Attributes& more = {}) {
  Attributes out{{"kernel", Integers{2}},       {"stride", Integers{1}},   {"padding_low", Integers{0}},
                 {"padding_high", Integers{0}}, {"dilation", Integers{1}}, {"input_dilation", Integers{1}}};
  for (const auto& [name, value] : more.items()) out.set(name, value);
  return out;
}
Attributes skewed(const Attributes& more = {}) {
  Attributes out{{"extents", Integers{2}}, {"stride", Integers{1}},         {"dilation", Integers{1}},
                 {"padding", Integers{0}}, {"input_dilation", Integers{1}}, {"fill", 0.0}};
  for (const auto& [name, value] : more.items()) out.set(name, value);
  return out;
}
/// Of a convolution over two axes, of a pooling over one.
Attributes convolution(const Attributes& more = {}) {
  Attributes out{{"stride", Integers{1, 1}}, {"padding", Integers{0, 0}}, {"dilation", Integers{1, 1}}, {"groups", integer(1)}};
  for (const auto& [name, value] : more.items()) out.set(name, value);
  return out;
}
Attributes transposed(const Attributes& more = {}) {
  Attributes out = convolution(more);
  if (out.find("output_padding") == nullptr) out.set("output_padding", Integers{0, 0});
  return out;
}
Attributes pooling(int64_t kernel, int64_t padding, bool average) {
  Attributes out{{"kernel", Integers{kernel}}, {"stride", Integers{1}}, {"padding", Integers{padding}}};
  if (average) out.set("count_include_pad", true);
  return out;
}
Attributes turning(const Attributes& more = {}) {
  Attributes out{{"base", 10000.0}, {"offset", integer(0)}, {"dims", integer(2)}, {"layout", std::string("half")}, {"inverse", false}};
  for (const auto& [name, value] : more.items()) out.set(name, value);
  return out;
}
Attributes attention(int64_t offset = 0, double scale = 1) { return {{"causal", true}, {"offset", offset}, {"scale", scale}}; }
Attributes grouped(int64_t groups, double eps) { return {{"groups", groups}, {"eps", eps}}; }
Attributes parts(Integers offsets, int64_t total) { return {{"offsets", std::move(offsets)}, {"total", total}}; }
Attributes segments(int64_t axis, int64_t count) { return {{"axis", axis}, {"segments", count}}; }
Attributes dropping(double p, int64_t salt) { return {{"p", p}, {"salt", salt}}; }
Attributes userKernel(const char* results, int64_t groups, const char* operand = "array<f32>") {
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
Attributes mean() { return {{"reduction", std::string("mean")}}; }
Attributes eps(double value) { return {{"eps", value}}; }

Attributes scanned(int64_t axis, std::string combine) { return {{"axis", axis}, {"reverse", false}, {"combine", std::move(combine)}}; }
std::string adding(DType dtype) {
  return print(makeCombine(std::array{dtype}, [](Builder& b, auto x, auto y) { return std::vector{b.add(x[0], y[0])}; }));
}
/// No operation on elements.
std::string summing() {
  return print(makeCombine(std::array{DType::F32}, [](Builder& b, auto x, auto) {
    return std::vector{b.make("sum", {x[0]}, {{"axes", Integers{}}, {"keep_dims", false}})};
  }));
}

/// The constraints that all ops of attention share. `after`: the operands that come after v.
void breakAttention(std::string_view op, const std::vector<TensorType>& after, std::vector<Broken>& broken) {
  const auto add = [&](std::string_view label, const TensorType& q, const TensorType& k, const TensorType& v, const Attributes& attributes,
                       std::vector<TensorType> rest) {
    std::vector<TensorType> operands{q, k, v};
    operands.insert(operands.end(), rest.begin(), rest.end());
    broken.push_back({op, label, operands, attributes, {}});
  };
  const auto with = [&](TensorType mask) {
    std::vector<TensorType> all = after;
    all.push_back(std::move(mask));
    return all;
  };
  const TensorType x = f32({1, 2, 3});
  add("C1", i32({1, 2, 3}), x, x, attention(), after);
  add("C2", f32({2, 1, 2, 3}), f32({3, 1, 2, 3}), f32({3, 1, 2, 3}), attention(), after);
  add("C3", x, f32({1, 2, 4}), x, attention(), after);
  add("C4", f32({3, 2, 3}), f32({2, 2, 3}), f32({2, 2, 3}), attention(), after);
  add("C5", x, x, x, attention(-1), after);
  add("C6", x, x, x, attention(0, HUGE_VAL), after);
  add("C7", x, x, x, attention(), with(f32({3, 2})));
  if (!after.empty()) add("C8", x, x, x, attention(), std::vector(after.size(), f32({1, 2, 2})));
}

void breakCachedAttention(std::string_view op, std::vector<Broken>& broken) {
  const TensorType x = f32({4, 1, 2, 3}), length = i32({4});
  const Attributes plain{{"scale", 1.0}};
  broken.push_back({op, "C1", {i32({4, 1, 2, 3}), x, x, length}, plain, {}});
  broken.push_back({op, "C2", {x, f32({3, 1, 2, 3}), f32({3, 1, 2, 3}), length}, plain, {}});
  broken.push_back({op, "C3", {x, f32({4, 1, 2, 4}), x, length}, plain, {}});
  broken.push_back({op, "C4", {f32({4, 3, 2, 3}), f32({4, 2, 2, 3}), f32({4, 2, 2, 3}), length}, plain, {}});
  broken.push_back({op, "C5", {x, x, x, i32({2})}, plain, {}});
  broken.push_back({op, "C6", {x, x, x, length}, {{"scale", HUGE_VAL}}, {}});
  broken.push_back({op, "C7", {x, x, x, length}, {{"scale", 1.0}, {"window", integer(-1)}}, {}});
  if (op != "attend_cache") return;
  broken.push_back({op, "C8", {x, x, x, length, f32({4, 1, 1, 3}), x}, plain, {}});
  broken.push_back({op, "C9", {x, x, x, length}, {{"scale", 1.0}, {"shares", integer(65)}}, {}});
  broken.push_back({"join_shares", "C1", {i32({9})}, {{"shares", integer(3)}}, {}});
  broken.push_back({"join_shares", "C2", {f32({2, 8})}, {{"shares", integer(4)}}, {}});
}

/// A loop that adds its rows f32[3] to its carry, with one thing wrong in each.
void breakLoop(std::vector<Broken>& broken) {
  const TensorType row = f32({3}), stack = f32({4, 3});
  const auto body = [](const TensorType& carry, const TensorType& slice, const char* leaf, const char* output) {
    Builder b;
    const ValueId sum = addInput(b, leaf, carry);
    (void)addInput(b, "slice0", slice);
    b.output(OutputKind::Result, output, sum);
    return NestedGraph(b.take());
  };
  const auto attributes = [](int64_t iterations, NestedGraph graph) -> Attributes {
    return {{"iterations", iterations}, {"carries", integer(1)}, {"slices", integer(1)}, {"reverse", false}, {"body", std::move(graph)}};
  };
  const NestedGraph right = body(row, row, "carry0", "carry0");
  broken.push_back({"loop", "C1", {row, stack}, attributes(0, right), {}});
  broken.push_back({"loop", "C2", {row, stack}, attributes(5, right), {}});
  broken.push_back({"loop", "C3", {row, stack}, attributes(4, body(row, row, "h", "carry0")), {}});
  broken.push_back({"loop", "C4", {row, stack}, attributes(4, body(row, row, "carry0", "h")), {}});
  const TensorType half{DType::F16, Shape{3}};
  broken.push_back({"loop", "C5", {half, stack}, attributes(4, body(half, row, "carry0", "carry0")), {}});
  const TensorType wide = f32({1 << 20}), many = f32({1 << 12, 3});
  broken.push_back({"loop", "C6", {wide, many}, attributes(1 << 12, body(wide, row, "carry0", "carry0")), {}});
}

void breakQuantized(std::vector<Broken>& broken) {
  const TensorType x = f32({2, 64}), words = u32({3, 8}), scales = f32({3, 2});
  const auto form = [](int64_t bits, int64_t group) { return Attributes{{"bits", bits}, {"group", group}}; };
  for (const std::string_view op : {"quantized_matmul", "multiply_quantized"}) {
    broken.push_back({op, "C1", {x, i32({3, 8}), scales}, form(4, 32), {}});
    broken.push_back({op, "C2", {x, words, scales}, form(5, 32), {}});
    broken.push_back({op, "C3", {x, u32({3, 9}), scales}, form(4, 32), {}});
    broken.push_back({op, "C4", {x, words, f32({3, 3})}, form(4, 32), {}});
    broken.push_back({op, "C5", {f32({1 << 16, 8}), u32({1 << 15, 1}), f32({1 << 15, 1})}, form(4, 8), {}});
    broken.push_back({op, "C6", {x, words, scales, f32({64})}, form(4, 32), {}});
  }
  broken.push_back({"multiply_quantized", "C7", {x, words, f32({3, 8})}, form(4, 8), {}});
}

void breakCausalConv(std::vector<Broken>& broken) {
  const TensorType x = f32({2, 5, 3}), w = f32({3, 4}), bias = f32({3});
  const auto add = [&](std::string_view label, std::vector<TensorType> operands) {
    broken.push_back({"causal_conv1d", label, std::move(operands), {}, {}});
  };
  add("C1", {i32({2, 5, 3}), w, bias});
  add("C2", {f32({5, 3}), w, bias});
  add("C3", {x, w, f32({4})});
  add("C4", {x, w, bias, f32({2, 4, 3})});
  add("C5", {f32({1 << 10, 1, 1 << 20}), f32({1 << 20, 4}), f32({1 << 20})});
  add("C6", {x, f32({3, 100000}), bias});
}

void breakSelectiveScan(std::vector<Broken>& broken) {
  const TensorType u = f32({2, 5, 3}), a = f32({3, 4}), b = f32({2, 5, 4}), state = f32({2, 3, 4}), u_i32 = i32({2, 5, 3});
  for (const bool is_gradient : {false, true}) {
    const auto add = [&](std::string_view label, std::vector<TensorType> operands, int64_t chunk = 2,
                         const std::vector<TensorType>& initial = {}) {
      const TensorType& x = operands[0];
      if (is_gradient) operands.insert(operands.end(), {x, f32({x.shape.extent(0), x.shape.extent(2), operands[2].shape.extent(1)})});
      operands.insert(operands.end(), initial.begin(), initial.end());
      broken.push_back({is_gradient ? "selective_scan_gradient" : "selective_scan",
                        label,
                        std::move(operands),
                        {{"chunk", chunk}, {"zero_order_hold", false}},
                        {}});
    };
    add("C1", {u_i32, u_i32, a, b, b});
    add("C2", {u, f32({2, 4, 3}), a, b, b});
    add("C3", {u, u, f32({4, 4}), b, b});
    add("C4", {u, u, a, b, f32({2, 4, 4})});
    add("C5", {u, u, a, b, b}, 2, {f32({2, 4, 3})});
    add("C6", {u, u, a, b, b}, 0);
    add("C7", {f32({1, 1 << 10, 1 << 10}), f32({1, 1 << 10, 1 << 10}), f32({1 << 10, 1 << 12}), f32({1, 1 << 10, 1 << 12}),
               f32({1, 1 << 10, 1 << 12})});
  }
  broken.push_back(
      {"selective_scan_gradient", "C8", {u, u, a, b, b, u, f32({2, 4, 3})}, {{"chunk", int64_t{2}}, {"zero_order_hold", false}}, {}});
}

void breakScanTemplates(std::vector<Broken>& broken) {
  const TensorType x = f32({2, 5, 3}), a = f32({3, 4}), b = f32({2, 5, 4}), states = f32({2, 3, 4, 3});
  const TensorType long_x = f32({1, 1 << 12, 1 << 10}), long_a = f32({1 << 10, 1 << 10}), long_b = f32({1, 1 << 12, 1 << 10});
  struct Form {
    std::string_view op;
    std::vector<TensorType> after;  // of x, delta, a and b
    Attributes attributes;
  };
  const Attributes plain{{"chunk", integer(2)}, {"zero_order_hold", false}};
  const auto with = [&](std::string_view name, Attribute value) {
    Attributes more = plain;
    more.set(std::string(name), std::move(value));
    return more;
  };
  const std::vector<Form> forms{{"scan_chunk_states", {}, with("reverse", false)},
                                {"scan_chunk_outputs", {b, states}, plain},
                                {"scan_chunk_gradient", {b, x, states, states}, plain},
                                {"scan_chunk_gradient_states", {b, x, states, states}, with("part", integer(2))}};
  for (const Form& form : forms) {
    const auto add = [&](std::string_view label, std::vector<TensorType> operands, const Attributes& attributes) {
      operands.insert(operands.end(), form.after.begin(), form.after.end());
      broken.push_back({form.op, label, std::move(operands), attributes, {}});
    };
    Attributes no_chunk = form.attributes;
    no_chunk.set("chunk", integer(0));
    add("C1", {i32({2, 5, 3}), x, a, b}, form.attributes);
    add("C2", {x, f32({2, 4, 3}), a, b}, form.attributes);
    add("C3", {x, x, f32({4, 4}), b}, form.attributes);
    add("C4", {x, x, a, f32({2, 5, 3})}, form.attributes);
    add("C5", {x, x, a, b}, no_chunk);
    if (form.after.empty()) {
      add("C6", {long_x, long_x, long_a, long_b}, form.attributes);
    } else {
      std::vector<TensorType> operands{x, x, a, b};
      operands.insert(operands.end(), form.after.begin(), form.after.end());
      operands.back() = f32({2, 2, 4, 3});
      broken.push_back({form.op, "C6", operands, form.attributes, {}});
    }
  }
  broken.push_back({"scan_chunk_gradient_states", "C7", {x, x, a, b, b, x, states, states}, with("part", integer(0)), {}});
}

void breakSsd(std::vector<Broken>& broken) {
  const TensorType x = f32({2, 5, 4, 2, 3}), decay = f32({2, 5, 4}), b = f32({2, 5, 2, 2, 6});
  const auto add = [&](std::string_view label, std::vector<TensorType> operands, int64_t chunk = 2) {
    broken.push_back({"ssd", label, std::move(operands), {{"chunk", chunk}}, {}});
  };
  add("C1", {i32({2, 5, 4, 2, 3}), decay, decay, b, b});
  add("C2", {x, decay, f32({2, 5, 3}), b, b});
  add("C3", {x, decay, decay, f32({2, 5, 3, 2, 6}), f32({2, 5, 3, 2, 6})});
  add("C4", {x, decay, decay, b, b, f32({2, 4, 6, 3})});
  add("C5", {x, decay, decay, b, b}, 0);
  const TensorType line = f32({1, 1 << 16, 1, 1, 1});
  add("C6", {line, f32({1, 1 << 16, 1}), f32({1, 1 << 16, 1}), line, line}, 1 << 16);
}

std::vector<Broken> brokenCases() {
  TensorType x = f32({2, 3}), row = f32({3}), idx = i32({2, 3}), flag = boolean({2, 3}), scalar = f32({}), key = u32({4});
  const TensorType count = i32({2}), share = f32({2}), ranks = i32({2, 1, 4});
  int64_t huge = int64_t{1} << 33;
  double nan = std::numeric_limits<double>::quiet_NaN();
  std::vector<Broken> broken{
      {"parameter", "C1", {}, leaf({2, 0}), {}},
      {"input", "C1", {}, leaf({-3}), {}},
      {"input", "C2", {}, {{"name", std::string("i")}, {"dtype", DType::F32}, {"shape", Integers{2}}, {"below", int64_t{3}}}, {}},
      {"state", "C1", {}, {{"name", std::string("s")}, {"dtype", DType::F32}, {"shape", Integers{huge}}, {"init", 0.0}}, {}},
      {"state", "C2", {}, {{"name", std::string("s")}, {"dtype", DType::I32}, {"shape", Integers{2}}, {"init", 0.5}}, {}},
      {"constant", "C1", {}, {{"value", 1.0}, {"dtype", DType::F32}, {"shape", Integers{0}}}, {}},
      {"constant", "C2", {}, {{"value", -1.0}, {"dtype", DType::U32}, {"shape", Integers{2}}}, {}},
      {"dense", "C1", {}, {{"data", ConstantId(1)}}, {{row, {1, 2, 3}}}},
      {"dense", "C2", {}, {{"data", ConstantId(0)}}, {{f32({0}), {}}}},
      {"dense", "C3", {}, {{"data", ConstantId(0)}}, {{row, {1, 2}}}},
      {"arange", "C1", {}, {{"n", integer(0)}, {"dtype", DType::I32}}, {}},
      {"arange", "C2", {}, {{"n", integer(2)}, {"dtype", DType::Bool}}, {}},
      {"arange", "C3", {}, {{"n", (integer(1) << 24) + 1}, {"dtype", DType::F32}}, {}},
      {"leaky_relu", "C1", {idx}, {{"alpha", 0.1}}, {}},
      {"leaky_relu", "C2", {x}, {{"alpha", nan}}, {}},
      {"elu", "C1", {idx}, {{"alpha", 1.0}}, {}},
      {"elu", "C2", {x}, {{"alpha", nan}}, {}},
      {"clamp", "C1", {idx}, {{"lo", 0.0}, {"hi", 1.0}}, {}},
      {"clamp", "C2", {x}, {{"lo", 1.0}, {"hi", 0.5}}, {}},
      {"logical_and", "C1", {flag, idx}, {}, {}},
      {"logical_and", "C2", {flag, boolean({3})}, {}, {}},
      {"logical_or", "C1", {x, x}, {}, {}},
      {"logical_or", "C2", {flag, boolean({2})}, {}, {}},
      {"logical_not", "C1", {u32({2})}, {}, {}},
      {"bitwise_and", "C1", {x, x}, {}, {}},
      {"bitwise_and", "C2", {u32({2}), u32({3})}, {}, {}},
      {"bitwise_or", "C1", {flag, flag}, {}, {}},
      {"bitwise_or", "C2", {u32({2}), u32({3})}, {}, {}},
      {"bitwise_xor", "C1", {u32({2}), TensorType{DType::I32, {2}}}, {}, {}},
      {"bitwise_xor", "C2", {u32({2}), u32({3})}, {}, {}},
      {"left_shift", "C1", {x, x}, {}, {}},
      {"left_shift", "C2", {u32({2}), TensorType{DType::I32, {2}}}, {}, {}},
      {"left_shift", "C3", {u32({2}), u32({3})}, {}, {}},
      {"right_shift", "C1", {flag, u32({2})}, {}, {}},
      {"right_shift", "C2", {u32({2}), TensorType{DType::I32, {2}}}, {}, {}},
      {"right_shift", "C3", {u32({2}), u32({3})}, {}, {}},
      {"where", "C1", {x, x, x}, {}, {}},
      {"where", "C2", {flag, x, idx}, {}, {}},
      {"where", "C3", {flag, x, row}, {}, {}},
      {"sum", "C1", {flag}, reduction({0}), {}},
      {"sum", "C2", {x}, reduction({1, 0}), {}},
      {"prod", "C1", {flag}, reduction({0}), {}},
      {"prod", "C2", {x}, reduction({1, 0}), {}},
      {"reduce_max", "C1", {flag}, reduction({0}), {}},
      {"reduce_max", "C2", {x}, reduction({2}), {}},
      {"reduce_max_number", "C1", {flag}, reduction({0}), {}},
      {"reduce_max_number", "C2", {x}, reduction({2}), {}},
      {"reduce_min", "C1", {flag}, reduction({0}), {}},
      {"reduce_min", "C2", {x}, reduction({2}), {}},
      {"argmax", "C1", {flag}, {{"axis", integer(0)}}, {}},
      {"argmax", "C2", {x}, {{"axis", integer(2)}}, {}},
      {"argmin", "C1", {flag}, {{"axis", integer(0)}}, {}},
      {"argmin", "C2", {scalar}, {{"axis", integer(0)}}, {}},
      {"reshape", "C1", {x}, shapeOf({-1, 6}), {}},
      {"reshape", "C2", {x}, shapeOf({5}), {}},
      {"permute", "C1", {x}, {{"permutation", Integers{0, 0}}}, {}},
      {"narrow", "C1", {x}, range(2, 0, 1), {}},
      {"narrow", "C2", {x}, range(1, 2, 2), {}},
      {"pad", "C1", {x}, padding(-1, 0, 1, 0), {}},
      {"pad", "C2", {x}, padding(1, -1, 1, 0), {}},
      {"pad", "C3", {x}, padding(1, huge, 1, 0), {}},
      {"pad", "C4", {idx}, padding(1, 1, 1, 0.5), {}},
      {"flip", "C1", {x}, {{"axes", Integers{1, 0}}}, {}},
      {"roll", "C1", {x}, {{"axis", integer(2)}, {"shift", integer(0)}}, {}},
      {"roll", "C2", {x}, {{"axis", integer(1)}, {"shift", integer(3)}}, {}},
      {"concat", "C1", {}, {{"axis", integer(0)}}, {}},
      {"concat", "C2", {x, x}, {{"axis", integer(2)}}, {}},
      {"concat", "C3", {x, idx}, {{"axis", integer(0)}}, {}},
      {"concat", "C4", {x, f32({2, 4})}, {{"axis", integer(0)}}, {}},
      {"concat", "C5", {f32({1 << 30}), f32({1 << 30}), f32({1 << 30}), f32({1 << 30})}, {{"axis", integer(0)}}, {}},
      {"windows", "C1", {x}, window({{"stride", Integers{0}}, {"fill", 0.0}}), {}},
      {"windows", "C2", {x}, window({{"kernel", Integers{4}}, {"fill", 0.0}}), {}},
      {"windows", "C3", {f32({1 << 20})}, window({{"kernel", Integers{1 << 19}}, {"fill", 0.0}}), {}},
      {"windows", "C4", {idx}, window({{"fill", 0.5}}), {}},
      {"fold", "C1", {flag}, window({{"extents", Integers{4}}}), {}},
      {"fold", "C2", {f32({3, 2})}, window({{"extents", Integers{4, 1}}}), {}},
      {"fold", "C3", {f32({3, 2})}, window({{"extents", Integers{5}}}), {}},
      {"skew", "C1", {x}, skewed({{"stride", Integers{1, 1}}}), {}},
      {"skew", "C2", {x}, skewed({{"stride", Integers{0}}}), {}},
      {"skew", "C3", {x}, skewed({{"extents", Integers{0}}}), {}},
      {"skew", "C4", {idx}, skewed({{"fill", 0.5}}), {}},
      {"conv", "C1", {i32({1, 2, 4, 4}), f32({3, 2, 3, 3})}, convolution(), {}},
      {"conv", "C2", {f32({2, 4, 4}), f32({3, 2, 3, 3})}, convolution(), {}},
      {"conv", "C3", {f32({1, 2, 4, 4}), f32({3, 2, 3, 3})}, convolution({{"padding", Integers{0, -1}}}), {}},
      {"conv", "C4", {f32({1, 2, 4, 4}), f32({3, 2, 3, 3})}, convolution({{"groups", integer(2)}}), {}},
      {"conv", "C5", {f32({1, 2, 4, 2}), f32({3, 2, 3, 3})}, convolution(), {}},
      {"conv", "C6", {f32({16, 64, 1024, 1024}), f32({1, 64, 3, 3})}, convolution(), {}},
      {"conv_transpose", "C1", {i32({1, 2, 4, 4}), f32({2, 3, 3, 3})}, transposed(), {}},
      {"conv_transpose", "C2", {f32({2, 4, 4}), f32({2, 3, 3, 3})}, transposed(), {}},
      {"conv_transpose", "C3", {f32({1, 2, 4, 4}), f32({2, 3, 3, 3})}, transposed({{"output_padding", Integers{0, 1}}}), {}},
      {"conv_transpose", "C4", {f32({1, 2, 4, 4}), f32({3, 2, 3, 3})}, transposed(), {}},
      {"conv_transpose", "C5", {f32({1, 2, 4, 1}), f32({2, 3, 3, 2})}, transposed({{"padding", Integers{0, 1}}}), {}},
      {"conv_transpose", "C6", {f32({16, 64, 1024, 1024}), f32({64, 1, 3, 3})}, transposed(), {}},
      {"max_pool", "C1", {f32({2, 8})}, pooling(2, 0, false), {}},
      {"max_pool", "C2", {f32({1, 2, 8})}, pooling(2, 2, false), {}},
      {"max_pool", "C3", {f32({1, 2, 8})}, pooling(9, 0, false), {}},
      {"avg_pool", "C1", {i32({1, 2, 8})}, pooling(2, 0, true), {}},
      {"avg_pool", "C2", {f32({1, 2, 8})}, pooling(2, -1, true), {}},
      {"avg_pool", "C3", {f32({1 << 14, 1 << 13, 8})}, pooling(3, 1, true), {}},
      {"broadcast_to", "C1", {row}, shapeOf({0, 3}), {}},
      {"broadcast_to", "C2", {x}, shapeOf({3, 2}), {}},
      {"sum_to_shape", "C1", {flag}, shapeOf({3}), {}},
      {"sum_to_shape", "C2", {x}, shapeOf({2}), {}},
      {"matmul", "C1", {idx, f32({3, 4})}, {}, {}},
      {"matmul", "C2", {x, row}, {}, {}},
      {"matmul", "C3", {x, f32({2, 4})}, {}, {}},
      {"matmul", "C4", {f32({4, 2, 3}), f32({5, 3, 2})}, {}, {}},
      {"matmul", "C5", {f32({1 << 20, 1}), f32({1, 1 << 20})}, {}, {}},
      {"embedding", "C1", {row, idx}, {}, {}},
      {"embedding", "C2", {x, row}, {}, {}},
      {"embedding", "C3", {f32({2, 1 << 20}), i32({1 << 20})}, {}, {}},
      {"one_hot", "C1", {x}, {{"depth", integer(3)}}, {}},
      {"one_hot", "C2", {idx}, {{"depth", integer(0)}}, {}},
      {"one_hot", "C3", {i32({1 << 20})}, {{"depth", integer(1) << 20}}, {}},
      {"where_causal", "C1", {i32({3, 3})}, {{"fill", 0.0}}, {}},
      {"where_causal", "C2", {x}, {{"fill", 0.0}}, {}},
      {"softmax", "C1", {idx}, {}, {}},
      {"softmax", "C2", {scalar}, {}, {}},
      {"log_softmax", "C1", {idx}, {}, {}},
      {"log_softmax", "C2", {scalar}, {}, {}},
      {"softmax_causal", "C1", {i32({3, 3})}, {}, {}},
      {"softmax_causal", "C2", {row}, {}, {}},
      {"cross_entropy", "C1", {idx, i32({2})}, mean(), {}},
      {"cross_entropy", "C2", {x, f32({2})}, mean(), {}},
      {"cross_entropy", "C3", {x, i32({2, 3})}, mean(), {}},
      {"cross_entropy", "C4", {x, i32({2})}, {{"reduction", std::string("median")}}, {}},
      {"cross_entropy", "C5", {x, i32({2}), f32({2})}, mean(), {}},
      {"cross_entropy", "C6", {x, i32({2})}, {{"reduction", std::string("mean")}, {"label_smoothing", 1.5}}, {}},
      {"layer_norm", "C1", {idx, row, row}, eps(1e-5), {}},
      {"layer_norm", "C2", {scalar, row, row}, eps(1e-5), {}},
      {"layer_norm", "C3", {x, row, f32({2})}, eps(1e-5), {}},
      {"layer_norm", "C4", {x, row, row}, eps(0), {}},
      {"cumsum", "C1", {flag}, {{"axis", integer(0)}, {"reverse", false}}, {}},
      {"cumsum", "C2", {x}, {{"axis", integer(2)}, {"reverse", false}}, {}},
      {"segment_sum", "C1", {flag, i32({2})}, segments(0, 4), {}},
      {"segment_sum", "C2", {x, idx}, segments(0, 4), {}},
      {"segment_sum", "C3", {x, i32({2})}, segments(-1, 4), {}},
      {"segment_sum", "C4", {x, i32({3})}, segments(0, 4), {}},
      {"segment_sum", "C5", {x, i32({2})}, segments(0, 0), {}},
      {"search_sorted", "C1", {i32({2, 2}), idx}, {}, {}},
      {"search_sorted", "C2", {i32({2}), x}, {}, {}},
      {"sum_of_runs", "C1", {flag, i32({2}), i32({3})}, {{"axis", integer(0)}}, {}},
      {"sum_of_runs", "C2", {x, i32({2}), i32({3})}, {{"axis", integer(2)}}, {}},
      {"sum_of_runs", "C3", {x, i32({32769}), i32({3})}, {{"axis", integer(0)}}, {}},
      {"sum_of_runs", "C4", {x, i32({2}), i32({1})}, {{"axis", integer(0)}}, {}},
      {"sum_of_runs", "C5", {f32({1, 1 << 20}), i32({2}), i32({(1 << 20) + 1})}, {{"axis", integer(0)}}, {}},
      {"index_select", "C1", {x, idx}, {{"axis", integer(0)}}, {}},
      {"index_select", "C2", {x, i32({2})}, {{"axis", integer(2)}}, {}},
      {"index_select", "C3", {f32({1, 1 << 20}), i32({1 << 20})}, {{"axis", integer(0)}}, {}},
      {"take_along_axis", "C1", {x, x}, {{"axis", integer(0)}}, {}},
      {"take_along_axis", "C2", {x, idx}, {{"axis", integer(2)}}, {}},
      {"take_along_axis", "C3", {x, i32({3, 3})}, {{"axis", integer(1)}}, {}},
      {"scatter_add", "C1", {x, idx, idx}, {{"axis", integer(0)}}, {}},
      {"scatter_add", "C2", {x, x, x}, {{"axis", integer(0)}}, {}},
      {"scatter_add", "C3", {x, idx, f32({2, 4})}, {{"axis", integer(1)}}, {}},
      {"scatter_add", "C4", {x, idx, x}, {{"axis", integer(2)}}, {}},
      {"scatter_add", "C5", {x, i32({3, 3}), f32({3, 3})}, {{"axis", integer(1)}}, {}},
      {"merge_order", "C1", {x}, {{"axis", integer(0)}, {"run", integer(1)}}, {}},
      {"merge_order", "C2", {i32({4})}, {{"axis", integer(1)}, {"run", integer(1)}}, {}},
      {"merge_order", "C3", {i32({4})}, {{"axis", integer(0)}, {"run", integer(0)}}, {}},
      {"sort", "C1", {flag}, {{"axis", integer(0)}, {"descending", false}}, {}},
      {"sort", "C2", {x}, {{"axis", integer(2)}, {"descending", false}}, {}},
      {"sort", "C3", {f32({1 << 24})}, {{"axis", integer(0)}, {"descending", false}}, {}},
      {"top_k", "C1", {flag}, {{"axis", integer(0)}, {"k", integer(1)}}, {}},
      {"top_k", "C2", {x}, {{"axis", integer(2)}, {"k", integer(1)}}, {}},
      {"top_k", "C3", {x}, {{"axis", integer(1)}, {"k", integer(4)}}, {}},
      {"top_k", "C4", {f32({1 << 13, 1024})}, {{"axis", integer(1)}, {"k", integer(1)}}, {}},
      {"draw_token", "C1", {row, count, share, share, share}, {}, {}},
      {"draw_token", "C2", {x, count, share, share, f32({3})}, {}, {}},
      {"draw_token", "C3", {f32({2, 1 << 24}), count, share, share, share}, {}, {}},
      {"rank_chunks", "C1", {row}, {{"chunk", integer(4)}}, {}},
      {"rank_chunks", "C2", {x}, {{"chunk", integer(3)}}, {}},
      {"rank_chunks", "C3", {x}, {{"chunk", integer(1) << 30}}, {}},
      {"draw_from_chunks", "C1", {ranks, ranks, ranks, count, share, share, share}, {{"length", integer(3)}}, {}},
      {"draw_from_chunks", "C2", {ranks, ranks, f32({2, 1, 4}), share, share, share, share}, {{"length", integer(3)}}, {}},
      {"draw_from_chunks", "C3", {ranks, ranks, f32({2, 1, 4}), count, share, share, share}, {{"length", integer(5)}}, {}},
      {"cotangent", "C1", {}, shapeOf({0}), {}},
      {"custom_gradient", "C1", {x, x, x}, {{"results", integer(1)}}, {}},
      {"custom_gradient", "C2", {idx, idx}, {{"results", integer(1)}}, {}},
      {"custom_gradient", "C3", {x, x, row, x}, {{"results", integer(1)}}, {}},
      {"categorical", "C1", {idx, key}, {{"axis", integer(0)}, {"salt", integer(0)}}, {}},
      {"categorical", "C2", {x, x}, {{"axis", integer(0)}, {"salt", integer(0)}}, {}},
      {"categorical", "C3", {x, key}, {{"axis", integer(2)}, {"salt", integer(0)}}, {}},
      {"categorical", "C4", {x, key}, {{"axis", integer(0)}, {"salt", integer(-1)}}, {}},
      {"dropout", "C1", {idx, key}, dropping(0.5, 0), {}},
      {"dropout", "C2", {x, idx}, dropping(0.5, 0), {}},
      {"dropout", "C3", {x, key}, dropping(1, 0), {}},
      {"dropout", "C4", {x, key}, dropping(0.5, -1), {}},
      {"rms_norm", "C1", {idx, row}, eps(1e-5), {}},
      {"rms_norm", "C2", {scalar, row}, eps(1e-5), {}},
      {"rms_norm", "C3", {x, f32({2})}, eps(1e-5), {}},
      {"rms_norm", "C4", {x, row}, eps(-1), {}},
      {"group_norm", "C1", {idx, row, row}, grouped(1, 1e-5), {}},
      {"group_norm", "C2", {row, row, row}, grouped(1, 1e-5), {}},
      {"group_norm", "C3", {x, row, f32({2})}, grouped(1, 1e-5), {}},
      {"group_norm", "C4", {x, row, row}, grouped(2, 1e-5), {}},
      {"group_norm", "C5", {x, row, row}, grouped(3, 0), {}},
      {"batch_norm", "C1", {idx, row, row}, eps(1e-5), {}},
      {"batch_norm", "C2", {row, row, row}, eps(1e-5), {}},
      {"batch_norm", "C3", {x, f32({2}), row}, eps(1e-5), {}},
      {"batch_norm", "C4", {x, row, row}, eps(0), {}},
      {"rope", "C1", {row}, turning(), {}},
      {"rope", "C2", {x}, turning({{"dims", integer(3)}}), {}},
      {"rope", "C3", {x}, turning({{"layout", std::string("spiral")}}), {}},
      {"rope", "C4", {x}, turning({{"base", 0.0}}), {}},
      {"rope", "C5", {x}, turning({{"offset", INT64_MAX}}), {}},
      {"rope", "C6", {x, f32({2})}, turning(), {}},
      {"einsum", "C1", {idx}, {{"equation", std::string("ij->ji")}}, {}},
      {"einsum", "C2", {x}, {{"equation", std::string("ij")}}, {}},
      {"einsum", "C3", {x}, {{"equation", std::string("i->i")}}, {}},
      {"einsum", "C4", {f32({2, 2})}, {{"equation", std::string("ii->i")}}, {}},
      {"einsum", "C5", {x, x}, {{"equation", std::string("ij,jk->ik")}}, {}},
      {"einsum", "C6", {x}, {{"equation", std::string("ij->ik")}}, {}},
      {"einsum", "C7", {f32({1 << 20}), f32({1 << 20})}, {{"equation", std::string("i,j->ij")}}, {}},
      {"kernel", "C1", {x}, userKernel("f32[2", 1), {}},
      {"kernel",
       "C2",
       {x},
       {{"label", std::string("mine")}, {"module", std::string("no")}, {"results", std::string("f32[2]")}, {"groups", Integers{1, 1, 1}}},
       {}},
      {"kernel", "C3", {x, x}, userKernel("f32[2]", 1), {}},
      {"kernel", "C4", {x}, userKernel("f32[2]", 0), {}},
      {"kernel", "C5", {x}, userKernel("f32[2]", 1, "array<f32, 100>"), {}},
      {"pack", "C1", {idx}, parts({0}, 64), {}},
      {"pack", "C2", {x, x}, parts({0}, 64), {}},
      {"pack", "C3", {x}, parts({32}, 64), {}},
      {"pack", "C4", {x, x}, parts({64, 0}, 128), {}},
      {"pack", "C5", {}, parts({}, 0), {}},
      {"update_slice", "C1", {x, i32({2})}, {{"offset", integer(0)}}, {}},
      {"update_slice", "C2", {x, row}, {{"offset", integer(4)}}, {}},
      {"group", "C1", {x}, {{"kind", std::string("map")}}, {}},
  };
  for (std::string_view op :
       {"add", "sub", "mul", "div", "min", "max", "pow", "equal", "not_equal", "same", "less", "less_equal", "greater", "greater_equal"}) {
    broken.push_back({op, "C1", {x, idx}, {}, {}});
    broken.push_back({op, "C2", {x, row}, {}, {}});
  }
  broken.push_back({"linear_recurrence", "C1", {x, row}, {{"axis", integer(0)}, {"reverse", false}}, {}});
  broken.push_back({"linear_recurrence", "C2", {x, x}, {{"axis", integer(2)}, {"reverse", false}}, {}});
  broken.push_back({"associative_scan", "C1", {flag}, scanned(0, adding(DType::F32)), {}});
  broken.push_back({"associative_scan", "C2", {x}, scanned(2, adding(DType::F32)), {}});
  broken.push_back({"associative_scan", "C3", {x}, scanned(0, adding(DType::I32)), {}});
  const auto reduced = [](int64_t axis, std::string combine) { return Attributes{{"axis", axis}, {"combine", std::move(combine)}}; };
  broken.push_back({"associative_reduce", "C1", {x, row}, reduced(0, adding(DType::F32)), {}});
  broken.push_back({"associative_reduce", "C2", {x}, reduced(-1, adding(DType::F32)), {}});
  broken.push_back({"associative_reduce", "C3", {x}, reduced(0, adding(DType::I32)), {}});
  breakLoop(broken);
  breakCausalConv(broken);
  breakScanTemplates(broken);
  breakSsd(broken);
  breakSelectiveScan(broken);
  for (std::string_view op : {"write_rows", "update_rows"}) {
    const Attributes first{{"axis", integer(0)}};
    broken.push_back({op, "C1", {x, idx, i32({})}, first, {}});
    broken.push_back({op, "C2", {x, x, i32({})}, {{"axis", integer(2)}}, {}});
    broken.push_back({op, "C3", {x, row, i32({})}, first, {}});
    broken.push_back({op, "C4", {x, x, idx}, first, {}});
  }
  for (std::string_view op : {"uniform", "normal", "gumbel"}) {
    broken.push_back({op, "C1", {idx}, {{"shape", Integers{2}}, {"salt", integer(0)}}, {}});
    broken.push_back({op, "C2", {key}, {{"shape", Integers{0}}, {"salt", integer(0)}}, {}});
    broken.push_back({op, "C3", {key}, {{"shape", Integers{2}}, {"salt", integer(1) << 31}}, {}});
  }
  for (const OpDef* op : allOps()) {
    const bool none_required = std::ranges::none_of(*op->attributes, &AttributeDef::required);
    bool one_float = op->operands->size() == 1 && none_required && op->constraints->size() == 1;
    if (one_float && (*op->constraints)[0].text == "the operand is f32") broken.push_back({*op->name, "C1", {idx}, {}, {}});
  }
  broken.push_back({"neg", "C1", {u32({2})}, {}, {}});
  const TensorType out = f32({1, 2, 3}), rows = f32({1, 2});
  breakAttention("scaled_dot_product_attention", {}, broken);
  breakAttention("attend", {}, broken);
  breakCachedAttention("cached_attention", broken);
  breakCachedAttention("attend_cache", broken);
  breakCachedAttention("attend_chunk", broken);
  breakQuantized(broken);
  breakAttention("attention_gradient", {out, rows, out, rows}, broken);
  breakAttention("attend_gradient_queries", {out, rows, rows}, broken);
  breakAttention("attend_gradient_keys", {out, rows, rows}, broken);
  breakAttention("attend_whole", {}, broken);
  breakAttention("attend_gradient_whole", {out, rows}, broken);
  const TensorType heads = f32({4, 2, 3}), one_head = f32({2, 2, 3});
  broken.push_back({"attend_gradient_whole",
                    "C9",
                    {heads, one_head, one_head, heads, f32({4, 2})},
                    {{"causal", false}, {"offset", integer(0)}, {"scale", 1.0}},
                    {}});
  return broken;
}

Result<std::vector<ValueId>> build(const Broken& broken) {
  Builder builder;
  builder.mutableGraph().constants = broken.constants;
  std::vector<ValueId> operands;
  for (const TensorType& type : broken.operands) operands.push_back(addInput(builder, fmt::format("operand{}", operands.size()), type));
  return builder.tryMake(op(broken.op), operands, broken.attributes);
}

class Constraint : public ::testing::TestWithParam<Broken> {};

TEST_P(Constraint, Broken_IsRefusedUnderItsCode) {
  auto made = build(GetParam());
  ASSERT_FALSE(made.ok());
  ASSERT_EQ(made.diagnostics().size(), 1U);
  const Diagnostic& diagnostic = made.diagnostics().front();
  EXPECT_EQ(diagnostic.code, fmt::format("{}.{}", GetParam().op, GetParam().label));
  ASSERT_FALSE(diagnostic.message.empty());
  EXPECT_NE(diagnostic.message.back(), '.');
}

INSTANTIATE_TEST_SUITE_P(Op, Constraint, ::testing::ValuesIn(brokenCases()), [](const auto& info) { return info.param.name(); });

TEST(Constraints, EachOne_HasABrokenCase) {
  std::set<std::string> tested;
  for (const Broken& broken : brokenCases()) tested.insert(broken.name());
  for (const OpDef* op : allOps()) {
    for (const auto& constraint : *op->constraints) {
      std::string name = fmt::format("{}_{}", *op->name, constraint.label);
      EXPECT_EQ(tested.erase(name), 1U) << name;
    }
  }
  EXPECT_TRUE(tested.empty()) << *tested.begin();
}

// Further ways to break a constraint that share a code with the ones above.
TEST(Constraints, OtherWaysToBreakThem_AreRefusedToo) {
  TensorType x = f32({2, 3}), flag = boolean({2, 3});
  int64_t huge = int64_t{1} << 62;
  double nan = std::numeric_limits<double>::quiet_NaN();
  std::vector<Broken> others{
      {"add", "C1", {flag, flag}, {}, {}},
      {"less", "C1", {flag, flag}, {}, {}},
      {"clamp", "C2", {x}, {{"lo", nan}, {"hi", 1.0}}, {}},
      {"argmax", "C2", {x}, {{"axis", int64_t{-1}}}, {}},
      {"input", "C1", {}, leaf({huge, huge, huge}), {}},
      {"constant", "C2", {}, {{"value", nan}, {"dtype", DType::I32}, {"shape", Integers{2}}}, {}},
      {"constant", "C2", {}, {{"value", 2147483648.0}, {"dtype", DType::I32}, {"shape", Integers{2}}}, {}},
      {"constant", "C2", {}, {{"value", 2.0}, {"dtype", DType::Bool}, {"shape", Integers{2}}}, {}},
      {"sum", "C2", {x}, reduction({0, 0}), {}},
      {"sum", "C2", {x}, reduction({-1}), {}},
      {"reshape", "C1", {x}, shapeOf({huge, huge}), {}},
      {"permute", "C1", {x}, {{"permutation", Integers{0}}}, {}},
      {"permute", "C1", {x}, {{"permutation", Integers{-1, 0}}}, {}},
      {"narrow", "C2", {x}, range(1, INT64_MAX, 1), {}},
      {"narrow", "C2", {x}, range(1, 0, 0), {}},
      {"narrow", "C2", {x}, range(1, -1, 1), {}},
      {"narrow", "C1", {f32({})}, range(0, 0, 1), {}},
      {"pad", "C3", {x}, padding(1, INT64_MAX, INT64_MAX, 0), {}},
      {"broadcast_to", "C2", {x}, shapeOf({3}), {}},
      {"sum_to_shape", "C2", {x}, shapeOf({1, 2, 3}), {}},
      {"windows", "C1", {x}, window({{"padding_low", Integers{INT64_MIN}}, {"fill", 0.0}}), {}},
      {"windows", "C1", {x}, window({{"kernel", Integers{2, 2, 2}}, {"fill", 0.0}}), {}},
      {"windows", "C2", {x}, window({{"padding_high", Integers{-2}}, {"fill", 0.0}}), {}},
      {"skew", "C2", {x}, skewed({{"padding", Integers{INT64_MIN}}}), {}},
      {"fold", "C3", {f32({3, 2})}, window({{"extents", Integers{INT64_MAX}}}), {}},
      {"conv", "C3", {f32({1, 2, 4, 4}), f32({3, 2, 3, 3})}, convolution({{"stride", Integers{1}}}), {}},
      {"conv", "C3", {f32({1, 2, 4, 4}), f32({3, 2, 3, 3})}, convolution({{"dilation", Integers{1, INT64_MAX}}}), {}},
      {"conv_transpose", "C3", {f32({1, 2, 4, 4}), f32({2, 3, 3, 3})}, transposed({{"output_padding", Integers{0}}}), {}},
      {"conv_transpose", "C5", {f32({1, 1, 4, 4}), f32({1, 1, 1 << 20, 3})}, transposed({{"dilation", Integers{1 << 20, 1}}}), {}},
      {"einsum", "C2", {x}, {{"equation", std::string("i j->ij")}}, {}},
      {"einsum", "C2", {x, x, x}, {{"equation", std::string("ij,ij,ij->ij")}}, {}},
      {"einsum", "C6", {x}, {{"equation", std::string("ij->ii")}}, {}},
      {"matmul", "C4", {f32({2, 2, 3}), f32({3, 3, 2})}, {}, {}},
      {"one_hot", "C2", {i32({2})}, {{"depth", INT64_MAX}}, {}},
      {"cross_entropy", "C5", {x, i32({2}), i32({3})}, mean(), {}},
      {"cross_entropy", "C5", {x, i32({2}), f32({3}), f32({3})}, mean(), {}},
      {"layer_norm", "C4", {x, f32({3}), f32({3})}, eps(nan), {}},
      {"pack", "C4", {x, x}, parts({0, 0}, 128), {}},
      {"pack", "C4", {x}, parts({-64}, 128), {}},
      {"pack", "C4", {x}, parts({0}, 5), {}},
      {"pack", "C4", {x}, parts({INT64_MAX / 64 * 64}, 64), {}},
      {"pack", "C5", {}, parts({}, -1), {}},
      {"update_slice", "C2", {x, f32({2})}, {{"offset", INT64_MAX}}, {}},
      {"linear_recurrence", "C1", {i32({2, 3}), i32({2, 3})}, {{"axis", int64_t{0}}, {"reverse", false}}, {}},
      {"write_rows", "C4", {f32({4, 9}), f32({4, 2}), i32({3})}, {{"axis", int64_t{1}}}, {}},
      {"write_rows", "C4", {f32({4, 9}), f32({2, 9}), i32({4})}, {{"axis", int64_t{0}}}, {}},
      {"rope", "C6", {f32({2, 3, 5, 8}), i32({3, 5})}, turning(), {}},
      {"associative_scan", "C1", {}, scanned(0, adding(DType::F32)), {}},
      {"associative_scan", "C3", {x}, scanned(0, "lockstep.graph"), {}},
      {"associative_scan", "C3", {x, x}, scanned(0, adding(DType::F32)), {}},
      {"associative_scan", "C3", {x}, scanned(0, summing()), {}},
      {"causal_conv1d", "C2", {f32({2, 5, 3}), f32({4, 4}), f32({3})}, {}, {}},
      {"causal_conv1d", "C4", {f32({2, 5, 3}), f32({3, 4}), f32({3}), f32({2, 3, 3}), f32({2, 3, 3})}, {}, {}},
      {"causal_conv1d", "C4", {f32({2, 5, 3}), f32({3, 1}), f32({3}), f32({2, 1, 3})}, {}, {}},
      {"update_slice", "C2", {x, f32({2})}, {{"offset", int64_t{-1}}}, {}},
  };
  for (const Broken& broken : others) {
    auto made = build(broken);
    ASSERT_FALSE(made.ok()) << broken.name();
    EXPECT_EQ(made.diagnostics().front().code, fmt::format("{}.{}", broken.op, broken.label));
  }
}

TEST(Operands, WrongNumber_IsRefused) {
  Builder builder;
  ValueId x = addInput(builder, "x", f32({2}));
  auto made = builder.tryMake(op("add"), {x});
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.diagnostics().front().code, "add.operands");
}

}  // namespace
}  // namespace lockstep::graph::testing
