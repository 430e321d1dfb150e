// SPDX-License-Identifier: Apache-2.0
// Writes what other implementations of WebGPU are asked about. usage: webgpu_dump kernels DIR | run SAMPLE DIR
//   kernels  DIR/*.wgsl: every kernel of every sample's step for several devices, and the texts of tests/frontend/wgsl/data and shaders/
//   run      a sample's step as the host runs it: program.json, kernels, arenas before the first step (.start), the inputs of each step and
//            what the reference made of them (.end, and the losses in program.json)
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "backends/backend.h"
#include "examples/models/deep_models.h"
#include "examples/models/samples.h"
#include "frontend/io/file.h"
#include "frontend/optim/settings.h"
#include "frontend/trace/trace_function.h"
#include "frontend/train/templates.h"
#include "frontend/wgsl/wgsl.h"
#include "passes/pipeline.h"
#include "runtime/memory_array.h"
#include "tools/verify/sample_batch.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;
using examples::SampleProgram;

void must(Status status) { (void)std::move(status).orThrow(); }
void writeText(const fs::path& path, const std::string& text) { must(io::writeFileAtomically(path, std::string_view(text))); }
void writeBytes(const fs::path& path, std::span<const std::byte> bytes) { must(io::writeFileAtomically(path, bytes)); }

struct Step {
  graph::ParameterLayout layout;
  passes::OptimizerConfig config;
  program::Program program;
};
Result<Step> compileStep(const SampleProgram& sample, const program::DeviceProfile& profile) {
  graph::Graph graph = detail::traceFunction(sample.model.get(), sample.inputs, sample.loss, graph::OutputKind::Loss, {});
  passes::CompileOptions options;
  options.profile = profile;
  options.optimizer = detail::optimizerConfig(sample.optimizer, graph.parameters);
  options.templates = detail::templateSource();
  graph::ParameterLayout layout = graph::layoutParameters(graph.parameters);
  LS_TRY(passes::Compiled compiled, passes::compile(std::move(graph), options));
  return Step{std::move(layout), std::move(*options.optimizer), std::move(compiled.program)};
}

/// The samples, and training of a GRU over so many steps, which is a loop.
std::vector<SampleProgram> allPrograms() {
  std::vector<SampleProgram> all = examples::samplePrograms();
  examples::DeepCase gru = examples::deepCase("gru", 7);
  all.push_back({.name = "gru",
                 .inputs = std::move(gru.inputs),
                 .model = std::move(gru.model),
                 .loss = [loss = gru.loss](const Module& model, const Inputs& in) { return loss(model, in).tensors().front().second; },
                 .optimizer = adam({.lr = 0.01})});
  return all;
}

// Kernels.

/// Texts that are the same are written once.
class TextFolder {
 public:
  explicit TextFolder(fs::path folder) : folder_(std::move(folder)) { must(io::makeDirectories(folder_)); }
  void add(const std::string& name, const std::string& text) {
    if (seen_.insert(text).second) writeText(folder_ / (name + ".wgsl"), text);
  }

 private:
  fs::path folder_;
  std::set<std::string> seen_;
};

std::vector<program::DeviceProfile> profiles() {
  const auto named = program::namedProfiles();
  std::vector<program::DeviceProfile> all(named.begin(), named.end());
  all.push_back({.name = "subgroups", .subgroup_size = 32, .subgroups = true});
  return all;
}

std::vector<fs::path> textsOf(const fs::path& folder) {
  std::vector<fs::path> paths;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() == ".wgsl") paths.push_back(entry.path());
  }
  return paths;
}

/// The texts that the reader is tested with, as they are and as the writer makes them. Templates size arrays in functions by overrides,
/// which only our own reader takes, so what others see of them is what the writer makes.
void addTexts(TextFolder& texts) {
  for (const fs::path& path : textsOf(LOCKSTEP_SOURCE_DIR "/tests/frontend/wgsl/data")) {
    if (path.stem() == "printing") continue;  // print() is not known to others
    const std::string text = io::readTextFile(path).orThrow();
    texts.add(path.stem(), text);
    texts.add(path.stem().string() + ".written", wgsl::write(wgsl::read(text).orThrow()));
  }
  for (const fs::path& path : textsOf(LOCKSTEP_SHADERS)) {
    const wgsl::ReadOptions options{.file_name = path, .overrides = {}, .overrides_are_constants = true};
    texts.add(path.stem().string() + ".written", wgsl::write(wgsl::read(io::readTextFile(path).orThrow(), options).orThrow()));
  }
}

void dumpKernels(const fs::path& folder) {
  TextFolder texts(folder);
  addTexts(texts);
  for (const SampleProgram& sample : allPrograms()) {
    for (const program::DeviceProfile& profile : profiles()) {
      const Result<Step> step = compileStep(sample, profile);
      // Some samples do not run in bindings of 64 KiB.
      if (!step.ok() && step.failure().diagnostics.front().code == "splitDispatches.binding") continue;
      for (const program::Kernel& kernel : step->program.kernels) {
        texts.add(fmt::format("{}.{}.{}", sample.name, profile.name, kernel.name), wgsl::write(std::get<kernel::Module>(kernel.code)));
      }
    }
  }
}

// Runs.

/// The samples that are run, and how many examples a batch of them has: interpreters take long for whole ones.
struct Run {
  std::string_view sample;
  int64_t batch;
};
constexpr Run kRuns[] = {{"mlp-sin", 256}, {"kan-tiny", 64}, {"tic-tac-toe", 16}, {"mnist-cnn", 4},
                         {"vae", 4},       {"makemore", 2},  {"gru", 3}};
constexpr int64_t kSteps = 3;

SampleProgram withBatch(SampleProgram sample, int64_t batch) {
  for (InputSpec& input : sample.inputs) {
    std::vector<int64_t> extents = input.type.shape.extents();
    extents.front() = batch;
    input.type.shape = graph::Shape(extents);
  }
  return sample;
}

void place(std::vector<std::byte>& arena, const program::Buffer& buffer, std::span<const std::byte> data) {
  std::ranges::copy(data, arena.begin() + static_cast<std::ptrdiff_t>(buffer.offset));
}

std::vector<std::byte> startOf(const program::Program& program, program::ArenaId arena, const Step& step, const ValueMap& parameters) {
  std::vector<std::byte> bytes(program[arena].size);
  for (const program::Buffer& buffer : program.buffers) {
    if (buffer.arena != arena || buffer.role != program::ArenaRole::State) continue;
    std::vector<double> values(static_cast<size_t>(buffer.type.shape.elementCount()), buffer.initial);
    if (buffer.name == passes::kParameterState) {
      for (const auto& slot : step.layout.slots) std::ranges::copy(parameters.at(slot.name), values.begin() + slot.offset);
    }
    place(bytes, buffer, detail::encodeArray(buffer.type, values).data);
  }
  for (const program::ConstantData& constant : program.constants) {
    const program::Buffer& buffer = program[constant.buffer];
    if (buffer.arena == arena) place(bytes, buffer, std::as_bytes(std::span(constant.words)));
  }
  return bytes;
}

Json rangeJson(const program::Program& program, const program::Range& range) {
  const program::Buffer& buffer = program[range.buffer];
  return {{"arena", buffer.arena.index()}, {"offset", buffer.offset + range.offset}, {"size", range.size}, {"step", range.step}};
}

Json commandJson(const program::Program& program, const program::Command& command) {
  Json json = {{"label", command.label}, {"level", command.level}};
  if (const auto* dispatch = std::get_if<program::Dispatch>(&command.action)) {
    json["dispatch"] = dispatch->kernel.index();
    json["groups"] = dispatch->groups;
    for (const program::Range& range : dispatch->bindings) json["bindings"].push_back(rangeJson(program, range));
  } else if (const auto* copy = std::get_if<program::Copy>(&command.action)) {
    json["copy"] = {rangeJson(program, copy->source), rangeJson(program, copy->target)};
  } else {
    const auto& fill = std::get<program::Fill>(command.action);
    json["fill"] = rangeJson(program, fill.target);
    json["pattern"] = fill.pattern;
  }
  return json;
}

std::string bindingType(const kernel::GlobalVariable& variable) {
  if (variable.space == kernel::AddressSpace::Uniform) return "uniform";
  return variable.access == kernel::Access::Read ? "read-only-storage" : "storage";
}

Json kernelJson(const program::Kernel& kernel) {
  const auto& module = std::get<kernel::Module>(kernel.code);
  std::map<uint32_t, std::string> bindings;
  for (const kernel::GlobalVariable& variable : module.globals) {
    if (kernel::isBound(variable.space)) {
      bindings.emplace(variable.binding, bindingType(variable));
    }
  }
  Json json = {{"name", kernel.name}, {"entry", module.entryPoint()->name}, {"bindings", Json::array()}};
  for (const auto& [binding, type] : bindings) json["bindings"].push_back({{"binding", binding}, {"type", type}});
  return json;
}

/// Trains on the reference: the arenas after the last step are written, the losses returned.
std::vector<double> trainHere(const fs::path& folder, const program::ValidProgram& program, const Step& step, const SampleProgram& sample,
                              const ValueMap& parameters) {
  const auto backend = openDevice(chooseDevice("reference").orThrow().info).orThrow();
  const auto executable = backend->compile(program).orThrow();
  ArenaSet states;
  for (uint32_t i = 0; i < program->arenas.size(); ++i) {
    const program::Arena& arena = program->arenas[i];
    if (arena.role != program::ArenaRole::State && arena.role != program::ArenaRole::Constant) continue;
    const std::vector<std::byte> start = startOf(*program, program::ArenaId(i), step, parameters);
    writeBytes(folder / (arena.name + ".start"), start);
    if (arena.role != program::ArenaRole::State) continue;
    states.emplace(arena.name, backend->allocate(arena.size).orThrow());
    must(states.at(arena.name)->write(0, start));
  }
  std::vector<double> losses;
  for (int64_t number = 1; number <= kSteps; ++number) {
    const ValueMap values = tools::stepInputs(sample, step.config, number);
    std::vector<std::byte> input((*program)[program->findArena(program::ArenaRole::Input)].size);
    for (const program::InputPort& port : program->inputs) {
      const program::Buffer& buffer = (*program)[port.buffer];
      place(input, buffer, detail::encodeArray(buffer.type, values.at(port.name)).data);
    }
    writeBytes(folder / fmt::format("step{}.input", number), input);
    const std::span<const std::byte> one = input;
    const Ticket ticket = executable->submit(states, std::span(&one, 1)).orThrow();
    const auto outputs = executable->wait(ticket).orThrow();
    float loss = 0;
    std::memcpy(&loss, outputs.front().data() + (*program)[program->findOutput("loss")->buffer].offset, sizeof(loss));
    losses.push_back(loss);
  }
  for (const auto& [name, memory] : states) {
    std::vector<std::byte> bytes(memory->size());
    must(memory->read(0, bytes));
    writeBytes(folder / (name + ".end"), bytes);
  }
  return losses;
}

void dumpRun(const fs::path& folder, const SampleProgram& sample) {
  must(io::makeDirectories(folder));
  const Step step = compileStep(sample, program::findProfile("webgpu_default").orThrow()).orThrow();
  const program::ValidProgram valid = program::validate(step.program).orThrow();
  const program::Program& program = *valid;
  const program::Buffer& loss = program[program.findOutput("loss")->buffer];
  Json json = {{"name", sample.name},
               {"arenas", Json::array()},
               {"kernels", Json::array()},
               {"commands", Json::array()},
               {"loops", Json::array()},
               {"loss", {{"arena", loss.arena.index()}, {"offset", loss.offset}}},
               {"parameters", passes::kParameterState},
               {"losses", trainHere(folder, valid, step, sample, tools::initialParameters(sample))},
               {"bounds", {{"first_loss", tools::kFirstLoss}, {"loss_growth", tools::kLossGrowth}, {"drift", tools::kFinal}}}};
  for (const program::Arena& arena : program.arenas) {
    json["arenas"].push_back({{"name", arena.name}, {"role", toString(arena.role)}, {"size", arena.size}});
  }
  for (const program::Kernel& kernel : program.kernels) {
    json["kernels"].push_back(kernelJson(kernel));
    writeText(folder / (kernel.name + ".wgsl"), wgsl::write(std::get<kernel::Module>(kernel.code)));
  }
  for (const program::Command& command : program.commands) json["commands"].push_back(commandJson(program, command));
  for (const program::Loop& loop : program.loops)
    json["loops"].push_back({{"first", loop.first}, {"last", loop.last}, {"iterations", loop.iterations}});
  writeText(folder / "program.json", json.dump(1));
}

void dumpRun(const fs::path& folder, std::string_view name) {
  const std::vector<SampleProgram> samples = allPrograms();
  const auto sample = std::ranges::find(samples, name, &SampleProgram::name);
  const auto* run = std::ranges::find(kRuns, name, &Run::sample);
  if (sample == samples.end() || run == std::end(kRuns)) throw std::runtime_error(fmt::format("no run of a sample '{}'", name));
  dumpRun(folder, withBatch(*sample, run->batch));
}

}  // namespace
}  // namespace lockstep

int main(int count, char** arguments) {
  const std::vector<std::string> words(arguments + 1, arguments + count);
  try {
    if (words.size() == 2 && words[0] == "kernels") return lockstep::dumpKernels(words[1]), 0;
    if (words.size() == 3 && words[0] == "run") return lockstep::dumpRun(words[2], words[1]), 0;
    fmt::print(stderr, "usage: webgpu_dump kernels DIR | run SAMPLE DIR\n");
    return 2;
  } catch (const std::exception& error) {
    fmt::print(stderr, "webgpu_dump: {}\n", error.what());
    return 1;
  }
}
