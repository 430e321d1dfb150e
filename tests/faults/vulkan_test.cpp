// SPDX-License-Identifier: Apache-2.0
// Every function of Vulkan that is called fails, with each result that the specification knows for it, at its first, second and last call.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <random>
#include <set>
#include <sstream>

#include "frontend/io/file.h"
#include "tests/faults/faulty_process.h"
#include "tests/faults/real_loader.h"
#include "tests/faults/training_folder.h"
#include "tests/frontend/io/scratch.h"

namespace lockstep::testing {
namespace {

namespace fs = std::filesystem;

constexpr int kNotReady = 1, kTimeout = 2, kIncomplete = 5, kNoHostMemory = -1, kNoDeviceMemory = -2, kInitializationFailed = -3,
              kDeviceLost = -4, kMapFailed = -5, kNoLayer = -6, kNoExtension = -7, kNoFeature = -8, kIncompatible = -9, kTooMany = -10,
              kFragmentedPool = -12, kUnknown = -13, kNoPoolMemory = -1000069000;

struct Row {
  const char* call;
  std::vector<int> results;
};
const std::vector<Row>& rows() {
  static const std::vector<int> memory = {kNoHostMemory, kNoDeviceMemory, kUnknown};
  static const auto with = [](std::initializer_list<int> more) {
    std::vector<int> all = memory;
    all.insert(all.end(), more);
    return all;
  };
  static const std::vector<Row> all = {
      {"vkCreateInstance", with({kInitializationFailed, kNoLayer, kNoExtension, kIncompatible})},
      {"vkEnumerateInstanceExtensionProperties", with({kIncomplete, kNoLayer})},
      {"vkEnumerateInstanceVersion", {kNoHostMemory}},
      {"vkEnumeratePhysicalDevices", with({kIncomplete, kInitializationFailed})},
      {"vkEnumerateDeviceExtensionProperties", with({kIncomplete, kNoLayer})},
      {"vkCreateDevice", with({kInitializationFailed, kNoExtension, kNoFeature, kTooMany, kDeviceLost})},
      {"vkCreateCommandPool", memory},
      {"vkAllocateCommandBuffers", memory},
      {"vkBeginCommandBuffer", memory},
      {"vkEndCommandBuffer", memory},
      {"vkCreatePipelineCache", memory},
      {"vkGetPipelineCacheData", with({kIncomplete})},
      {"vkCreateBuffer", memory},
      {"vkAllocateMemory", with({kTooMany})},
      {"vkBindBufferMemory", memory},
      {"vkMapMemory", with({kMapFailed})},
      {"vkCreateFence", memory},
      {"vkResetFences", memory},
      {"vkGetFenceStatus", with({kDeviceLost})},
      {"vkWaitForFences", with({kTimeout, kDeviceLost})},
      {"vkQueueSubmit", with({kDeviceLost})},
      {"vkQueueWaitIdle", with({kDeviceLost})},
      {"vkDeviceWaitIdle", with({kDeviceLost})},
      {"vkCreateShaderModule", memory},
      {"vkCreateDescriptorSetLayout", memory},
      {"vkCreatePipelineLayout", memory},
      {"vkCreateComputePipelines", memory},
      {"vkCreateDescriptorPool", memory},
      {"vkAllocateDescriptorSets", with({kFragmentedPool, kNoPoolMemory})},
      {"vkCreateQueryPool", memory},
      {"vkGetQueryPoolResults", with({kNotReady, kDeviceLost})},
  };
  return all;
}

constexpr std::string_view kKernel =
    "@group(0) @binding(0) var<storage, read_write> x: array<f32>;\n"
    "@compute @workgroup_size(4) fn main(@builtin(global_invocation_id) id: vec3<u32>) { x[id.x] = x[id.x] * 2.0 + 1.0; }\n";

struct Case {
  const char* name;
  std::vector<std::string> arguments;
  bool trains = false, resumes = false;
  bool goes_on = false;      ///< after the fault, without one, from what was saved
  bool peaks_known = false;  ///< of the device; to measure them takes seconds
  size_t sample = 0;         ///< how many of the faults CI takes
};

std::vector<Case> cases() {
  const std::string golden = LOCKSTEP_SOURCE_DIR "/tests/tools/verify/data/train_mlp_sin_sgd.safetensors";
  return {
      {.name = "run",
       .arguments = {"run", "k.wgsl", "--device", "vulkan", "--bind", "0.0=iota:f32[4]", "--out", "0.0=out.npy"},
       .sample = 45},
      {.name = "train", .arguments = {"train", "sine", "--steps", "2", "--device", "vulkan", "--out", "run"}, .trains = true, .sample = 60},
      {.name = "resume",
       .arguments = {"train", "sine", "--steps", "2", "--device", "vulkan", "--out", "run", "--resume"},
       .trains = true,
       .resumes = true,
       .sample = 35},
      {.name = "rescue",
       .arguments = {"train", "sine", "--steps", "90", "--device", "vulkan", "--out", "run"},
       .trains = true,
       .goes_on = true,
       .sample = 25},
      {.name = "verify", .arguments = {"verify", "golden", golden, "--device", "vulkan"}, .sample = 25},
      {.name = "profile", .arguments = {"profile", "sine", "--steps", "2", "--device", "vulkan"}, .peaks_known = true, .sample = 25},
      {.name = "measure", .arguments = {"profile", "sine", "--steps", "2", "--device", "vulkan"}, .sample = 5}};
}

class VulkanCalls : public ::testing::TestWithParam<Case> {
 protected:
  VulkanCalls() : scratch_(fmt::format("fault-vulkan-{}", GetParam().name)) {}

  Ended run(const std::string& wish) const {
    for (const char* name : {"report", "out.npy"}) fs::remove_all(scratch_ / name);
    for (const fs::path& file : io::entriesOf(scratch_ / "cache")) {
      if (!GetParam().peaks_known || file.filename().string().starts_with("vulkan-")) fs::remove_all(file);
    }
    if (GetParam().trains) fs::remove_all(scratch_ / "run");
    if (GetParam().resumes) fs::copy(scratch_ / "before", scratch_ / "run", fs::copy_options::recursive);
    Launch launch{.arguments = GetParam().arguments,
                  .folder = scratch_ / "",
                  .environment = {{"LD_LIBRARY_PATH", LOCKSTEP_FAIL_VULKAN},
                                  {"LOCKSTEP_FAULT_LOADER", loader_},
                                  {"LOCKSTEP_FAULT_REPORT", (scratch_ / "report").string()}}};
    if (!wish.empty()) launch.environment["LOCKSTEP_FAULT_CALL"] = wish;
    return runFaulty(launch);
  }
  Ended runWell(const std::vector<std::string>& arguments) const { return runFaulty({.arguments = arguments, .folder = scratch_ / ""}); }

  /// How often each function was called in the last run.
  [[nodiscard]] std::map<std::string, uint64_t> counts() const {
    std::istringstream report(*io::readTextFile(scratch_ / "report"));
    std::map<std::string, uint64_t> made;
    std::string name;
    for (uint64_t count = 0; report >> name >> count;) made[name] = count;
    return made;
  }

  /// Every fault: "vkQueueSubmit:2:-4".
  [[nodiscard]] static std::vector<std::string> faults(const std::map<std::string, uint64_t>& counts) {
    std::vector<std::string> all;
    for (const Row& row : rows()) {
      const auto found = counts.find(row.call);
      const uint64_t count = found == counts.end() ? 0 : found->second;
      std::set<uint64_t> numbers{std::min<uint64_t>(1, count), std::min<uint64_t>(2, count), count};
      for (uint64_t part = 1; GetParam().goes_on && part < 8; ++part) numbers.insert(count * part / 8);
      for (const uint64_t number : numbers) {
        if (number == 0) continue;
        for (const int result : row.results) {
          all.push_back(fmt::format("{}:{}:{}", row.call, number, result));
          // A device that is lost stays lost; a submission may have begun.
          if (result == kDeviceLost) all.push_back(fmt::format("{}:{}+:{}", row.call, number, result));
          if (std::string_view(row.call) == "vkQueueSubmit") all.push_back(fmt::format("{}:{}:{}:begun", row.call, number, result));
        }
      }
    }
    return all;
  }

  std::string problemOf(const Ended& ended, const WholeRun& whole) const {
    if (ended.code != 0 && ended.code != 3 && ended.code != 6 && ended.code != 7) return ended.how();
    if (ended.code != 0 && ended.err.find("error: ") == std::string::npos) return "says nothing";
    const fs::path out = scratch_ / "out.npy";
    if (fs::exists(out) && *io::readTextFile(out) != expected_out_) return "the output is not what it should be";
    if (ended.code == 0 && !expected_out_.empty() && !fs::exists(out)) return "succeeds without its output";
    if (!GetParam().trains) return {};
    if (ended.code == 0) {
      if (std::string other = differenceOf(scratch_ / "run", whole); !other.empty()) return other;
    }
    if (std::string damage = damageOf(scratch_ / "run", whole, {.reached = GetParam().resumes ? 1u : 0u}); !damage.empty()) return damage;
    if (!GetParam().goes_on || ended.code == 0 || savedStep(scratch_ / "run") == 0) return {};
    std::vector<std::string> again = GetParam().arguments;
    again.emplace_back("--resume");
    if (const Ended resumed = runWell(again); resumed.code != 0) return "cannot be resumed: " + resumed.err;
    return differenceOf(scratch_ / "run", whole);
  }

  ScratchDirectory scratch_;
  std::string loader_ = realLoader(), expected_out_;
};

TEST_P(VulkanCalls, each_that_fails_ends_cleanly) {
  ASSERT_TRUE(io::writeFileAtomically(scratch_ / "k.wgsl", kKernel).ok());
  if (loader_.empty()) GTEST_SKIP() << "there is no Vulkan loader";
  WholeRun whole;
  std::vector<std::string> arguments = GetParam().arguments;
  if (GetParam().resumes) arguments.pop_back();
  const Ended undisturbed = runWell(arguments);
  if (undisturbed.code == 3) GTEST_SKIP() << undisturbed.err;
  ASSERT_EQ(undisturbed.code, 0) << undisturbed.err;
  if (fs::exists(scratch_ / "out.npy")) expected_out_ = *io::readTextFile(scratch_ / "out.npy");
  if (GetParam().trains) {
    whole = readWholeRun(scratch_ / "run");
    fs::remove_all(scratch_ / "run");
    arguments[3] = "1";
    ASSERT_EQ(runWell(arguments).code, 0);
    fs::rename(scratch_ / "run", scratch_ / "before");
  }
  ASSERT_EQ(run("").code, 0) << "the stand-in for the loader passes everything on";
  const std::map<std::string, uint64_t> called = counts();
  std::vector<std::string> chosen = faults(called);
  const size_t all = chosen.size();
  if (std::getenv("LOCKSTEP_NIGHTLY") == nullptr && chosen.size() > GetParam().sample) {
    std::ranges::shuffle(chosen, std::mt19937(1));
    chosen.resize(GetParam().sample);
  }
  std::map<std::string, size_t> table;
  for (const std::string& wish : chosen) {
    const Ended ended = run(wish);
    ++table[ended.how()];
    EXPECT_EQ(problemOf(ended, whole), "") << GetParam().name << ", LOCKSTEP_FAULT_CALL=" << wish << ", " << ended.how() << "\n"
                                           << ended.err;
  }
  const auto functions = std::ranges::count_if(called, [](const auto& each) { return each.second != 0; });
  std::string line = fmt::format("{:<8} {} functions, {} faults, {} tried:", GetParam().name, functions, all, chosen.size());
  for (const auto& [how, count] : table) line += fmt::format("  {} x {}", count, how);
  fmt::print("{}\n", line);
}

INSTANTIATE_TEST_SUITE_P(Of, VulkanCalls, ::testing::ValuesIn(cases()), [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace lockstep::testing
