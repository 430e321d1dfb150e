// SPDX-License-Identifier: Apache-2.0
// Time and memory of compiling a training step, and how they grow with the model. Nothing runs and no driver is asked.
// usage: bench_compile_time                            the table of bench/results/compile_time.md
//        bench_compile_time MODEL SIZE...              some rows; MODEL: mlp, transformer, gpt (layers), gru, gru_cells (time steps),
//        resnet (depth) bench_compile_time --passes MODEL SIZE...     and what each pass takes bench_compile_time --program MODEL SIZE the
//        program as text, to compare two builds
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <ctime>
#include <string>
#include <string_view>
#include <vector>

#include "backends/kernel_spirv.h"
#include "examples/models/deep_models.h"
#include "frontend/optim/settings.h"
#include "frontend/trace/trace_function.h"
#include "frontend/train/templates.h"
#include "ir/program/text.h"
#include "passes/pipeline.h"

namespace {

using lockstep::examples::DeepCase;

struct Row {
  std::string_view model;
  std::vector<int64_t> sizes;
};
const std::array kTable{Row{"mlp", {10, 100, 1000, 3000}}, Row{"transformer", {10, 100, 1000, 3000}},
                        Row{"gru", {32, 512, 4096}},       Row{"gru_cells", {32, 64, 128, 256, 512}},
                        Row{"resnet", {20, 56, 110}},      Row{"gpt", {6, 12, 24}}};

enum class Show : uint8_t { Row, Passes, Program };

/// Of this process: what it computed, not how long it waited for others.
double processorSeconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

int64_t mostMegabytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss / 1024;
}

/// From the user's function to what a driver would be given.
void compileOne(const std::string& name, int64_t size, Show show) {
  const DeepCase compiled_case = lockstep::examples::deepCase(name, size);
  const double begin = processorSeconds();
  lockstep::graph::Graph traced = lockstep::detail::traceFunction(compiled_case.model.get(), compiled_case.inputs, compiled_case.loss,
                                                                  lockstep::graph::OutputKind::Loss, std::source_location::current());
  const size_t nodes = traced.nodes.size();
  lockstep::passes::CompileOptions options;
  options.optimizer = lockstep::detail::optimizerConfig(lockstep::adam({.lr = 0.001}), traced.parameters);
  options.templates = lockstep::detail::templateSource();
  const double after_trace = processorSeconds();
  lockstep::passes::Compiled compiled = lockstep::passes::compile(std::move(traced), options).orThrow();
  const double after_passes = processorSeconds();
  if (show == Show::Program) return fmt::print("{}", lockstep::program::print(compiled.program));
  const auto valid = lockstep::program::validate(std::move(compiled.program)).orThrow();
  for (const lockstep::kernel::ValidModule& module : valid.modules()) (void)lockstep::kernelSpirv(module).orThrow();
  const double ready = processorSeconds();
  double in_passes = 0;
  for (const lockstep::passes::PassRecord& pass : compiled.passes) in_passes += pass.seconds;
  fmt::print("| {} {} | {} | {:.2f} | {:.2f} | **{:.2f}** | {} | {} | {} |\n", name, size, nodes, after_trace - begin,
             after_passes - after_trace, ready - begin, mostMegabytes(), compiled.plan.dispatches, compiled.plan.distinct_kernels);
  if (show == Show::Passes) {
    for (const lockstep::passes::PassRecord& pass : compiled.passes) {
      fmt::print("    {:16} {:8.3f} s {:9} visits  {}\n", pass.name, pass.seconds, pass.visits, pass.statistics);
    }
    fmt::print("    {:16} {:8.3f} s\n", "checks between", after_passes - after_trace - in_passes);
  }
}

/// In a process of its own, so that its memory is its own, too.
bool compileApart(const std::string& name, int64_t size, Show show) {
  std::fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    compileOne(name, size, show);
    std::fflush(stdout);
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> arguments(argv + 1, argv + argc);
  Show show = Show::Row;
  if (!arguments.empty() && arguments.front() == "--passes") show = Show::Passes;
  if (!arguments.empty() && arguments.front() == "--program") show = Show::Program;
  if (show != Show::Row) arguments.erase(arguments.begin());
  std::vector<std::pair<std::string, int64_t>> cases;
  for (size_t i = 1; i < arguments.size(); ++i) cases.emplace_back(arguments[0], std::stoll(arguments[i]));
  if (arguments.empty() && show != Show::Program) {
    for (const Row& row : kTable) {
      for (const int64_t size : row.sizes) cases.emplace_back(row.model, size);
    }
  }
  const bool known = std::ranges::any_of(kTable, [&](const Row& row) { return arguments.empty() || row.model == arguments[0]; });
  if (cases.empty() || !known) {
    fmt::print(stderr, "usage: bench_compile_time [--passes | --program] [mlp|transformer|gru|gru_cells|resnet|gpt SIZE...]\n");
    return 2;
  }
  if (show != Show::Program) {
    fmt::print(
        "| model | nodes | trace, s | passes, s | all, s | MB at most | dispatches | kernels |\n|---|---|---|---|---|---|---|---|\n");
  }
  bool all = true;
  for (const auto& [name, size] : cases) all = compileApart(name, size, show) && all;
  return all ? 0 : 1;
}
