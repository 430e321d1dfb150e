// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "backends/backend.h"
#include "backends/driver_check.h"

namespace lockstep {
namespace {

TEST(Registry, lists_the_reference_and_ranks_by_kind) {
  std::vector<DeviceInfo> devices = listDevices();
  ASSERT_FALSE(devices.empty());
  bool found = false;
  for (size_t k = 0; k < devices.size(); ++k) {
    found = found || devices[k].id == "reference";
    if (k == 0 || !devices[k].usable || !devices[k - 1].usable) continue;
    EXPECT_LE(devices[k - 1].kind, devices[k].kind);
  }
  EXPECT_TRUE(found);
}

TEST(Registry, auto_chooses_the_first_and_says_why) {
  Result<ChosenDevice> chosen = chooseDevice("auto");
  ASSERT_TRUE(chosen.ok()) << toString(chosen.diagnostics());
  EXPECT_EQ(chosen->info.id, listDevices().front().id);
  EXPECT_FALSE(chosen->reason.empty());
}

TEST(Registry, reference_opens) {
  Result<ChosenDevice> chosen = chooseDevice("reference");
  ASSERT_TRUE(chosen.ok());
  Result<std::unique_ptr<Backend>> backend = openDevice(chosen->info);
  ASSERT_TRUE(backend.ok());
  EXPECT_EQ((*backend)->device().id, "reference");
  EXPECT_EQ((*backend)->device().kind, DeviceKind::Reference);
  EXPECT_EQ((*backend)->device().profile.max_workgroup_invocations, 1024u);
}

/// Whether the Vulkan loader is in this process, and with it the drivers.
bool vulkanIsLoaded() {
  void* loader = dlopen("libvulkan.so.1", RTLD_NOLOAD | RTLD_LAZY);
  if (loader != nullptr) dlclose(loader);
  return loader != nullptr;
}

/// In a process of its own, since other tests load it.
TEST(Registry, reference_loads_no_driver) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        const bool before = vulkanIsLoaded();
        const auto backend = openDevice(chooseDevice("reference").orThrow().info);
        std::_Exit(!before && backend.ok() && !vulkanIsLoaded() ? 0 : 1);
      },
      ::testing::ExitedWithCode(0), "");
}

int questions = 0;

TEST(Registry, drivers_are_loaded_only_if_the_check_agrees) {
  checkDriversWith([]() -> Status {
    ++questions;
    return fail("test.refused", "a driver is bad", {}, "do without");
  });
  EXPECT_TRUE(chooseDevice("reference").ok());
  EXPECT_EQ(questions, 0) << "no driver is needed";
  EXPECT_EQ(listDevices().size(), 1u);
  const Result<ChosenDevice> best = chooseDevice("auto");
  ASSERT_TRUE(best.ok());
  const Result<ChosenDevice> vulkan = chooseDevice("vulkan");
  ASSERT_FALSE(vulkan.ok());
  checkDriversWith(nullptr);
#ifdef LOCKSTEP_VULKAN
  EXPECT_EQ(questions, 1) << "the answer holds for the whole process";
  EXPECT_NE(best->reason.find("a driver is bad, do without"), std::string::npos) << best->reason;
  EXPECT_NE(vulkan.diagnostics().front().remedy.find("a driver is bad"), std::string::npos);
#endif
}

TEST(Registry, threads_of_the_reference_are_a_number) {
  const DeviceInfo reference = chooseDevice("reference").orThrow().info;
  for (const char* bad : {"0", "none", "-1", "1025", "2 "}) {
    ASSERT_EQ(setenv("LOCKSTEP_REFERENCE_THREADS", bad, 1), 0);
    const auto opened = openDevice(reference);
    ASSERT_FALSE(opened.ok()) << bad;
    EXPECT_EQ(opened.diagnostics().front().code, "device.threads");
    EXPECT_EQ(opened.diagnostics().front().where.file, "LOCKSTEP_REFERENCE_THREADS");
  }
  for (const char* good : {"1", "3", ""}) {
    ASSERT_EQ(setenv("LOCKSTEP_REFERENCE_THREADS", good, 1), 0);
    EXPECT_TRUE(openDevice(reference).ok()) << good;
  }
  unsetenv("LOCKSTEP_REFERENCE_THREADS");
}

TEST(Registry, unknown_selectors_list_what_there_is) {
  for (const char* selector : {"cuda", "vulkan:no such device", "vulkan:77", "vulkan:"}) {
    Result<ChosenDevice> chosen = chooseDevice(selector);
    ASSERT_FALSE(chosen.ok()) << selector;
    EXPECT_EQ(chosen.failure().exit_code, ExitCode::NoDevice);
    EXPECT_NE(chosen.diagnostics()[0].remedy.find("reference"), std::string::npos);
    EXPECT_NE(chosen.diagnostics()[0].message.find(selector), std::string::npos);
  }
  DeviceInfo unknown;
  unknown.id = "cuda:0";
  EXPECT_FALSE(openDevice(unknown).ok());
}

TEST(Registry, kinds_have_names) {
  EXPECT_EQ(toString(DeviceKind::Discrete), "discrete GPU");
  EXPECT_EQ(toString(DeviceKind::Reference), "reference");
}

}  // namespace
}  // namespace lockstep
