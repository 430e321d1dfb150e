// SPDX-License-Identifier: Apache-2.0
// Time of single ops on each device: the sum of their commands' times, without transfers.
// usage: bench_ops [DEVICE...]   prints one line per op, shape and device: forward, and forward with gradient
#include <fmt/format.h>

#include <cmath>

#include "bench/chosen_devices.h"
#include "bench/command_seconds.h"
#include "frontend/train/session.h"
#include "ir/graph/op_def.h"

namespace {

using namespace lockstep;
using graph::DType;
using graph::Shape;
using graph::TensorType;

TensorType f32(Shape shape) { return {DType::F32, std::move(shape)}; }

struct Case {
  std::string_view op;
  std::vector<TensorType> operands;
  graph::Attributes attributes;
  double flops = 0;  ///< of the forward op; the gradient takes twice as many. 0: memory is what counts
};

Case matmul(int64_t n) { return {"matmul", {f32({n, n}), f32({n, n})}, {}, 2.0 * std::pow(static_cast<double>(n), 3)}; }
Case sum(Shape shape, std::vector<int64_t> axes) {
  return {"sum", {f32(std::move(shape))}, {{"axes", std::move(axes)}, {"keep_dims", false}}};
}
Case layerNorm(int64_t rows, int64_t columns) {
  return {"layer_norm", {f32({rows, columns}), f32({columns}), f32({columns})}, {{"eps", 1e-5}}};
}

std::vector<Case> cases() {
  return {matmul(256),
          matmul(512),
          matmul(1024),
          {"add", {f32({1 << 16}), f32({1 << 16})}, {}},
          {"add", {f32({1 << 22}), f32({1 << 22})}, {}},
          {"softmax", {f32({16384, 16})}, {}},
          {"softmax", {f32({2048, 512})}, {}},
          {"softmax", {f32({64, 16384})}, {}},
          layerNorm(8192, 64),
          layerNorm(1024, 1024),
          sum({2048, 1024}, {1}),
          sum({2048, 1024}, {0}),
          sum({1 << 21}, {0}),
          {"embedding", {f32({1024, 256}), {DType::I32, {4096}}}, {}}};
}

double bytesOf(const TensorType& type) { return static_cast<double>(type.byteSize()); }

/// One op as a program: its operands are inputs, and with the gradient so is the cotangent of its result.
struct OpProgram {
  graph::Graph graph;
  std::vector<InputSpec> inputs;
  double bytes = 0;  ///< of all inputs and outputs, each once
};

OpProgram programOf(const Case& op_case, bool with_gradient) {
  graph::Builder builder;
  OpProgram program;
  auto input = [&](std::string name, const TensorType& type) {
    graph::ValueId value = builder.make("input", {}, {{"name", name}, {"dtype", type.dtype}, {"shape", type.shape.extents()}});
    program.inputs.push_back({std::move(name), type});
    program.bytes += bytesOf(type);
    return value;
  };
  auto output = [&](std::string name, graph::ValueId value) {
    builder.output(graph::OutputKind::Result, std::move(name), value);
    program.bytes += bytesOf(builder.typeOf(value));
  };
  std::vector<graph::ValueId> operands;
  for (const TensorType& type : op_case.operands) operands.push_back(input(fmt::format("x{}", operands.size()), type));
  graph::ValueId result = builder.make(op_case.op, operands, op_case.attributes);
  const graph::Node node = builder.graph().nodes.back();
  output("y", result);
  const auto* gradient = std::get_if<graph::GradientFn>(&*graph::op(op_case.op).gradient);
  if (with_gradient && gradient != nullptr) {
    std::vector<graph::ValueId> results{result}, cotangents{input("dy", builder.typeOf(result))};
    const std::vector<graph::ValueId> gradients = (*gradient)({builder, node, operands, results, cotangents});
    for (size_t i = 0; i < gradients.size(); ++i) {
      if (gradients[i].valid()) output(fmt::format("dx{}", i), gradients[i]);
    }
  }
  program.graph = builder.take();
  return program;
}

/// Arbitrary values: floats in [-1, 1], indices that any table has.
class Values {
 public:
  explicit Values(const std::vector<InputSpec>& inputs) {
    floats_.reserve(inputs.size());
    ints_.reserve(inputs.size());
    for (const InputSpec& input : inputs) {
      auto count = static_cast<size_t>(input.type.shape.elementCount());
      if (input.type.dtype == DType::F32) {
        std::vector<float>& values = floats_.emplace_back(count);
        for (size_t i = 0; i < count; ++i) values[i] = static_cast<float>(i * 37 % 201) / 100.0f - 1.0f;
        batch_.emplace_back(input.name, values);
      } else {
        std::vector<int32_t>& values = ints_.emplace_back(count);
        for (size_t i = 0; i < count; ++i) values[i] = static_cast<int32_t>(i * 37 % 1000);
        batch_.emplace_back(input.name, values);
      }
    }
  }
  [[nodiscard]] const Batch& batch() const { return batch_; }

 private:
  std::vector<std::vector<float>> floats_;
  std::vector<std::vector<int32_t>> ints_;
  Batch batch_;
};

double secondsOf(const OpProgram& program, const detail::Device& device) {
  detail::Session session(program.graph, {}, std::make_shared<detail::States>(device), program.inputs);
  const Values values(program.inputs);
  return bench::commandSeconds(session, session.encode(values.batch(), {}));
}

std::string shapesOf(const Case& op_case) {
  std::string text;
  for (const TensorType& type : op_case.operands) text += (text.empty() ? "" : " ") + toString(type.shape);
  const graph::Attribute* axes = op_case.attributes.find("axes");
  return axes == nullptr ? text : fmt::format("{} over axis {}", text, std::get<std::vector<int64_t>>(*axes).front());
}

std::string rate(double work, double seconds, const char* unit) { return fmt::format("{:8.2f} {}", work / seconds / 1e9, unit); }

void report(const Case& op_case, const detail::Device& device) {
  std::string line = fmt::format("{:12} {:12} {:32}", device.chosen.info.id, op_case.op, shapesOf(op_case));
  for (bool with_gradient : {false, true}) {
    const OpProgram program = programOf(op_case, with_gradient);
    const double seconds = secondsOf(program, device);
    const double flops = op_case.flops * (with_gradient ? 3 : 1);
    line += fmt::format("  {:>10.1f} us {}", seconds * 1e6,
                        flops > 0 ? rate(flops, seconds, "GFLOP/s") : rate(program.bytes, seconds, "GB/s   "));
  }
  fmt::print("{}\n", line);
  std::fflush(stdout);
}

}  // namespace

int main(int count, char** arguments) {
  std::vector<std::string> devices(arguments + 1, arguments + count);
  try {
    fmt::print("{:12} {:12} {:32}  {:>26}  {:>26}\n", "device", "op", "operands", "forward", "forward and gradient");
    for (const std::string& selector : bench::chosenDevices(devices)) {
      const detail::Device device = detail::openChosenDevice(selector);
      for (const Case& op_case : cases()) report(op_case, device);
    }
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
}
