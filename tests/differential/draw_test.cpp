// SPDX-License-Identifier: Apache-2.0
// Elements that are drawn from lines with many equal numbers, by templates, by a sort and in f64: the same places.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "frontend/train/graph_runner.h"
#include "tests/differential/compare.h"
#include "tests/ir/ops/op_case.h"

namespace lockstep {
namespace {

/// Numbers of which `steps` to a unit are different, up to `most`.
struct Lines {
  int64_t length = 1;
  double steps = 1, most = 4;
  int64_t count = 48;
};

struct Draws {
  graph::Graph graph;
  graph::LeafValues leaves;
};

/// Each line has settings of its own; of each setting a third is at one of its ends.
Draws makeDraws(const Lines& lines) {
  std::mt19937 random(static_cast<uint32_t>(lines.length));
  const auto number = [&](double least, double most) { return std::uniform_real_distribution<double>(least, most)(random); };
  const auto setting = [&](double low, double high) {
    const double where = number(0, 6);
    return static_cast<double>(static_cast<float>(where < 1 ? low : where < 2 ? high : number(low, high)));
  };
  graph::Builder b;
  Draws made;
  std::vector<graph::ValueId> operands;
  const auto add = [&](const char* name, const graph::TensorType& type, const std::function<double()>& value) {
    graph::Tensor tensor{type, {}};
    for (int64_t i = 0; i < type.shape.elementCount(); ++i) tensor.data.push_back(value());
    made.leaves.emplace(name, std::move(tensor));
    operands.push_back(graph::testing::addInput(b, name, type));
  };
  const graph::Shape each{lines.count};
  add("logits", {graph::DType::F32, {lines.count, lines.length}}, [&] {
    const double x = std::floor(number(-lines.most, lines.most) * lines.steps) / lines.steps;
    return number(0, 20) < 1 ? -std::numeric_limits<double>::infinity() : x;
  });
  add("top_k", {graph::DType::I32, each}, [&] { return std::floor(setting(0, static_cast<double>(lines.length) + 2)); });
  add("top_p", {graph::DType::F32, each}, [&] { return setting(0, 1); });
  add("min_p", {graph::DType::F32, each}, [&] { return number(0, 2) < 1 ? 0 : setting(0, 1) * setting(0, 1) * setting(0, 1); });
  add("uniform", {graph::DType::F32, each}, [&] { return std::min(setting(0, 1), 0.9999); });
  b.output(graph::OutputKind::Result, "y", b.make("draw_token", operands));
  made.graph = b.graph();
  return made;
}

TEST(Draws, have_the_places_of_the_evaluator) {
  for (const Lines& lines : {Lines{1}, Lines{2}, Lines{7, 2}, Lines{130, 1, 2}, Lines{1024, 2}, Lines{1025, 2}, Lines{1500, 0.01, 1},
                             Lines{2047, 64, 9}, Lines{5000, 4, 20}}) {
    const Draws made = makeDraws(lines);
    const std::vector<graph::Tensor> want = runGraph(made.graph, made.leaves);
    for (const std::string& device : devicesUnderTest()) {
      const detail::Device gpu = asGpu(*openedDevice(device));
      const std::string what = fmt::format("{} elements on {}", lines.length, device);
      expectEqualBits(runGraph(made.graph, made.leaves, {.device = device, .opened = openedDevice(device)}), want, what);
      expectEqualBits(runGraph(made.graph, made.leaves, {.device = device, .opened = &gpu}), want, what + " as a GPU");
      expectEqualBits(
          runGraph(made.graph, made.leaves, {.device = device, .opened = openedDevice(device), .disable = {"template:draw_token"}}), want,
          what + " by a sort");
    }
  }
}

/// The largest vocabularies in use, on drivers that end loops after some rounds, too.
TEST(Draws, take_a_large_vocabulary) {
  for (const int64_t ids : {151936, 262144}) {
    const Draws made = makeDraws({.length = ids, .steps = 1e6, .most = 10, .count = 2});
    const std::vector<graph::Tensor> want = runGraph(made.graph, made.leaves);
    for (const std::string& device : devicesUnderTest())
      expectEqualBits(runGraph(made.graph, made.leaves, {.device = device, .opened = openedDevice(device)}), want,
                      fmt::format("{} elements on {}", ids, device));
  }
}

}  // namespace
}  // namespace lockstep
