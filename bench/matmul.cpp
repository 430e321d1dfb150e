// SPDX-License-Identifier: Apache-2.0
// Time of matrix products on each device: the sum of the commands' times, without transfers.
// usage: bench_matmul [--short] [DEVICE...]   prints one line per shape, order of the operands, element type and device; short on CPUs
#include <fmt/format.h>

#include <cmath>
#include <cstdio>

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
  int64_t batch, m, n, k;
  std::string_view order = "nn";  ///< t: the operand is stored transposed, as in gradients
};
constexpr Case kCases[] = {{1, 256, 256, 256},          {1, 512, 512, 512},          {1, 1000, 1000, 1000},
                           {1, 1024, 1024, 1024},       {1, 2047, 2047, 2047},       {1, 2048, 2048, 2048},
                           {1, 4095, 4095, 4095},       {1, 4096, 4096, 4096},       {1, 8192, 8192, 8192},
                           {1, 5000, 3001, 777},        {1, 4096, 4096, 4096, "tn"}, {1, 4096, 4096, 4096, "nt"},
                           {1, 1024, 1024, 1024, "tn"}, {1, 1024, 1024, 1024, "nt"}, {1, 16384, 384, 384},
                           {1, 16384, 1536, 384},       {1, 384, 1536, 16384, "tn"}, {384, 256, 256, 64, "nt"}};
constexpr Case kShortCases[] = {{1, 256, 256, 256}, {1, 500, 301, 77}, {1, 512, 512, 512, "tn"}, {4, 256, 256, 64, "nt"}};

graph::Graph product(const Case& c, DType dtype, std::vector<InputSpec>& inputs) {
  graph::Builder b;
  const graph::TensorType key{DType::U32, {4}};
  inputs.push_back({"key", key});
  const ValueId seed = b.make("input", {}, {{"name", "key"}, {"dtype", key.dtype}, {"shape", key.shape.extents()}});
  // Random numbers that the device makes: the host would take longer to bring them than the product does.
  const auto tensor = [&](int64_t salt, int64_t rows, int64_t columns, bool turned) {
    if (turned) std::swap(rows, columns);
    ValueId made = b.make("uniform", {seed}, {{"shape", std::vector<int64_t>{c.batch, rows, columns}}, {"salt", salt}});
    if (dtype != DType::F32) made = b.make("cast", {made}, {{"dtype", dtype}});
    made = b.make("barrier", {made});
    if (dtype != DType::F32) made = b.make("cast", {made}, {{"dtype", DType::F32}});
    return turned ? b.make("permute", {made}, {{"permutation", std::vector<int64_t>{0, 2, 1}}}) : made;
  };
  const ValueId a = tensor(0, c.m, c.k, c.order[0] == 't'), right = tensor(1, c.k, c.n, c.order[1] == 't');
  ValueId out = b.make("matmul", {a, right});
  if (dtype != DType::F32) out = b.make("cast", {out}, {{"dtype", dtype}});
  b.output(graph::OutputKind::Result, "out", bench::firstElement(b, out));
  return b.take();
}

void report(const Case& c, DType dtype, const detail::Device& device) {
  std::vector<InputSpec> inputs;
  detail::Session session(product(c, dtype, inputs), {}, std::make_shared<detail::States>(device), inputs);
  const double seconds = bench::commandSeconds(session, std::vector<std::byte>(session.inputBytes()), {"uniform", "copy"});
  const double flops = 2.0 * static_cast<double>(c.batch) * static_cast<double>(c.m) * static_cast<double>(c.n) * static_cast<double>(c.k);
  fmt::print("{:12} {:5} {} {:>4} x {:>5} x {:>5} x {:>5} {:>10.1f} us {:>7.2f} TFLOP/s\n", device.chosen.info.id, toString(dtype), c.order,
             c.batch, c.m, c.n, c.k, seconds * 1e6, flops / seconds / 1e12);
  std::fflush(stdout);
}

}  // namespace

int main(int count, char** arguments) {
  std::vector<std::string> devices(arguments + 1, arguments + count);
  const bool is_short = std::erase(devices, "--short") > 0;
  try {
    fmt::print("{:12} {:5} order batch x m x n x k\n", "device", "type");
    for (const std::string& selector : bench::chosenDevices(devices)) {
      const detail::Device device = detail::openChosenDevice(selector);
      const bool is_cpu = device.chosen.info.profile.style == program::ExecutionStyle::Cpu;
      for (const Case& c : is_short || is_cpu ? std::span<const Case>(kShortCases) : std::span<const Case>(kCases)) {
        for (const DType dtype : {DType::F32, DType::BF16}) report(c, dtype, device);
      }
    }
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
}
