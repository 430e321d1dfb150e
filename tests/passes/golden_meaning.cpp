// SPDX-License-Identifier: Apache-2.0
#include "tests/passes/golden_meaning.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <set>

#include "frontend/train/graph_runner.h"
#include "frontend/train/templates.h"
#include "ir/graph/op_def.h"

namespace lockstep::passes {

using namespace graph;
using program::Program;

namespace {

Tensor someValues(const TensorType& type, std::mt19937& random) {
  Tensor value{type, {}};
  for (int64_t i = 0; i < type.shape.elementCount(); ++i) {
    const double unit = static_cast<double>(random()) / 0x1p32;
    value.data.push_back(type.dtype == DType::F32 ? static_cast<double>(static_cast<float>(unit - 0.5)) : std::floor(unit * 3));
  }
  return value;
}

LeafValues someLeaves(const Graph& graph) {
  std::mt19937 random(7);
  LeafValues leaves;
  for (const NodeId id : graph.body().nodes) {
    if (const std::string* name = leafName(graph[id])) leaves.emplace(*name, someValues(graph.typeOf(graph[id].results[0]), random));
  }
  return leaves;
}

/// Also of the leaves that only the later graph has. Bound parameters read the flat state, so it holds what they held.
LeafValues leavesOfBoth(const Graph& before, const Graph& after) {
  LeafValues leaves = someLeaves(before);
  for (const auto& [name, value] : someLeaves(after)) leaves.try_emplace(name, value);
  const auto flat = leaves.find("params");
  if (flat == leaves.end()) return leaves;
  std::ranges::fill(flat->second.data, 0.0);
  for (const ParameterLayout::Slot& slot : layoutParameters(before.parameters).slots) {
    if (!leaves.contains(slot.name)) continue;
    std::ranges::copy(leaves.find(slot.name)->second.data, flat->second.data.begin() + slot.offset);
  }
  return leaves;
}

using Named = std::map<std::pair<OutputKind, std::string>, std::vector<double>>;

Named outputsOf(const Graph& graph, const LeafValues& leaves) {
  const std::vector<Tensor> values = evaluate(graph, leaves).orThrow();
  Named outputs;
  for (size_t i = 0; i < values.size(); ++i) outputs.emplace(std::pair(graph.outputs[i].kind, graph.outputs[i].name), values[i].data);
  return outputs;
}

void expectNear(const std::vector<double>& want, const std::vector<double>& got, double tolerance, const std::string& name) {
  ASSERT_EQ(want.size(), got.size()) << name;
  for (size_t i = 0; i < want.size(); ++i) {
    const bool same = want[i] == got[i] || (std::isnan(want[i]) && std::isnan(got[i]));
    ASSERT_TRUE(same || std::abs(want[i] - got[i]) <= tolerance * std::max(1.0, std::abs(want[i])))
        << name << "[" << i << "] was " << want[i] << " and is " << got[i];
  }
}

/// The gradient of the loss by a leaf, by central differences.
void expectGradient(const Graph& graph, LeafValues leaves, const std::string& leaf, const std::vector<double>& gradient, double tolerance) {
  constexpr double kStep = 1e-5;
  const auto loss = std::ranges::find(graph.outputs, OutputKind::Loss, &Output::kind);
  ASSERT_NE(loss, graph.outputs.end()) << "a gradient of no loss";
  const auto lossAt = [&] { return outputsOf(graph, leaves).at({OutputKind::Loss, loss->name})[0]; };
  std::vector<double>& values = leaves.find(leaf)->second.data;
  ASSERT_EQ(values.size(), gradient.size());
  for (size_t i = 0; i < values.size(); ++i) {
    const double value = values[i];
    values[i] = value + kStep;
    const double above = lossAt();
    values[i] = value - kStep;
    const double below = lossAt();
    values[i] = value;
    EXPECT_NEAR((above - below) / (2 * kStep), gradient[i], std::max(tolerance, 1e-6) * std::max(1.0, std::abs(gradient[i])))
        << leaf << "[" << i << "]";
  }
}

void compare(const Graph& before, const Graph& after, double tolerance) {
  const LeafValues leaves = leavesOfBoth(before, after);
  const Named want = outputsOf(before, leaves), got = outputsOf(after, leaves);
  size_t compared = 0;
  for (const auto& [key, values] : got) {
    if (const auto found = want.find(key); found != want.end()) {
      expectNear(found->second, values, std::max(tolerance, 1e-12), key.second);
      ++compared;
    } else if (key.first == OutputKind::Gradient) {
      expectGradient(before, leaves, key.second, values, tolerance);
      ++compared;
    }
  }
  EXPECT_GT(compared, 0u) << "the two graphs share no output, so nothing was compared";
}

struct Ran {
  Named outputs;
  std::map<std::string, std::vector<double>> states;
};

/// One step of a program of any stage on the reference, with values of the leaves by name.
Ran runOnReference(const Program& program, const LeafValues& leaves) {
  CompileOptions options;
  options.profile = program.profile;
  options.templates = detail::templateSource();
  const auto runner = makeProgramRunner(runRemainingPasses(program, options).orThrow(), detail::openChosenDevice("reference")).orThrow();
  ValueMap inputs;
  for (const program::InputPort& port : program.inputs) inputs.emplace(port.name, leaves.find(port.name)->second.data);
  std::vector<std::string> states;
  for (const program::Buffer& buffer : program.buffers) {
    if (buffer.role == program::ArenaRole::State) states.push_back(buffer.name);
  }
  for (const std::string& state : states) (void)runner->writeState(state, leaves.find(state)->second.data).orThrow();
  Ran ran{.outputs = runner->step(inputs).orThrow(), .states = {}};
  for (const std::string& state : states) ran.states.emplace(state, runner->readState(state).orThrow());
  return ran;
}

LeafValues someLeaves(const Program& program) {
  std::mt19937 random(7);
  LeafValues leaves;
  for (const program::Buffer& buffer : program.buffers) {
    if (buffer.role == program::ArenaRole::State) leaves.emplace(buffer.name, someValues(buffer.type, random));
  }
  for (const program::InputPort& port : program.inputs) leaves.emplace(port.name, someValues(program[port.buffer].type, random));
  return leaves;
}

void compare(const Graph& before, const Program& after, double tolerance) {
  LeafValues leaves = someLeaves(before);
  for (const auto& [name, value] : someLeaves(after)) leaves.try_emplace(name, value);
  const Named want = outputsOf(before, leaves);
  const Ran got = runOnReference(after, leaves);
  ASSERT_FALSE(want.empty());
  for (const auto& [key, values] : want) {
    const bool is_state = key.first == OutputKind::NextState;
    ASSERT_TRUE(is_state ? got.states.contains(key.second) : got.outputs.contains(key)) << "the program lost " << key.second;
    expectNear(values, is_state ? got.states.at(key.second) : got.outputs.at(key), std::max(tolerance, 1e-5), key.second);
  }
}

void compare(const Program& before, const Program& after, double) {
  const LeafValues leaves = someLeaves(before);
  const Ran want = runOnReference(before, leaves), got = runOnReference(after, leaves);
  EXPECT_FALSE(want.outputs.empty() && want.states.empty()) << "nothing was compared";
  EXPECT_EQ(want.outputs, got.outputs);
  EXPECT_EQ(want.states, got.states);
}

void compare(const Program&, const Graph&, double) { FAIL() << "a pass made a graph of a program"; }

}  // namespace

void expectSameMeaning(const Form& before, const Form& after, std::optional<DType> precision) {
  // The inputs of these cases are below 1, and so are the sums of their few products. Each is rounded four times at most.
  const double rounding = !precision ? 0 : *precision == DType::BF16 ? 0x1p-9 : 0x1p-12;
  std::visit([&](const auto& a, const auto& b) { compare(a, b, 4 * rounding); }, before, after);
}

}  // namespace lockstep::passes
