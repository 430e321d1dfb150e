// SPDX-License-Identifier: Apache-2.0
// Time of attention on each device, by its templates: the sum of the commands' times, without transfers.
// usage: bench_attention [--short] [--products] [DEVICE...]   prints one line per shape, element type and device; on request beside
// products and a softmax
#include <fmt/format.h>

#include <cmath>

#include "bench/chosen_devices.h"
#include "bench/command_seconds.h"
#include "frontend/train/session.h"
#include "frontend/train/templates.h"
#include "ir/graph/op_def.h"

namespace {

using namespace lockstep;
using graph::DType;
using graph::ValueId;

struct Case {
  int64_t batch, heads, length, width;
};
constexpr Case kCases[] = {{64, 6, 256, 64}, {8, 8, 256, 64},  {8, 12, 1000, 64}, {8, 12, 1024, 64}, {1, 8, 2048, 64},
                           {8, 8, 2048, 64}, {1, 8, 8192, 64}, {32, 6, 256, 128}, {4, 8, 2048, 128}, {1, 4, 8192, 128}};
constexpr Case kShortCases[] = {{8, 4, 32, 16}, {2, 4, 64, 32}, {1, 4, 256, 32}, {1, 1, 1024, 64}, {1, 1, 2048, 64}};

/// Causal attention of packed operands, or of f32; with the gradient towards all three.
graph::Graph attention(const Case& c, DType dtype, bool with_gradient, std::vector<InputSpec>& inputs) {
  graph::Builder b;
  const graph::TensorType key{DType::U32, {4}};
  inputs.push_back({"key", key});
  const ValueId seed = b.make("input", {}, {{"name", "key"}, {"dtype", key.dtype}, {"shape", key.shape.extents()}});
  // Random numbers that the device makes: the host would take longer to bring them than attention does.
  const auto tensor = [&](int64_t salt) {
    const ValueId made = b.make("uniform", {seed}, {{"shape", std::vector<int64_t>{c.batch, c.heads, c.length, c.width}}, {"salt", salt}});
    const ValueId kept = b.make("barrier", {dtype == DType::F32 ? made : b.make("cast", {made}, {{"dtype", dtype}})});
    return dtype == DType::F32 ? kept : b.make("cast", {kept}, {{"dtype", DType::F32}});
  };
  const auto output = [&](const std::string& name, ValueId value) {
    b.output(graph::OutputKind::Result, name,
             bench::firstElement(b, dtype == DType::F32 ? value : b.make("cast", {value}, {{"dtype", dtype}})));
  };
  const std::vector<ValueId> operands{tensor(0), tensor(1), tensor(2)};
  graph::Attributes attributes{{"causal", true}, {"offset", int64_t{0}}, {"scale", 1 / std::sqrt(static_cast<double>(c.width))}};
  if (dtype != DType::F32) attributes.set(std::string(graph::kLowAttribute), dtype);
  const std::vector<ValueId> results = b.makeAll("scaled_dot_product_attention", operands, attributes);
  if (!with_gradient) output("out", results[0]);
  if (with_gradient) {
    const graph::Node node = b.graph().definition(results[0]);
    const std::vector<ValueId> cotangents{tensor(3), ValueId()};
    const auto gradients = std::get<graph::GradientFn>(*node.op->gradient)({b, node, operands, results, cotangents});
    for (size_t i = 0; i < gradients.size(); ++i) output(fmt::format("d{}", i), gradients[i]);
  }
  return b.take();
}

double secondsOf(const Case& c, DType dtype, bool with_gradient, bool by_template, const detail::Device& device) {
  std::vector<InputSpec> inputs;
  const graph::Graph graph = attention(c, dtype, with_gradient, inputs);
  passes::CompileOptions options;
  (by_template ? options.preferred_templates : options.disabled) = {by_template ? "attention" : "template:attention"};
  detail::Session session(graph, options, std::make_shared<detail::States>(device), inputs);
  return bench::commandSeconds(session, std::vector<std::byte>(session.inputBytes()), {"uniform", "copy"}, by_template ? "attend" : "");
}

void report(const Case& c, DType dtype, const detail::Device& device, bool with_products) {
  std::string line =
      fmt::format("{:12} {:5} {:>3} x {:>2} x {:>5} x {:>3}", device.chosen.info.id, toString(dtype), c.batch, c.heads, c.length, c.width);
  // Half of the scores are hidden; a step of the gradient has five products in place of two.
  const double flops = 2.0 * static_cast<double>(c.batch * c.heads * c.length * c.length * c.width);
  for (const bool with_gradient : {false, true}) {
    const double mine = secondsOf(c, dtype, with_gradient, true, device);
    line += fmt::format("  {:>10.1f} us {:>9.1f} GFLOP/s", mine * 1e6, flops * (with_gradient ? 3.5 : 1) / mine / 1e9);
    if (!with_products) continue;
    const double products = secondsOf(c, dtype, with_gradient, false, device);
    line += fmt::format(" {:>10.1f} us {:>6.2f}", products * 1e6, products / mine);
  }
  fmt::print("{}\n", line);
  std::fflush(stdout);
}

}  // namespace

int main(int count, char** arguments) {
  std::vector<std::string> devices(arguments + 1, arguments + count);
  const bool is_short = std::erase(devices, "--short") > 0, with_products = std::erase(devices, "--products") > 0;
  try {
    fmt::print("{:12} {:5} {:22}  forward; with gradient; on request products and their ratio\n", "device", "type",
               "batch x heads x length x width");
    for (const std::string& selector : bench::chosenDevices(devices)) {
      const detail::Device device = detail::openChosenDevice(selector);
      for (const Case& c : is_short ? std::span<const Case>(kShortCases) : std::span<const Case>(kCases)) {
        for (const DType dtype : {DType::F32, DType::BF16}) report(c, dtype, device, with_products);
      }
    }
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
}
