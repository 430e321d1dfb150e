// SPDX-License-Identifier: Apache-2.0
// Broken cases of attention, loops, scans and convolutions over sequences.
#include <fmt/format.h>

#include <limits>

#include "ir/ops/support/common.h"
#include "tests/ir/ops/broken_ops.h"

namespace lockstep::graph::testing {

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

}  // namespace lockstep::graph::testing
