// SPDX-License-Identifier: Apache-2.0
// Time of the scans of state-space models on each device: the sum of the commands' times, without transfers, and the memory of the program.
// usage: bench_state_space [--short] [--loop] [--commands] [DEVICE...]   prints one line per scan, shape and device; --loop: without
// templates; --commands: the time of each command as well
#include <fmt/format.h>

#include "bench/chosen_devices.h"
#include "bench/command_seconds.h"
#include "frontend/train/session.h"
#include "frontend/train/templates.h"
#include "ir/graph/op_def.h"
#include "passes/graph/grad.h"

namespace {

using namespace lockstep;
using graph::DType;
using graph::Shape;
using graph::ValueId;

struct Case {
  bool is_dual;
  int64_t batch, length, channels, heads, states, chunk;  ///< heads: of a dual
};
constexpr Case kCases[] = {{false, 8, 2048, 1536, 1, 16, 16},   {false, 8, 2048, 1536, 1, 16, 8},   {false, 8, 2048, 1536, 1, 16, 32},
                           {false, 1, 100000, 1536, 1, 16, 16}, {true, 8, 2048, 1536, 24, 128, 32}, {true, 8, 2048, 1536, 24, 128, 64},
                           {true, 8, 2048, 1536, 24, 128, 128}, {true, 8, 2048, 1536, 24, 128, 256}};
constexpr Case kShortCases[] = {{false, 2, 256, 64, 1, 16, 16}, {true, 2, 256, 64, 4, 16, 64}};

/// Random numbers that the device makes, forward or with the gradients towards all operands.
graph::Graph scan(const Case& c, bool with_gradient, std::vector<InputSpec>& inputs) {
  graph::Builder b;
  const graph::TensorType key{DType::U32, {4}};
  inputs.push_back({"key", key});
  const ValueId seed = b.make("input", {}, {{"name", "key"}, {"dtype", key.dtype}, {"shape", key.shape.extents()}});
  int64_t salt = 0;
  const auto tensor = [&](const Shape& shape, double scale, double shift) {
    const ValueId made = b.make("uniform", {seed}, {{"shape", shape.extents()}, {"salt", salt++}});
    return b.make("barrier", {b.add(b.mul(made, scale), shift)});
  };
  std::vector<ValueId> operands, results;
  if (c.is_dual) {
    const Shape of_states{c.batch, c.length, 1, 1, c.states};
    const Shape of_heads{c.batch, c.length, c.heads};
    operands = {tensor({c.batch, c.length, c.heads, 1, c.channels / c.heads}, 2, -1), tensor(of_heads, 0.1, 0.001),
                tensor(of_heads, -0.5, 0), tensor(of_states, 2, -1), tensor(of_states, 2, -1)};
    results = b.makeAll("ssd", operands, {{"chunk", c.chunk}});
  } else {
    const Shape of_channels{c.batch, c.length, c.channels}, of_states{c.batch, c.length, c.states};
    operands = {tensor(of_channels, 2, -1), tensor(of_channels, 0.1, 0.001), tensor({c.channels, c.states}, -15, -1),
                tensor(of_states, 2, -1), tensor(of_states, 2, -1)};
    results = b.makeAll("selective_scan", operands, {{"chunk", c.chunk}, {"zero_order_hold", false}});
  }
  const auto output = [&](const std::string& name, ValueId value) {
    b.output(graph::OutputKind::Result, name, bench::firstElement(b, value));
  };
  if (with_gradient) {
    const std::vector<ValueId> outputs{results[0]}, seeds{tensor(Shape(b.shapeOf(results[0])), 2, -1)};
    const std::vector<ValueId> gradients = passes::appendGradients(b, outputs, seeds, operands).values;
    for (size_t i = 0; i < gradients.size(); ++i) output(fmt::format("d{}", i), gradients[i]);
  }
  output("y", results[0]);
  return b.take();
}

void report(const Case& c, const detail::Device& device, bool as_loop, bool has_commands) {
  fmt::print("{:12} {:14} {:>2} x {:>6} x {:>4} ({:>2} heads) x {:>3} chunk {:>3}", device.chosen.info.id,
             c.is_dual ? "ssd" : "selective_scan", c.batch, c.length, c.channels, c.heads, c.states, c.chunk);
  for (const bool with_gradient : {false, true}) {
    std::vector<InputSpec> inputs;
    const graph::Graph graph = scan(c, with_gradient, inputs);
    passes::CompileOptions options;
    if (as_loop) options.disabled = {"template:selective_scan"};
    detail::Session session(graph, options, std::make_shared<detail::States>(device), inputs);
    const std::vector<std::byte> input(session.inputBytes());
    fmt::print("  {:>10.1f} us {:>7.1f} MiB", bench::commandSeconds(session, input, {"uniform", "copy"}) * 1e6,
               static_cast<double>(session.plan().workspace_bytes) / (1 << 20));
    if (!has_commands) continue;
    fmt::print("\n");
    for (const auto& command : session.time(input)) fmt::print("  {:>10.1f} us  {}\n", command.seconds * 1e6, command.label);
  }
  fmt::print("\n");
  std::fflush(stdout);
}

}  // namespace

int main(int count, char** arguments) {
  std::vector<std::string> devices(arguments + 1, arguments + count);
  const bool is_short = std::erase(devices, "--short") > 0, as_loop = std::erase(devices, "--loop") > 0,
             has_commands = std::erase(devices, "--commands") > 0;
  try {
    fmt::print("{:12} {:14} batch x length x channels x states: forward; with gradients; memory of the program\n", "device", "scan");
    for (const std::string& selector : bench::chosenDevices(devices)) {
      const detail::Device device = detail::openChosenDevice(selector);
      for (const Case& c : is_short ? std::span<const Case>(kShortCases) : std::span<const Case>(kCases))
        report(c, device, as_loop, has_commands);
    }
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
}
