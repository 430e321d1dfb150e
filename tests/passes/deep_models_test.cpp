// SPDX-License-Identifier: Apache-2.0
// Models of many layers and steps: what compiling them takes must grow with them and not faster. Work is counted, not timed: what passes
// say that they looked at, and every allocation.
#include <gtest/gtest.h>
#include <malloc.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <map>
#include <new>
#include <optional>

#include "examples/models/deep_models.h"
#include "frontend/optim/settings.h"
#include "frontend/trace/trace_function.h"
#include "frontend/train/templates.h"
#include "passes/pipeline.h"
#include "passes/visits.h"
#include "tests/passes/gpu_profile.h"

namespace {

std::atomic<uint64_t> allocations = 0, live_bytes = 0, most_bytes = 0;

}  // namespace

void* operator new(size_t size) {
  void* memory = std::malloc(size == 0 ? 1 : size);
  if (memory == nullptr) throw std::bad_alloc();
  ++allocations;
  const uint64_t live = live_bytes += malloc_usable_size(memory);
  most_bytes = std::max(most_bytes.load(), live);
  return memory;
}
void* operator new(size_t size, const std::nothrow_t&) noexcept {
  try {
    return operator new(size);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}
void operator delete(void* memory) noexcept {
  live_bytes -= malloc_usable_size(memory);
  std::free(memory);
}
void operator delete(void* memory, size_t) noexcept { operator delete(memory); }

namespace lockstep {
namespace {

struct DeepModel {
  std::string name;
  int64_t few, many;  ///< sizes, four times as many layers or steps
};
// Searches that are cut off after a number of steps take less than that in a small model, so the smaller ones are not very small.
const DeepModel kMlp{"mlp", 100, 400}, kTransformer{"transformer", 16, 64}, kGru{"gru_cells", 40, 160}, kResNet{"resnet", 98, 386};

// Something that grows with the square takes 16 times as much. Buffers are placed with a search in a tree, whose depth grows as well.
constexpr double kMost = 5.5, kMostInTree = 7;

struct Settings {
  std::string profile = "portable";  ///< or "gpu", a large one
  bool frozen = false;               ///< every second parameter
  uint64_t memory_limit = 0;
};

graph::Graph traced(const std::string& model, int64_t size) {
  const examples::DeepCase one = examples::deepCase(model, size);
  return detail::traceFunction(one.model.get(), one.inputs, one.loss, graph::OutputKind::Loss, std::source_location::current());
}

passes::CompileOptions optionsFor(const graph::Graph& graph, const Settings& settings) {
  passes::CompileOptions options;
  options.profile = settings.profile == "gpu" ? gpuProfile() : program::findProfile(settings.profile).orThrow();
  options.optimizer = detail::optimizerConfig(adam({.lr = 0.001}), graph.parameters);
  for (size_t i = 0; settings.frozen && i < graph.parameters.size(); i += 2)
    options.optimizer->parameters[graph.parameters[i].name].frozen = true;
  options.templates = detail::templateSource();
  options.memory_limit = settings.memory_limit;
  return options;
}

/// What compiling takes, by name: "fuse", ..., "allocations", "bytes".
std::map<std::string, uint64_t> workOf(const graph::Graph& graph, const Settings& settings) {
  const passes::CompileOptions options = optionsFor(graph, settings);
  const uint64_t live_before = live_bytes, allocations_before = allocations, visits_before = passes::visitsSoFar();
  most_bytes = live_before;
  const auto compiled = passes::compile(graph, options);
  std::map<std::string, uint64_t> work{{"allocations", allocations - allocations_before},
                                       {"bytes", most_bytes - live_before},
                                       {"all visits", passes::visitsSoFar() - visits_before}};
  if (!compiled.ok()) return work;  // no order stays within the memory limit
  for (const passes::PassRecord& pass : compiled->passes) {
    if (pass.visits > 0) work[pass.name] = pass.visits;
  }
  return work;
}

void expectLinear(const DeepModel& model, Settings settings, double memory_limit = 0) {
  std::array<std::map<std::string, uint64_t>, 2> work;
  for (const bool many : {false, true}) {
    const graph::Graph graph = traced(model.name, many ? model.many : model.few);
    if (memory_limit > 0) {
      Settings free = settings;
      const auto unlimited = passes::compile(graph, optionsFor(graph, free)).orThrow();
      settings.memory_limit = static_cast<uint64_t>(memory_limit * static_cast<double>(unlimited.plan.workspace_bytes));
    }
    work[many ? 1 : 0] = workOf(graph, settings);
    settings.memory_limit = 0;
  }
  for (const auto& [what, few] : work[0]) {
    const auto many = work[1].find(what);
    if (many == work[1].end()) continue;
    const double most = what == "planBuffers" || what == "all visits" ? kMostInTree : kMost;
    EXPECT_LT(static_cast<double>(many->second), most * static_cast<double>(few))
        << model.name << " on " << settings.profile << ": " << what;
  }
  EXPECT_GT(work[0].at("all visits"), 0u);
}

TEST(DeepModels, work_and_memory_grow_with_the_model) {
  for (const DeepModel& model : {kMlp, kTransformer, kGru, kResNet}) expectLinear(model, {});
}

TEST(DeepModels, work_grows_with_the_model_where_kernels_bind_many_tensors) { expectLinear(kGru, {.profile = "cpu"}); }

TEST(DeepModels, work_grows_with_the_model_where_rows_chain) {
  for (const DeepModel& model : {kMlp, kTransformer}) expectLinear(model, {.profile = "gpu"});
}

TEST(DeepModels, work_grows_with_the_model_where_a_buffer_has_one_use_at_a_time) { expectLinear(kMlp, {.profile = "webgpu_default"}); }

TEST(DeepModels, work_grows_with_the_model_where_every_second_parameter_is_frozen) { expectLinear(kMlp, {.frozen = true}); }

TEST(DeepModels, work_grows_with_the_model_where_memory_is_limited) { expectLinear(kMlp, {}, 0.9); }

// The gradient towards all steps is a sum of one share per step, each in its place, which is computed where it is read.
TEST(DeepModels, a_recurrent_model_fits_where_kernels_bind_eight_tensors) {
  const graph::Graph graph = traced("gru_cells", 32);
  const passes::Compiled gru = passes::compile(graph, optionsFor(graph, {})).orThrow();
  for (const program::Command& command : gru.program.commands) {
    const auto* dispatch = std::get_if<program::Dispatch>(&command.action);
    if (dispatch == nullptr) continue;
    EXPECT_LE(dispatch->bindings.size(), 8u) << command.label;
  }
}

// No pass may need the stack for every layer of a chain.
TEST(DeepModels, a_chain_of_many_layers_does_not_take_the_stack) {
  const graph::Graph graph = traced("mlp", 2500);
  EXPECT_TRUE(passes::compile(graph, optionsFor(graph, {})).ok());
}

}  // namespace
}  // namespace lockstep
