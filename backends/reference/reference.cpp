// SPDX-License-Identifier: Apache-2.0
// The contract of backends/backend.h over the reference machine: arenas are vectors of words, submit() runs at once.
#include "backends/reference/reference.h"

#include <unistd.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstring>
#include <limits>
#include <thread>

#include <fmt/format.h>

#include "backends/reference/dispatch.h"
#include "backends/reference/sanitize/error_memory.h"
#include "backends/reference/sanitize/shadows.h"
#include "backends/reference/sanitize/watch.h"
#include "ir/program/limits.h"

namespace lockstep {
namespace {

using reference::BufferView;
using reference::Bytecode;
using reference::Fault;

constexpr uint32_t kMaxWorkgroupInvocations = 1024;
constexpr uint32_t kMaxImmediateBytes = 256;
constexpr uint32_t kMaxWorkgroupBytes = 32768;
/// What a kernel may have all the same: programs that were planned for a GPU run here, too, so that they can be compared and bounded.
constexpr uint32_t kMostWorkgroupBytes = 131072;

class ReferenceMemory : public Memory {
 public:
  explicit ReferenceMemory(uint64_t bytes) : bytes_(bytes), words_((bytes + 3) / 4) {}
  [[nodiscard]] uint64_t size() const override { return bytes_; }
  Status write(uint64_t offset, std::span<const std::byte> data) override {
    LS_CHECK(check(offset, data.size()));
    if (!data.empty()) std::memcpy(bytes() + offset, data.data(), data.size());
    forgetShadows(offset, data.size());
    return Success{};
  }
  Status read(uint64_t offset, std::span<std::byte> data) override {
    LS_CHECK(check(offset, data.size()));
    if (!data.empty()) std::memcpy(data.data(), bytes() + offset, data.size());
    return Success{};
  }
  [[nodiscard]] uint32_t* words() { return words_.data(); }
  [[nodiscard]] std::byte* bytes() { return reinterpret_cast<std::byte*>(words_.data()); }
  /// One byte per word, or null.
  [[nodiscard]] uint8_t* written() { return written_.empty() ? nullptr : written_.data(); }
  void trackWrites() { written_.assign(words_.size(), 0); }
  /// One per word, or null.
  [[nodiscard]] reference::Shadow* shadows() { return shadows_.empty() ? nullptr : shadows_.data(); }
  void addShadows() { shadows_.resize(words_.size()); }
  /// Of words that the host wrote.
  void forgetShadows(uint64_t offset, uint64_t size) {
    if (size == 0 || shadows_.empty()) return;
    std::fill(shadows_.begin() + static_cast<std::ptrdiff_t>(offset / 4),
              shadows_.begin() + static_cast<std::ptrdiff_t>((offset + size + 3) / 4), reference::Shadow{});
  }
  Status forget() override {
    trackWrites();
    is_output_ = true;
    return Success{};
  }
  [[nodiscard]] bool isOutput() const { return is_output_; }

 private:
  [[nodiscard]] Status check(uint64_t offset, uint64_t size) const {
    if (offset <= bytes_ && size <= bytes_ - offset) return Success{};
    return fail("backend.memory_range", fmt::format("bytes {} to {} are outside an allocation of {} bytes", offset, offset + size, bytes_));
  }
  uint64_t bytes_;
  std::vector<uint32_t> words_;
  std::vector<uint8_t> written_;
  bool is_output_ = false;
  std::vector<reference::Shadow> shadows_;
};

/// What the executables of one backend share.
struct Shared {
  explicit Shared(const ReferenceOptions& o) : options(o), pool(o.max_threads) {}
  ReferenceOptions options;
  reference::ThreadPool pool;
  uint32_t dispatches = 0;  ///< that had shadows
  uint32_t kernels = 0;     ///< of all executables
};

class ReferenceExecutable : public Executable {
 public:
  ReferenceExecutable(const program::ValidProgram& program, std::shared_ptr<Shared> shared, std::vector<Bytecode> kernels)
      : program_(program), shared_(std::move(shared)), kernels_(std::move(kernels)), first_kernel_(shared_->kernels) {
    shared_->kernels += static_cast<uint32_t>(kernels_.size());
    for (const program::Arena& arena : program_->arenas) {
      bool own = arena.role != program::ArenaRole::State;
      arenas_.push_back(own ? std::make_shared<ReferenceMemory>(arena.size) : nullptr);
      if (!own) continue;
      ++statistics_.device_allocations;
      statistics_.device_bytes += arena.size;
    }
    for (const program::ConstantData& constant : program_->constants) {
      const program::Buffer& buffer = (*program_)[constant.buffer];
      size_t bytes = std::min<size_t>(buffer.size, constant.words.size() * sizeof(uint32_t));
      std::memcpy(arenas_[buffer.arena.index()]->bytes() + buffer.offset, constant.words.data(), bytes);
    }
  }

  Result<Ticket> submit(const ArenaSet& state, std::span<const std::span<const std::byte>> inputs) override {
    LS_CHECK(bindState(state));
    printed_ = {};
    findings_ = {};
    choices_ = {};
    ++statistics_.submissions;
    std::vector<std::vector<std::byte>> outputs;
    for (std::span<const std::byte> input : inputs) {
      LS_CHECK(step(input, nullptr));
      outputs.push_back(output());
    }
    statistics_.steps += inputs.size();
    finished_[++last_ticket_] = std::move(outputs);
    return last_ticket_;
  }

  Result<std::vector<std::vector<std::byte>>> wait(Ticket ticket) override {
    auto found = finished_.find(ticket);
    if (found == finished_.end())
      return fail("backend.ticket", fmt::format("ticket {} is not waiting: it was waited for before or never given", ticket));
    std::vector<std::vector<std::byte>> outputs = std::move(found->second);
    finished_.erase(found);
    return outputs;
  }

  Result<std::vector<CommandTime>> time(const ArenaSet& state, std::span<const std::byte> input) override {
    LS_CHECK(bindState(state));
    printed_ = {};
    findings_ = {};
    choices_ = {};
    std::vector<CommandTime> times;
    ++statistics_.submissions;
    LS_CHECK(step(input, &times));
    ++statistics_.steps;
    return times;
  }

  [[nodiscard]] ExecutionStatistics statistics() const override { return statistics_; }

  std::optional<Printed> takePrinted() override { return std::exchange(printed_, {}); }
  std::vector<Finding> takeFindings() override { return std::exchange(findings_, {}); }

  std::vector<RoundingBounds::Choice> takeUnstableChoices() override { return std::exchange(choices_, {}); }

  [[nodiscard]] RoundingBounds bounds(const program::Range& range) const override {
    RoundingBounds all;
    if (arenas_[(*program_)[range.buffer].arena.index()] == nullptr) return all;
    const BufferView buffer = view(range);
    if (buffer.shadows == nullptr) return all;
    std::map<std::pair<uint32_t, uint32_t>, uint32_t> known;
    for (uint32_t k = 0; k < buffer.count; ++k) {
      const reference::Shadow& shadow = buffer.shadows[k];
      const bool is_known = shadow.dispatch != 0 && shadow.bits == buffer.words[k];
      all.values.push_back(is_known ? shadow.value : std::numeric_limits<double>::quiet_NaN());
      all.bounds.push_back(is_known ? shadow.bound : 0);
      const reference::ErrorOrigin origin = shadow.origin.site() != 0 ? shadow.origin : shadow.bound_origin;
      all.origins.push_back(0);
      // Another executable knows the kernels that wrote the rest.
      const uint32_t kernel = shadow.kernel - first_kernel_;
      if (!is_known || origin.site() == 0 || kernel >= kernels_.size()) continue;
      const auto [place, inserted] = known.try_emplace({kernel, origin.site()}, static_cast<uint32_t>(all.places.size()));
      if (inserted) {
        const program::KernelId id(size_t{kernel});
        all.places.push_back(reference::placeOf(origin.site(), *program_.modules()[id.index()], (*program_)[id].name));
      }
      all.origins.back() = place->second;
    }
    return all;
  }

 private:
  Status bindState(const ArenaSet& state) {
    for (size_t k = 0; k < program_->arenas.size(); ++k) {
      const program::Arena& arena = program_->arenas[k];
      if (arena.role != program::ArenaRole::State) continue;
      auto found = state.find(arena.name);
      if (found == state.end()) return fail("backend.state", fmt::format("state arena {} is missing", arena.name));
      auto memory = std::dynamic_pointer_cast<ReferenceMemory>(found->second);
      if (memory == nullptr) return fail("backend.state", fmt::format("state arena {} belongs to another backend", arena.name));
      if (memory->size() < arena.size)
        return fail("backend.state",
                    fmt::format("state arena {} has {} bytes and the program needs {}", arena.name, memory->size(), arena.size));
      arenas_[k] = std::move(memory);
    }
    return Success{};
  }

  Status step(std::span<const std::byte> input, std::vector<CommandTime>* times) {
    LS_CHECK(takeInput(input));
    for (size_t k = 0; k < program_->arenas.size(); ++k)
      if (tracksWorkspace() && program_->arenas[k].role == program::ArenaRole::Workspace) arenas_[k]->trackWrites();
    for (const std::shared_ptr<ReferenceMemory>& arena : arenas_)
      if (findsErrors()) arena->addShadows();
    if (times != nullptr) {
      for (size_t k = 0; k < program_->commands.size(); ++k) times->push_back({k, 0});
    }
    return program::forEachRun(*program_, [&](size_t k, uint32_t iteration) -> Status {
      iteration_ = iteration;
      auto start = std::chrono::steady_clock::now();
      LS_CHECK(std::visit([&](const auto& action) { return run(action); }, program_->commands[k].action));
      std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
      if (times != nullptr) (*times)[k].seconds += seconds.count();
      return Success{};
    });
  }

  Status takeInput(std::span<const std::byte> input) {
    program::ArenaId arena = program_->findArena(program::ArenaRole::Input);
    uint64_t wanted = arena.valid() ? (*program_)[arena].size : 0;
    if (input.size() != wanted)
      return fail("backend.input_size", fmt::format("a step was given {} bytes of input and the program takes {}", input.size(), wanted));
    if (wanted != 0) std::memcpy(arenas_[arena.index()]->bytes(), input.data(), input.size());
    if (wanted != 0) arenas_[arena.index()]->forgetShadows(0, wanted);
    return Success{};
  }

  [[nodiscard]] std::vector<std::byte> output() {
    program::ArenaId arena = program_->findArena(program::ArenaRole::Output);
    if (!arena.valid()) return {};
    ReferenceMemory& memory = *arenas_[arena.index()];
    return {memory.bytes(), memory.bytes() + memory.size()};
  }

  [[nodiscard]] bool tracksWorkspace() const {
    return shared_->options.track_uninitialised || (shared_->options.sanitize && shared_->options.sanitize->memory);
  }
  [[nodiscard]] bool findsErrors() const { return shared_->options.sanitize && shared_->options.sanitize->errors; }

  [[nodiscard]] BufferView view(const program::Range& given) const {
    const program::Range range = program::inIteration(given, iteration_);
    const program::Buffer& buffer = (*program_)[range.buffer];
    ReferenceMemory& memory = *arenas_[buffer.arena.index()];
    uint64_t first = (buffer.offset + range.offset) / 4;
    uint8_t* written = memory.written();
    reference::Shadow* shadows = memory.shadows();
    return {.words = memory.words() + first,
            .count = static_cast<uint32_t>(range.size / 4),
            .written = written == nullptr ? nullptr : written + first,
            .shadows = shadows == nullptr ? nullptr : shadows + first,
            .is_output = memory.isOutput()};
  }

  Status run(const program::Dispatch& dispatch) {
    std::vector<BufferView> bindings;
    for (const program::Range& range : dispatch.bindings) bindings.push_back(view(range));
    std::vector<uint32_t> immediates = dispatch.immediates;
    bindings.push_back({.words = immediates.data(), .count = static_cast<uint32_t>(immediates.size())});
    const Bytecode& code = kernels_[dispatch.kernel.index()];
    reference::MachineOptions options{.checks = shared_->options.checks,
                                      .loop_budget = shared_->options.loop_budget,
                                      .order_seed = shared_->options.order_seed,
                                      .perturbation = shared_->options.perturbation};
    std::optional<reference::Watch> watch;
    if (shared_->options.sanitize) options.watch = &watch.emplace(code, bindings, *shared_->options.sanitize);
    std::optional<reference::Shadows> shadows;
    if (findsErrors())
      options.shadows = &shadows.emplace(code, ++shared_->dispatches, first_kernel_ + static_cast<uint32_t>(dispatch.kernel.index()));
    reference::Outcome outcome = reference::dispatch(shared_->pool, code, bindings, dispatch.groups, options);
    const kernel::Module& module = *program_.modules()[dispatch.kernel.index()];
    const std::string& name = (*program_)[dispatch.kernel].name;
    append(reference::printedLines(std::move(outcome.printed), code, module, name, dispatch.groups));
    if (watch) reference::finish(*watch, code, module);
    if (shadows) {
      reference::findErrors(*watch, shadows->dispatch(), code, bindings);
      std::ranges::move(reference::choicesOf(*shadows, code, module, name, dispatch.groups), std::back_inserter(choices_));
    }
    if (watch) {
      std::vector<Finding> found = reference::findingsOf(*watch, code, module, name, dispatch.groups);
      // A line of a model says nothing of the kernel that it became a part of.
      for (Finding& finding : found)
        if (program_->kernels.size() > 1)
          finding.invocation = fmt::format("kernel {}{}{}", name, finding.invocation.empty() ? "" : ", ", finding.invocation);
      std::ranges::move(found, std::back_inserter(findings_));
    }
    if (outcome.fault.kind == Fault::Kind::None || watch) return Success{};
    return reference::report(outcome.fault, code, module, name, dispatch.groups);
  }

  void append(Printed more) {
    const size_t kept = std::min(more.lines.size(), kMostPrintedLines - printed_.lines.size());
    printed_.left_out += more.left_out + (more.lines.size() - kept);
    std::move(more.lines.begin(), more.lines.begin() + static_cast<std::ptrdiff_t>(kept), std::back_inserter(printed_.lines));
  }

  Status run(const program::Copy& copy) {
    BufferView source = view(copy.source), target = view(copy.target);
    std::memcpy(target.words, source.words, copy.source.size);
    for (uint32_t k = 0; target.written != nullptr && k < target.count; ++k)
      target.written[k] = source.written == nullptr ? 1 : source.written[k];
    if (target.shadows != nullptr && source.shadows != nullptr) std::copy_n(source.shadows, copy.source.size / 4, target.shadows);
    return Success{};
  }

  Status run(const program::Fill& fill) {
    BufferView target = view(fill.target);
    std::fill_n(target.words, target.count, fill.pattern);
    if (target.written != nullptr) std::fill_n(target.written, target.count, uint8_t(1));
    if (target.shadows != nullptr) std::fill_n(target.shadows, target.count, reference::Shadow{});
    return Success{};
  }

  program::ValidProgram program_;
  std::shared_ptr<Shared> shared_;
  std::vector<Bytecode> kernels_;
  uint32_t first_kernel_;  ///< the number of kernels_[0] among those of all executables
  std::vector<std::shared_ptr<ReferenceMemory>> arenas_;
  std::map<Ticket, std::vector<std::vector<std::byte>>> finished_;
  Ticket last_ticket_ = 0;
  uint32_t iteration_ = 0;  ///< of the loop that the running command is in
  ExecutionStatistics statistics_;
  Printed printed_;
  std::vector<Finding> findings_;
  std::vector<RoundingBounds::Choice> choices_;
};

/// Bindings that the machine relies on.
Status checkBindings(const program::Program& program, const program::Dispatch& dispatch, const Bytecode& code) {
  const std::string& name = program[dispatch.kernel].name;
  for (const reference::Variable& variable : code.variables) {
    if (variable.home != reference::Home::Buffer) continue;
    if (variable.binding == dispatch.bindings.size() && !dispatch.immediates.empty()) continue;
    if (variable.binding >= dispatch.bindings.size())
      return fail("reference.binding", fmt::format("kernel {}: variable {} has no binding {}", name, variable.name, variable.binding));
    uint64_t bytes = dispatch.bindings[variable.binding].size;
    if (bytes < uint64_t(variable.words) * 4)
      return fail("reference.binding", fmt::format("kernel {}: binding {} has {} bytes and variable {} needs at least {}", name,
                                                   variable.binding, bytes, variable.name, uint64_t(variable.words) * 4));
  }
  return Success{};
}

/// Before the kernel is decoded, which multiplies the sizes of a workgroup without a look at their product. Any number of bindings runs,
/// and more workgroup memory than is planned for.
Status checkLimits(const std::string& name, const kernel::Module& module, program::DeviceProfile profile) {
  if (module.entryPoint() == nullptr) return Success{};
  profile.max_storage_buffers = std::numeric_limits<uint32_t>::max();
  profile.max_workgroup_bytes = kMostWorkgroupBytes;
  const auto beyond = program::firstExceeded(program::limitUses(module, profile));
  if (!beyond) return Success{};
  return fail("reference.limit",
              fmt::format("kernel {}: {} {} are above the limit of {}", name, beyond->used, beyond->what, beyond->allowed));
}

/// Indices are always clamped: what is executed after one that is not would be something else.
reference::Watched watchedBy(const SanitizeChecks& checks) {
  return {.indices = true, .integers = checks.integers, .floats = checks.floats, .wraps = checks.wraps};
}

class ReferenceBackend : public Backend {
 public:
  explicit ReferenceBackend(const ReferenceOptions& options) : device_(referenceDevice()), shared_(std::make_shared<Shared>(options)) {}

  [[nodiscard]] const DeviceInfo& device() const override { return device_; }

  Result<std::shared_ptr<Memory>> allocate(uint64_t bytes) override {
    if (bytes > device_.memory_bytes && device_.memory_bytes != 0) return outOfMemory(bytes);
    return std::shared_ptr<Memory>(std::make_shared<ReferenceMemory>(bytes));
  }

  Result<std::unique_ptr<Executable>> compile(const program::ValidProgram& program) override {
    uint64_t bytes = 0;
    for (const program::Arena& arena : program->arenas)
      if (arena.role != program::ArenaRole::State) bytes += arena.size;
    if (bytes > device_.memory_bytes && device_.memory_bytes != 0) return outOfMemory(bytes);
    if (const std::optional<SanitizeChecks>& checks = shared_->options.sanitize; checks && checks->errors) {
      const uint64_t given = shared_->options.error_memory;
      LS_CHECK(reference::checkErrorMemory(program, *checks, given != 0 ? given : reference::availableMemory()));
    }
    const reference::SubgroupShape subgroups{shared_->options.subgroup_size, shared_->options.subgroup_seed};
    if (!std::has_single_bit(subgroups.size) || subgroups.size < 4 || subgroups.size > 128)
      return fail("reference.subgroups", fmt::format("{} lanes do not make a subgroup", subgroups.size), {},
                  "use a power of two from 4 to 128");
    std::vector<Bytecode> kernels;
    for (size_t k = 0; k < program->kernels.size(); ++k) {
      LS_CHECK(checkLimits(program->kernels[k].name, *program.modules()[k], device_.profile));
      const kernel::Module& module = *program.modules()[k];
      LS_TRY(Bytecode code, shared_->options.sanitize ? reference::decodeWatched(module, subgroups, watchedBy(*shared_->options.sanitize))
                                                      : reference::decode(module, subgroups));
      kernels.push_back(std::move(code));
    }
    for (const program::Command& command : program->commands) {
      const auto* dispatch = std::get_if<program::Dispatch>(&command.action);
      if (dispatch != nullptr) LS_CHECK(checkBindings(*program, *dispatch, kernels[dispatch->kernel.index()]));
    }
    return std::unique_ptr<Executable>(std::make_unique<ReferenceExecutable>(program, shared_, std::move(kernels)));
  }

 private:
  [[nodiscard]] Failure outOfMemory(uint64_t bytes) const {
    Failure failure = fail("backend.out_of_memory", fmt::format("{} bytes are needed and this machine has {}", bytes, device_.memory_bytes),
                           {}, "use a smaller batch or model");
    failure.exit_code = ExitCode::OutOfMemory;
    return failure;
  }

  DeviceInfo device_;
  std::shared_ptr<Shared> shared_;
};

}  // namespace

DeviceInfo referenceDevice() {
  DeviceInfo info;
  info.id = "reference";
  info.name = "CPU reference";
  info.kind = DeviceKind::Reference;
  info.driver = "lockstep reference";
  long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGE_SIZE);
  info.memory_bytes = pages > 0 && page > 0 ? static_cast<uint64_t>(pages) * static_cast<uint64_t>(page) : 0;
  const program::DeviceProfile profile{
      .name = "cpu",
      .style = program::ExecutionStyle::Cpu,
      .max_storage_buffers = 32,
      .max_binding_bytes = uint64_t(2) << 30,
      .min_offset_alignment = 256,
      .max_workgroup_invocations = kMaxWorkgroupInvocations,
      .max_workgroup_bytes = kMaxWorkgroupBytes,
      .max_workgroup_size_x = kMaxWorkgroupInvocations,
      .max_workgroup_size_y = kMaxWorkgroupInvocations,
      .max_workgroup_size_z = kMaxWorkgroupInvocations,
      .max_immediate_bytes = kMaxImmediateBytes,
      .max_loop_iterations = 0,
      .parallel_units = std::max(1u, std::thread::hardware_concurrency()),
      .f16 = true,
      .subgroups = true,
  };
  info.profile = program::withRates(profile, program::kCpuRates);
  return info;
}

std::unique_ptr<Backend> makeReference(const ReferenceOptions& options) { return std::make_unique<ReferenceBackend>(options); }

}  // namespace lockstep
