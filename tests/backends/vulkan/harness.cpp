// SPDX-License-Identifier: Apache-2.0
#include "tests/backends/vulkan/harness.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <variant>

#include "backends/vulkan/api.h"
#include "ir/kernel/module.h"

namespace lockstep::vulkan::testing {

namespace {

std::unique_ptr<Backend>& openBackend() {
  static std::unique_ptr<Backend> backend;
  return backend;
}

bool hasLayer() { return loadVulkan().ok() && hasValidationLayer(); }

/// Closes the device before main ends, while the driver is still whole.
class DeviceEnvironment : public ::testing::Environment {
 public:
  void SetUp() override {
    setenv("LOCKSTEP_SPIRV_VAL", "1", 1);
    setenv("LOCKSTEP_CACHE_DIR", "", 1);
    if (hasLayer()) setenv("LOCKSTEP_VALIDATION", "1", 1);
    std::vector<DeviceInfo> devices;
    if (auto listed = listVulkanDevices()) devices = std::move(*listed);
    std::erase_if(devices, [](const DeviceInfo& info) { return !info.usable; });
    if (devices.empty()) return;
    auto best = std::min_element(devices.begin(), devices.end(), [](const DeviceInfo& a, const DeviceInfo& b) { return a.kind < b.kind; });
    openBackend() = openVulkanDevice(*best).orThrow();
    fmt::print("device: {}\n", best->name);
  }
  void TearDown() override { openBackend().reset(); }
};
const ::testing::Environment* const environment = ::testing::AddGlobalTestEnvironment(new DeviceEnvironment);

program::ArenaRole roleOf(size_t index) { return static_cast<program::ArenaRole>(index); }
constexpr size_t kRoles = 5;

}  // namespace

Backend* device() { return openBackend().get(); }

std::unique_ptr<Backend> open() { return device() == nullptr ? nullptr : openVulkanDevice(device()->device()).orThrow(); }

void VulkanTest::SetUp() {
  if (device() != nullptr) return;
  const char* allowed = std::getenv("LOCKSTEP_ALLOW_NO_VULKAN");
  if (allowed != nullptr && std::string_view(allowed) == "1") GTEST_SKIP() << "no Vulkan device";
  GTEST_FAIL() << "no Vulkan device; LOCKSTEP_ALLOW_NO_VULKAN=1 skips these tests";
}

program::BufferId ProgramBuilder::buffer(program::ArenaRole role, uint64_t words, std::string name) {
  if (program_.arenas.empty()) {
    for (size_t i = 0; i < kRoles; ++i) program_.arenas.push_back({.name = std::string(program::toString(roleOf(i))), .role = roleOf(i)});
  }
  auto arena = static_cast<size_t>(role);
  program::Arena& place = program_.arenas[arena];
  program_.buffers.push_back({.name = fmt::format("{}{}", name, program_.buffers.size()),
                              .type = {.dtype = graph::DType::U32, .shape = {static_cast<int64_t>(words)}},
                              .role = role,
                              .arena = program::ArenaId(arena),
                              .offset = place.size,
                              .size = words * 4});
  place.size += (words * 4 + 255) / 256 * 256;
  return program::BufferId(program_.buffers.size() - 1);
}

program::KernelId ProgramBuilder::kernel(const std::string& text) {
  Result<kernel::Module> module = kernel::parse(text);
  if (!module) {
    ADD_FAILURE() << toString(module.diagnostics()) << text;
    return {};
  }
  program_.kernels.push_back({.name = fmt::format("k{}", program_.kernels.size()), .code = std::move(*module)});
  return program::KernelId(program_.kernels.size() - 1);
}

void ProgramBuilder::constant(program::BufferId buffer, Words words) { program_.constants.push_back({buffer, std::move(words)}); }

program::Range ProgramBuilder::whole(program::BufferId buffer, kernel::Access access) const {
  return {.buffer = buffer, .offset = 0, .size = program_[buffer].size, .access = access};
}

void ProgramBuilder::dispatch(uint32_t level, program::KernelId kernel, const std::vector<program::BufferId>& bindings,
                              std::array<uint32_t, 3> groups) {
  program::Dispatch made{.kernel = kernel, .groups = groups, .bindings = {}};
  const auto& module = std::get<kernel::Module>(program_[kernel].code);
  for (size_t i = 0; i < bindings.size(); ++i) {
    auto global = std::find_if(module.globals.begin(), module.globals.end(),
                               [&](const kernel::GlobalVariable& g) { return g.binding == i && kernel::isBound(g.space); });
    bool reads = global == module.globals.end() || global->access == kernel::Access::Read;
    made.bindings.push_back(whole(bindings[i], reads ? kernel::Access::Read : kernel::Access::ReadWrite));
  }
  program_.commands.push_back({.action = std::move(made), .level = level, .label = "dispatch"});
}

void ProgramBuilder::copy(uint32_t level, program::BufferId source, program::BufferId target) {
  program::Copy made{.source = whole(source, kernel::Access::Read), .target = whole(target, kernel::Access::ReadWrite)};
  program_.commands.push_back({.action = made, .level = level, .label = "copy"});
}

void ProgramBuilder::fill(uint32_t level, program::BufferId target, uint32_t pattern) {
  program::Fill made{.target = whole(target, kernel::Access::ReadWrite), .pattern = pattern};
  program_.commands.push_back({.action = made, .level = level, .label = "fill"});
}

uint64_t ProgramBuilder::arenaBytes(program::ArenaRole role) const { return program_.arenas[static_cast<size_t>(role)].size; }

program::ValidProgram ProgramBuilder::take() const {
  program::Program program = program_;
  program.profile = program::unlimitedProfile("tests");
  return program::validate(std::move(program)).orThrow();
}

void runKernel(const std::string& text, std::array<uint32_t, 3> groups, std::vector<Words>& buffers) {
  ProgramBuilder builder;
  std::vector<program::BufferId> ids;
  for (const Words& words : buffers) ids.push_back(builder.buffer(program::ArenaRole::State, words.size()));
  program::KernelId kernel = builder.kernel(text);
  if (!kernel.valid()) return;
  builder.dispatch(0, kernel, ids, groups);
  auto executable = device()->compile(builder.take()).orThrow();
  ArenaSet state{{"state", device()->allocate(builder.arenaBytes(program::ArenaRole::State)).orThrow()}};
  for (size_t i = 0; i < ids.size(); ++i) must(state["state"]->write(builder.offset(ids[i]), bytes(buffers[i])));
  std::array<std::span<const std::byte>, 1> inputs{};
  Ticket ticket = executable->submit(state, inputs).orThrow();
  must(executable->wait(ticket));
  for (size_t i = 0; i < ids.size(); ++i) {
    must(state["state"]->read(builder.offset(ids[i]), std::as_writable_bytes(std::span(buffers[i]))));
  }
}

Words mapWords(const std::string& type, const std::string& result, const std::string& body, Words a, Words b, Words c) {
  size_t count = a.size();
  std::string text = "lockstep.kernel 1\n";
  if (body.find("f16") != std::string::npos) text += "enable f16\n";
  std::string loads;
  const char* names[] = {"a", "b", "c"};
  for (int i = 0; i < 3; ++i) {
    text += fmt::format("var @{}: array<{}> {{access = read, binding = {}, group = 0, space = storage}}\n", names[i], type, i);
    loads += fmt::format("    %p{0}: ptr<storage, {1}> = access @{0}, %i\n    %{0}: {1} = load %p{0}\n", names[i], type);
  }
  text += fmt::format("var @out: array<{}> {{access = read_write, binding = 3, group = 0, space = storage}}\n", result);
  text += fmt::format(
      "fn @main(%gid: vec3<u32> {{builtin = global_invocation_id}}) {{workgroup_size = [64, 1, 1]}} {{\n"
      "  %i: u32 = extract %gid, 0u\n  %n: u32 = array_length @out\n  %inside: bool = lt %i, %n\n  if %inside {{\n{}{}\n"
      "    %po: ptr<storage, {}, read_write> = access @out, %i\n    store %po, %r\n  }}\n}}\n",
      loads, body, result);
  b.resize(count);
  c.resize(count);
  std::vector<Words> buffers{std::move(a), std::move(b), std::move(c), Words(count, 0xdeadbeefu)};
  runKernel(text, {static_cast<uint32_t>((count + 63) / 64), 1, 1}, buffers);
  return buffers[3];
}

Words words(const std::vector<float>& values) {
  Words made;
  for (float value : values) made.push_back(bits(value));
  return made;
}

Words words(const std::vector<int32_t>& values) {
  Words made;
  for (int32_t value : values) made.push_back(bits(value));
  return made;
}

std::vector<float> floats(const Words& words) {
  std::vector<float> made;
  for (uint32_t word : words) made.push_back(std::bit_cast<float>(word));
  return made;
}

Words toWords(const std::vector<std::byte>& bytes) {
  Words made(bytes.size() / 4);
  std::memcpy(made.data(), bytes.data(), made.size() * 4);
  return made;
}

}  // namespace lockstep::vulkan::testing
