// SPDX-License-Identifier: Apache-2.0
// Program IR: what a backend runs. Kernels, buffers in arenas, and commands in order, each with what it reads and writes. It is made
// by schedule (symbolic kernels, virtual buffers), completed by planBuffers (arenas and offsets) and emit (kernel modules).
//
// It stands alone: with it, the values of its states and batches anybody can train, without the graph that it came from.
//
// Text form (lockstep.program 1): arenas, buffers, kernels with their graph or kernel IR, inputs, outputs, states, commands grouped by
// level.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "ir/graph/graph.h"
#include "ir/kernel/module.h"
#include "ir/program/plan.h"
#include "ir/program/profile.h"
#include "ir/support/id.h"
#include "ir/support/result.h"

namespace lockstep::program {

using ArenaId = Id<struct ArenaTag>;
using BufferId = Id<struct BufferTag>;
using KernelId = Id<struct ProgramKernelTag>;

/// What an arena is for. One allocation each.
enum class ArenaRole : uint8_t {
  State,      ///< external: parameters, moments and other state leaves; persists between steps and may be shared between executables
  Input,      ///< written by the host for every step (batch and step scalars); the backend keeps a ring of it
  Output,     ///< read by the host after every step (loss, captures, results); the backend keeps a ring of it
  Constant,   ///< written once when the executable is made (Program::constants)
  Workspace,  ///< internal to the executable
};
std::string_view toString(ArenaRole role);

struct Arena {
  std::string name;
  ArenaRole role = ArenaRole::Workspace;
  uint64_t size = 0;  ///< bytes
  friend bool operator==(const Arena&, const Arena&) = default;
};

/// A range of an arena with a name and an element type. Before planBuffers `arena` is invalid for workspace buffers.
struct Buffer {
  std::string name;
  graph::TensorType type;
  ArenaRole role = ArenaRole::Workspace;
  ArenaId arena;
  uint64_t offset = 0;  ///< bytes in the arena, a multiple of 256
  uint64_t size = 0;    ///< bytes
  double initial = 0;   ///< State: the value that the host fills it with at the start
  friend bool operator==(const Buffer&, const Buffer&) = default;
};

/// A use of a part of a buffer by a command.
struct Range {
  BufferId buffer;
  uint64_t offset = 0;                           ///< bytes in the buffer
  uint64_t size = 0;                             ///< bytes
  kernel::Access access = kernel::Access::Read;  ///< Read or ReadWrite
  int64_t step = 0;                              ///< bytes that it moves per iteration of the loop that its command is in
  friend bool operator==(const Range&, const Range&) = default;
};
/// Where the range is in an iteration.
Range inIteration(Range range, uint32_t iteration);

/// A kernel before emit: the group as a self-contained graph (its inputs are `input` leaves in operand order, its results `output
/// result`s) and how it becomes a kernel.
struct SymbolicKernel {
  graph::Graph body;
  Plan plan;
  friend bool operator==(const SymbolicKernel&, const SymbolicKernel&) = default;
};

struct Kernel {
  std::string name;
  std::variant<SymbolicKernel, kernel::Module> code;
  friend bool operator==(const Kernel&, const Kernel&) = default;
};

/// Runs `kernel`'s entry point on groups x*y*z workgroups. Binding i of the module's group 0 is bindings[i]; before emit the bindings
/// are the inputs and then the results of the symbolic kernel. `immediates` are the words of its immediate variable, if it has one.
struct Dispatch {
  KernelId kernel;
  std::array<uint32_t, 3> groups{1, 1, 1};
  std::vector<Range> bindings;
  std::vector<uint32_t> immediates = {};
  friend bool operator==(const Dispatch&, const Dispatch&) = default;
};
/// Copies source to target; equal sizes, no overlap.
struct Copy {
  Range source, target;
  friend bool operator==(const Copy&, const Copy&) = default;
};
/// Fills a range with a repeated 32-bit pattern.
struct Fill {
  Range target;
  uint32_t pattern = 0;
  friend bool operator==(const Fill&, const Fill&) = default;
};
using Action = std::variant<Dispatch, Copy, Fill>;

/// The action with its ranges where they are in an iteration.
Action inIteration(Action action, uint32_t iteration);

struct Command {
  Action action;
  uint32_t level = 0;  ///< commands of one level do not depend on each other; ascending
  std::string label;   ///< for profiles and dumps: "matmul layers.0.attn.q"
  friend bool operator==(const Command&, const Command&) = default;
};

/// The levels from first to last run `iterations` times, one after the other. No command of these levels is outside of the loop. What an
/// iteration leaves in a workspace buffer the next one finds there.
struct Loop {
  uint32_t first = 0, last = 0;
  uint32_t iterations = 1;
  [[nodiscard]] bool holds(uint32_t level) const { return first <= level && level <= last; }
  friend bool operator==(const Loop&, const Loop&) = default;
};

/// How often commands of loops may run in a step, all of them together: each run is recorded.
inline constexpr uint64_t kMostRuns = uint64_t{1} << 20;

/// An input that the batch brings.
struct BatchSource {
  std::optional<int64_t> below = {};    ///< every element is an integer from 0 to below - 1
  std::optional<int64_t> ignored = {};  ///< or this one
  friend bool operator==(const BatchSource&, const BatchSource&) = default;
};
/// An input f32[n] that the host computes for every run: one formula (formula.h) of kStepNames per element.
struct FormulaSource {
  std::vector<std::string> elements;
  friend bool operator==(const FormulaSource&, const FormulaSource&) = default;
};
/// The input u32[4] that random ops draw from: the seed and the number of the run (1, 2, …, counted over all steps), each as low and high
/// word.
struct KeySource {
  friend bool operator==(const KeySource&, const KeySource&) = default;
};
using InputSource = std::variant<BatchSource, FormulaSource, KeySource>;

/// What formulas may name: the step (1, 2, …), its learning rate, and 1 in the last run of a step, else 0.
inline constexpr std::array<std::string_view, 3> kStepNames{"step", "lr", "last"};
/// What the formula of the learning rate may name.
inline constexpr std::span<const std::string_view> kRateNames = std::span(kStepNames).first(1);

/// A buffer of the Input arena that the host writes before every run.
struct InputPort {
  std::string name;
  BufferId buffer;
  InputSource source = BatchSource{};
  friend bool operator==(const InputPort&, const InputPort&) = default;
};
/// A buffer of the Output arena that the host reads after every run.
struct OutputPort {
  std::string name;
  graph::OutputKind kind = graph::OutputKind::Result;
  BufferId buffer;
  friend bool operator==(const OutputPort&, const OutputPort&) = default;
};

/// A parameter in a flat state.
struct StatePart {
  std::string parameter;
  int64_t offset = 0;  ///< elements
  friend bool operator==(const StatePart&, const StatePart&) = default;
};
/// A State buffer that outlives a step and belongs in checkpoints. Other State buffers hold something only within a step.
struct PersistentState {
  BufferId buffer;
  std::vector<StatePart> parts = {};  ///< of a flat state: whose values lie where; between them is padding
  friend bool operator==(const PersistentState&, const PersistentState&) = default;
};

/// Of a program that trains.
struct Steps {
  int64_t accumulate = 1;  ///< runs per step
  std::string rate;        ///< formula of the learning rate of a step
  friend bool operator==(const Steps&, const Steps&) = default;
};

/// Data of a Constant buffer.
struct ConstantData {
  BufferId buffer;
  std::vector<uint32_t> words;
  friend bool operator==(const ConstantData&, const ConstantData&) = default;
};

struct Program {
  DeviceProfile profile;  ///< what it was made for, and what its kernels must keep to
  std::vector<graph::ParameterInfo> parameters;
  std::vector<Arena> arenas;
  std::vector<Buffer> buffers;
  std::vector<Kernel> kernels;
  std::vector<Command> commands;
  std::vector<Loop> loops;  ///< ascending, without overlap
  std::vector<InputPort> inputs;
  std::vector<OutputPort> outputs;  ///< loss, gradient norm, captures, results
  std::vector<ConstantData> constants;
  std::vector<PersistentState> states;
  std::optional<Steps> steps;  ///< absent: it does not train
  /// Entries of every checkpoint of the program. Two with the same entries train the same model with the same optimizer.
  std::map<std::string, std::string, std::less<>> checkpoint;

  [[nodiscard]] const Arena& operator[](ArenaId id) const { return arenas[id.index()]; }
  [[nodiscard]] const Buffer& operator[](BufferId id) const { return buffers[id.index()]; }
  [[nodiscard]] const Kernel& operator[](KernelId id) const { return kernels[id.index()]; }
  [[nodiscard]] uint32_t levelCount() const { return commands.empty() ? 0 : commands.back().level + 1; }
  /// The loop that a level is in; null where it is in none.
  [[nodiscard]] const Loop* loopOf(uint32_t level) const;
  /// How often commands of loops run in a step, all of them together.
  [[nodiscard]] uint64_t runsInLoops() const;
  /// How often commands of a level run in a step.
  [[nodiscard]] uint32_t iterationsOf(uint32_t level) const;
  /// Invalid when there is no arena of the role.
  [[nodiscard]] ArenaId findArena(ArenaRole role) const;
  [[nodiscard]] const InputPort* findInput(std::string_view name) const;
  [[nodiscard]] const OutputPort* findOutput(std::string_view name) const;
  friend bool operator==(const Program&, const Program&) = default;
};

/// The ranges that a command reads and writes.
std::vector<Range> accesses(const Command& command);

/// Runs all commands in their order, those of loops once per iteration. `command(i, iteration)`; it may return a Status that ends the run.
template <class Visit>
Status forEachRun(const Program& program, Visit&& command) {
  size_t i = 0;
  const auto count = program.commands.size();
  const auto one = [&](size_t index, uint32_t iteration) -> Status { return command(index, iteration); };
  while (i < count) {
    const Loop* loop = program.loopOf(program.commands[i].level);
    size_t end = i + 1;
    while (loop != nullptr && end < count && loop->holds(program.commands[end].level)) ++end;
    for (uint32_t iteration = 0; iteration < (loop == nullptr ? 1 : loop->iterations); ++iteration) {
      for (size_t k = i; k < end; ++k) LS_CHECK(one(k, iteration));
    }
    i = end;
  }
  return Success{};
}

/// The same program with canonical kernels (their locations dropped, as the text has none).
Program canonical(Program program);
/// An invalid program prints too (broken ids show as %undefined).
std::string print(const Program& program);
/// Reads a text. parse(print(p)) == canonical(p). Ask validate() or validateStructure() for more than syntax, names and types.
Result<Program> parse(std::string_view text, const std::string& file_name = "program");

/// A program that is ready to run: every kernel emitted and valid, every buffer placed, every binding in range and aligned, no command of a
/// level writes what another one of the level reads or writes. The only thing that a backend accepts.
class ValidProgram {
 public:
  [[nodiscard]] const Program& operator*() const { return program_; }
  [[nodiscard]] const Program* operator->() const { return &program_; }
  /// kernels[i] of the program, validated.
  [[nodiscard]] const std::vector<kernel::ValidModule>& modules() const { return modules_; }

 private:
  ValidProgram(Program program, std::vector<kernel::ValidModule> modules) : program_(std::move(program)), modules_(std::move(modules)) {}
  friend Result<ValidProgram> validate(Program program);
  Program program_;
  std::vector<kernel::ValidModule> modules_;
};
Result<ValidProgram> validate(Program program);
/// What also holds before emit: ids, levels, ranges within their buffers.
Status validateStructure(const Program& program);

}  // namespace lockstep::program
