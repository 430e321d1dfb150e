// SPDX-License-Identifier: Apache-2.0
// Drivers that crash or hang, and devices that do not answer.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <cstdlib>
#include <thread>

#include "frontend/io/file.h"
#include "tests/faults/faulty_process.h"
#include "tests/faults/real_loader.h"
#include "tests/frontend/io/scratch.h"

namespace lockstep::testing {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kKernel =
    "@group(0) @binding(0) var<storage, read_write> x: array<f32>;\n"
    "@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3<u32>) {\n"
    "  var sum = x[id.x % 64];\n"
    "  for (var i = 0u; i < 60000u; i++) { sum = sum * 0.5 + f32(i); }\n"
    "  x[id.x % 64] = sum;\n}\n";

/// Twice so long is waited for a driver that hangs; the others answer in a fraction of a second.
const std::map<std::string, std::string> kHangs = {{"LOCKSTEP_FAULT_DRIVER", "hang"}, {"LOCKSTEP_DRIVER_TIMEOUT", "5"}};

class Driver : public ::testing::Test {
 protected:
  Driver() {
    EXPECT_TRUE(io::writeFileAtomically(scratch_ / "slow.wgsl", kKernel).ok());
    EXPECT_TRUE(io::writeFileAtomically(scratch_ / "bad.json", fmt::format(R"({{"file_format_version": "1.0.0",
      "ICD": {{"library_path": "{}", "api_version": "1.3.0"}}}})",
                                                                           LOCKSTEP_BAD_DRIVER))
                    .ok());
  }
  [[nodiscard]] Ended run(std::vector<std::string> arguments, std::map<std::string, std::string> environment) const {
    return runFaulty({.arguments = std::move(arguments), .folder = scratch_ / "", .environment = std::move(environment)});
  }
  [[nodiscard]] Ended runWithDrivers(std::vector<std::string> arguments, const std::string& drivers,
                                     std::map<std::string, std::string> environment = {}) const {
    for (const char* variable : {"VK_DRIVER_FILES", "VK_ICD_FILENAMES"}) environment[variable] = drivers;
    return run(std::move(arguments), std::move(environment));
  }
  /// The CPU driver of the system; empty when there is none.
  static std::string goodDriver() {
    for (const char* folder : {"/usr/share/vulkan/icd.d", "/etc/vulkan/icd.d", "/usr/local/share/vulkan/icd.d"}) {
      std::error_code none;
      for (const auto& entry : fs::directory_iterator(folder, none)) {
        if (entry.path().filename().string().starts_with("lvp_icd")) return entry.path().string();
      }
    }
    return {};
  }
  ScratchDirectory scratch_{"fault-driver"};
};

TEST_F(Driver, that_crashes_is_named_and_left_out_by_the_doctor) {
  const std::string good = goodDriver(), bad = (scratch_ / "bad.json").string();
  if (good.empty()) GTEST_SKIP() << "there is no CPU driver beside it";
  const Ended both = runWithDrivers({"doctor"}, bad + ":" + good);
  EXPECT_EQ(both.code, 3) << both.err;
  EXPECT_NE(both.out.find("a driver crashed with signal 11 while it was being loaded: bad.json"), std::string::npos) << both.out;
  EXPECT_NE(both.out.find("export VK_DRIVER_FILES=" + good), std::string::npos) << both.out;
  EXPECT_NE(both.out.find("vulkan:0"), std::string::npos) << "the devices of the others are listed\n" << both.out;
  const Ended alone = runWithDrivers({"doctor"}, bad);
  EXPECT_EQ(alone.code, 3) << alone.err;
  EXPECT_NE(alone.out.find("bad.json"), std::string::npos) << alone.out;
}

TEST_F(Driver, that_hangs_is_named_by_the_doctor) {
  const std::string good = goodDriver(), bad = (scratch_ / "bad.json").string();
  if (good.empty()) GTEST_SKIP() << "there is no CPU driver beside it";
  const Ended both = runWithDrivers({"doctor"}, bad + ":" + good, kHangs);
  EXPECT_EQ(both.code, 3) << both.how();
  EXPECT_NE(both.out.find("did not answer in time while it was being loaded: bad.json"), std::string::npos) << both.out;
  EXPECT_NE(both.out.find("vulkan:0"), std::string::npos) << both.out;
}

TEST_F(Driver, that_does_harm_would_take_the_command_with_it) {
  const std::string bad = (scratch_ / "bad.json").string();
  EXPECT_EQ(runWithDrivers({"devices"}, bad, {{"LOCKSTEP_DRIVER_TIMEOUT", "0"}}).signal, SIGSEGV) << "it is not tried first";
  const Ended wrong = runWithDrivers({"devices"}, bad, {{"LOCKSTEP_DRIVER_TIMEOUT", "soon"}});
  EXPECT_EQ(wrong.code, 4) << wrong.how();
  EXPECT_NE(wrong.err.find("vulkan.driver_timeout"), std::string::npos) << wrong.err;
}

TEST_F(Driver, that_crashes_is_left_out_by_every_verb) {
  const std::string good = goodDriver(), bad = (scratch_ / "bad.json").string();
  if (good.empty()) GTEST_SKIP() << "there is no CPU driver beside it";
  const std::string golden = LOCKSTEP_SOURCE_DIR "/tests/tools/verify/data/train_mlp_sin_sgd.safetensors";
  for (const std::vector<std::string>& arguments :
       std::vector<std::vector<std::string>>{{"devices"},
                                             {"devices", "--json"},
                                             {"train", "sine", "--steps", "2", "--no-out"},
                                             {"run", "slow.wgsl", "--bind", "0.0=zeros:256", "--device", "vulkan"},
                                             {"verify", "golden", golden},
                                             {"profile", "sine", "--steps", "2", "--device", "vulkan:0"},
                                             {"check", "slow.wgsl", "--limits", "auto"},
                                             {"explore", "sine"}}) {
    const Ended ended = runWithDrivers(arguments, bad + ":" + good);
    EXPECT_EQ(ended.code, 0) << arguments.front() << ": " << ended.how() << ended.err;
    EXPECT_NE(
        ended.err.find(fmt::format("warning: vulkan.bad_driver: the driver of '{}' crashed with signal 11 while it was being loaded; it "
                                   "is left out\n  help: update or remove it; until then export VK_DRIVER_FILES={}; --device reference",
                                   bad, good)),
        std::string::npos)
        << arguments.front() << ended.err;
    if (arguments.front() == "devices") {
      EXPECT_NE(ended.out.find("vulkan:0"), std::string::npos) << ended.out;
    }
    if (arguments.front() == "train") {
      EXPECT_NE(ended.out.find("device vulkan:0"), std::string::npos) << ended.out;
    }
  }
}

TEST_F(Driver, that_is_the_only_one_leaves_the_reference) {
  for (const auto& [way, harm] :
       {std::pair{"", "crashed with signal 11"}, std::pair{"exit", "ended the process"}, std::pair{"hang", "did not answer in time"}}) {
    const std::string bad = (scratch_ / "bad.json").string();
    const std::map<std::string, std::string> environment = {{"LOCKSTEP_FAULT_DRIVER", way}, {"LOCKSTEP_DRIVER_TIMEOUT", "5"}};
    const std::string what = fmt::format("the driver of '{}' {} while it was being loaded", bad, harm);
    const Ended trained = runWithDrivers({"train", "sine", "--steps", "2", "--no-out", "--device", "auto"}, bad, environment);
    EXPECT_EQ(trained.code, 0) << trained.how() << trained.err;
    EXPECT_NE(trained.err.find("warning: vulkan.bad_driver: " + what), std::string::npos) << trained.err;
    EXPECT_NE(trained.out.find("device reference"), std::string::npos) << trained.out;
    EXPECT_NE(trained.out.find(what), std::string::npos) << "the reason of the choice\n" << trained.out;
    if (std::string_view(way) == "hang") continue;  // each verb waits
    const Ended asked = runWithDrivers({"run", "slow.wgsl", "--bind", "0.0=zeros:256", "--device", "vulkan"}, bad, environment);
    EXPECT_EQ(asked.code, 3) << asked.how();
    EXPECT_NE(asked.err.find("error: device.none"), std::string::npos) << asked.err;
    EXPECT_NE(asked.err.find(what), std::string::npos) << asked.err;
    const Ended listed = runWithDrivers({"devices"}, bad, environment);
    EXPECT_EQ(listed.code, 0) << listed.how();
    EXPECT_NE(listed.out.find("auto takes reference"), std::string::npos) << listed.out;
  }
}

TEST_F(Driver, that_hangs_is_left_out) {
  const std::string good = goodDriver(), bad = (scratch_ / "bad.json").string();
  if (good.empty()) GTEST_SKIP() << "there is no CPU driver beside it";
  const Ended listed = runWithDrivers({"devices"}, bad + ":" + good, kHangs);
  EXPECT_EQ(listed.code, 0) << listed.how() << listed.err;
  EXPECT_NE(listed.out.find("vulkan:0"), std::string::npos) << listed.out;
  EXPECT_NE(listed.err.find(fmt::format("the driver of '{}' did not answer in time", bad)), std::string::npos) << listed.err;
  EXPECT_NE(listed.err.find("more seconds with LOCKSTEP_DRIVER_TIMEOUT"), std::string::npos) << listed.err;
}

/// Whether a process does anything.
bool isAlive(const std::string& process) {
  const auto state = io::readTextFile(fmt::format("/proc/{}/stat", process));
  return state.ok() && state->find(") Z ") == std::string::npos;
}

TEST_F(Driver, that_hangs_ends_with_the_command) {
  const std::string bad = (scratch_ / "bad.json").string();
  std::map<std::string, std::string> environment = kHangs;
  for (const char* variable : {"VK_DRIVER_FILES", "VK_ICD_FILENAMES"}) environment[variable] = bad;
  environment["LOCKSTEP_DRIVER_TIMEOUT"] = "1000";
  environment["LOCKSTEP_FAULT_REPORT"] = (scratch_ / "report").string();
  FaultyProcess command({.arguments = {"devices"}, .folder = scratch_ / "", .environment = environment});
  std::string child;
  for (int i = 0; i < 6000 && !child.ends_with('\n'); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    if (fs::exists(scratch_ / "report")) child = *io::readTextFile(scratch_ / "report");
  }
  ASSERT_TRUE(child.ends_with('\n')) << "the driver was never loaded";
  child.pop_back();
  EXPECT_TRUE(isAlive(child));
  command.signal(SIGKILL);
  EXPECT_EQ(command.wait().signal, SIGKILL);
  for (int i = 0; i < 6000 && isAlive(child); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_FALSE(isAlive(child));
}

/// Later than when it is loaded, but still before a device is chosen.
TEST_F(Driver, that_crashes_when_it_lists_its_devices_is_left_out) {
  const std::string loader = realLoader();
  if (loader.empty() || run({"run", "slow.wgsl", "--device", "vulkan", "--bind", "0.0=zeros:256"}, {}).code == 3) {
    GTEST_SKIP() << "there is no Vulkan device";
  }
  for (const char* call :
       {"vkCreateInstance:1:crash", "vkEnumeratePhysicalDevices:2:crash", "vkEnumerateDeviceExtensionProperties:1:crash"}) {
    const Ended ended = run({"run", "slow.wgsl", "--bind", "0.0=zeros:256"},
                            {{"LD_LIBRARY_PATH", LOCKSTEP_FAIL_VULKAN}, {"LOCKSTEP_FAULT_LOADER", loader}, {"LOCKSTEP_FAULT_CALL", call}});
    EXPECT_EQ(ended.code, 0) << call << ended.how() << ended.err;
    EXPECT_NE(ended.err.find("vulkan.bad_driver"), std::string::npos) << call << ended.err;
  }
}

TEST_F(Driver, that_crashes_is_nothing_to_the_reference) {
  const std::string bad = (scratch_ / "bad.json").string();
  EXPECT_EQ(runWithDrivers({"train", "sine", "--steps", "2", "--no-out", "--device", "reference"}, bad).code, 0);
  EXPECT_EQ(runWithDrivers({"run", "slow.wgsl", "--bind", "0.0=zeros:256", "--device", "reference"}, bad).code, 0);
  const std::string golden = LOCKSTEP_SOURCE_DIR "/tests/tools/verify/data/train_mlp_sin_sgd.safetensors";
  for (const std::vector<std::string>& arguments :
       std::vector<std::vector<std::string>>{{"verify", "golden", golden, "--device", "reference"},
                                             {"verify", "golden", golden, "--device", "evaluate"},
                                             {"explore", "sine", "--device", "reference"},
                                             {"check", "slow.wgsl"},
                                             {"reflect", "slow.wgsl"},
                                             {"compile", "slow.wgsl", "-o", "slow.spv"}}) {
    EXPECT_EQ(runWithDrivers(arguments, bad).code, 0) << arguments.front();
  }
}

TEST_F(Driver, whose_device_does_not_answer_ends_the_run_in_time) {
  const std::string loader = realLoader();
  const std::vector<std::string> arguments = {"run", "slow.wgsl", "--device", "vulkan", "--bind", "0.0=zeros:256"};
  if (loader.empty() || run(arguments, {}).code == 3) GTEST_SKIP() << "there is no Vulkan device";
  const std::map<std::string, std::string> faulty = {{"LD_LIBRARY_PATH", LOCKSTEP_FAIL_VULKAN},
                                                     {"LOCKSTEP_FAULT_LOADER", loader},
                                                     {"LOCKSTEP_FAULT_CALL", "vkWaitForFences:1:2"},
                                                     {"LOCKSTEP_DEVICE_TIMEOUT", "3"}};
  const Ended told = run(arguments, faulty);
  EXPECT_EQ(told.code, 7) << told.err;
  EXPECT_NE(told.err.find("device.timeout"), std::string::npos) << told.err;

  // 2^31 invocations of 60 000 rounds each take hours on any CPU driver; a GPU may come to an end.
  std::vector<std::string> slow = arguments;
  slow.insert(slow.end(), {"--dispatch", "65535,512,1"});
  const Ended ended = run(slow, {{"LOCKSTEP_DEVICE_TIMEOUT", "1"}});
  EXPECT_TRUE(ended.code == 7 || ended.code == 0) << ended.how() << ended.err;
  if (ended.code == 7) {
    EXPECT_TRUE(ended.err.find("device.timeout") != std::string::npos || ended.err.find("DEVICE_LOST") != std::string::npos) << ended.err;
  }
  EXPECT_EQ(run(arguments, {{"LOCKSTEP_DEVICE_TIMEOUT", "60"}}).code, 0);
  EXPECT_NE(run(arguments, {{"LOCKSTEP_DEVICE_TIMEOUT", "soon"}}).err.find("device.timeout"), std::string::npos);
}

}  // namespace
}  // namespace lockstep::testing
