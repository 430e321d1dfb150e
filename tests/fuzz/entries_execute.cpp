// SPDX-License-Identifier: Apache-2.0
// Graphs and programs that were read go through the passes, and then they run. Only small ones: no promise says how long a large one takes.
#include <algorithm>

#include "backends/reference/reference.h"
#include "frontend/train/graph_runner.h"
#include "frontend/train/templates.h"
#include "ir/graph/evaluate.h"
#include "ir/graph/op_def.h"
#include "ir/kernel/claims.h"
#include "passes/pipeline.h"
#include "runtime/memory_array.h"
#include "runtime/program_trainer.h"
#include "tests/fuzz/entries.h"
#include "tests/fuzz/promises.h"

namespace lockstep::fuzz {
namespace {

constexpr size_t kMostNodes = 200, kMostCommands = 64;
constexpr int64_t kMostElements = 4096;
constexpr uint64_t kMostBytes = 1u << 20, kMostGroups = 1u << 10;

const detail::Device& reference() {
  static const detail::Device device = [] {
    detail::Device opened = detail::openChosenDevice("reference");
    opened.backend = makeReference({.max_threads = 1, .loop_budget = 1'000'000});
    return opened;
  }();
  return device;
}

std::vector<double> valuesOf(int64_t elements) {
  std::vector<double> values(static_cast<size_t>(elements));
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(i % 3);
  return values;
}

bool isSmall(const graph::TensorType& type) {
  int64_t elements = 1;
  for (const graph::Dim& dim : type.shape.dims()) {
    if (dim.maximum() < 0 || __builtin_mul_overflow(elements, dim.maximum(), &elements)) return false;
  }
  return elements <= kMostElements;
}

bool isSmall(const graph::Graph& graph) {
  for (const graph::Node& node : graph.nodes) {
    for (const auto& [name, attribute] : node.attributes.items()) {
      // A loop in it is unrolled.
      const auto* nested = std::get_if<graph::NestedGraph>(&attribute);
      const bool nests = nested != nullptr && std::ranges::any_of((*nested)->nodes, [](const graph::Node& inner) {
                           return inner.op != nullptr && std::holds_alternative<graph::LoopLowering>(*inner.op->lower);
                         });
      if (nested != nullptr && (nests || !isSmall(**nested))) return false;
    }
  }
  return graph.nodes.size() <= kMostNodes && std::ranges::all_of(graph.values, [](const auto& value) { return isSmall(value.type); });
}

bool isSmall(const program::Program& program) {
  uint64_t bytes = 0;
  for (const program::Buffer& buffer : program.buffers) {
    if (!isSmall(buffer.type) || buffer.size > kMostBytes) return false;
    bytes += buffer.size;
  }
  for (const program::Arena& arena : program.arenas) {
    if (arena.size > kMostBytes) return false;
    bytes += arena.size;
  }
  for (const program::Command& command : program.commands) {
    const auto* dispatch = std::get_if<program::Dispatch>(&command.action);
    if (dispatch == nullptr) continue;
    uint64_t groups = 1;
    for (const uint32_t extent : dispatch->groups) groups = std::min<uint64_t>(groups, kMostGroups) * extent;
    if (groups > kMostGroups) return false;
  }
  return bytes <= kMostBytes && program.commands.size() + program.runsInLoops() <= kMostCommands;
}

/// Whether one step ran, on values that were made up.
bool runs(program::Program program) {
  if (!isSmall(program) || !program::validateStructure(program).ok()) return false;
  ValueMap values;
  for (const program::InputPort& port : program.inputs) values.emplace(port.name, valuesOf(program[port.buffer].type.shape.elementCount()));
  for (program::Kernel& kernel : program.kernels) {
    if (auto* module = std::get_if<kernel::Module>(&kernel.code)) *module = kernel::dropClaims(std::move(*module));
  }
  const auto runner = makeProgramRunner(std::move(program), reference());
  requireAnswer(runner);
  if (!runner.ok()) return false;
  const Result<StepOutputs> outputs = (*runner)->step(values);
  requireAnswer(outputs);
  return outputs.ok();
}

/// Whether a program that says how it trains did so, from its own beginning.
bool trains(program::Program program) {
  if (!isSmall(program) || !program::validateStructure(program).ok()) return false;
  Result<ProgramTrainer> trainer = ProgramTrainer::openOn(reference(), std::move(program));
  requireAnswer(trainer);
  if (!trainer.ok()) return false;
  io::TensorFile batches;
  for (const program::InputPort& port : trainer->program().inputs) {
    if (!std::holds_alternative<program::BatchSource>(port.source)) continue;
    batches.tensors.emplace(port.name, detail::zeroArray(trainer->program()[port.buffer].type));
  }
  const Result<io::TensorFile> start = trainer->checkpoint();
  requireAnswer(start);
  if (!start.ok()) return false;
  const Status loaded = trainer->load(*start);
  requireAnswer(loaded);
  const Result<ProgramStep> step = trainer->step(batches);
  requireAnswer(step);
  return loaded.ok() && step.ok();
}

}  // namespace

bool compileGraph(std::span<const std::byte> input) {
  Result<passes::Form> stage = passes::parseForm(textOf(input), "input");
  requireAnswer(stage);
  const auto* graph = stage.ok() ? std::get_if<graph::Graph>(&*stage) : nullptr;
  if (graph == nullptr || !isSmall(*graph)) return false;
  graph::LeafValues leaves;
  for (const graph::Node& node : graph->nodes) {
    const std::string* name = graph::leafName(node);
    if (name == nullptr) continue;
    const graph::TensorType& type = graph->typeOf(node.results.front());
    leaves.insert_or_assign(*name, graph::Tensor{.type = type, .data = valuesOf(type.shape.elementCount())});
  }
  requireAnswer(graph::evaluate(*graph, leaves));
  // As `opt` does it; a pass that refuses is left out.
  passes::CompileOptions options;
  options.templates = detail::readTemplate;
  for (const passes::PassInfo& pass : passes::listPasses()) {
    Result<passes::Form> next = passes::runPasses(*stage, {std::string(pass.name)}, options);
    requireAnswer(next);
    if (!next.ok()) continue;
    requireAnswer(passes::parseForm(passes::print(*next), "next"));
    *stage = std::move(*next);
  }
  const auto* program = std::get_if<program::Program>(&*stage);
  return program != nullptr && runs(*program);
}

bool runProgram(std::span<const std::byte> input) {
  Result<program::Program> program = program::parse(textOf(input));
  if (!program.ok()) return false;
  const bool trained = trains(*program);
  return runs(std::move(*program)) || trained;
}

}  // namespace lockstep::fuzz
