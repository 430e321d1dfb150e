// SPDX-License-Identifier: Apache-2.0
// Each way in which a Vulkan installation can be broken, made with files in a directory.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "frontend/io/file.h"
#include "tests/frontend/io/scratch.h"
#include "tools/devices/bad_drivers.h"

namespace lockstep::tools {
namespace {

class Probe : public ::testing::Test {
 protected:
  Probe() : scratch_("probe") {
    for (const char* name : {"VK_DRIVER_FILES", "VK_ICD_FILENAMES", "VK_LOADER_DRIVERS_SELECT", "VK_LOADER_DRIVERS_DISABLE"})
      ::unsetenv(name);
    paths_.command = LOCKSTEP_TOOL;
    paths_.manifest_directories = {scratch_ / "icd.d"};
    paths_.layer_directories = {scratch_ / "layers"};
    paths_.render_nodes = scratch_ / "dri";
    paths_.nvidia_kernel = scratch_ / "nvidia-version";
    for (const char* folder : {"icd.d", "layers", "dri"}) std::filesystem::create_directories(scratch_ / folder);
    // Any library that is always there stands in for the loader where the test does not come to using it.
    paths_.loader = "libc.so.6";
  }
  void write(const std::string& name, std::string_view text) { ASSERT_TRUE(io::writeFileAtomically(scratch_ / name, text).ok()); }
  Finding find(const std::string& check) {
    const std::vector<Finding> findings = probeVulkan(paths_);
    const auto found = std::ranges::find(findings, check, &Finding::check);
    EXPECT_NE(found, findings.end()) << check;
    return found == findings.end() ? Finding{} : *found;
  }

  testing::ScratchDirectory scratch_;
  ProbePaths paths_;
};

constexpr std::string_view kGoodManifest =
    R"({"file_format_version": "1.0.0", "ICD": {"library_path": "libc.so.6", "api_version": "1.3.0"}})";

TEST_F(Probe, missing_loader_fails_and_what_needs_it_is_skipped) {
  paths_.loader = "libvulkan-that-does-not-exist.so.1";
  EXPECT_EQ(find("vulkan.loader").state, FindingState::Failure);
  EXPECT_NE(find("vulkan.loader").remedy.find("libvulkan1"), std::string::npos);
  EXPECT_EQ(find("vulkan.instance").state, FindingState::Skipped);
  EXPECT_EQ(find("vulkan.devices").state, FindingState::Skipped);
}

TEST_F(Probe, every_failure_has_a_remedy) {
  for (const std::string loader : {"libc.so.6", "libvulkan-that-does-not-exist.so.1"}) {
    paths_.loader = loader;
    for (const Finding& finding : probeVulkan(paths_)) {
      EXPECT_FALSE(finding.message.empty()) << finding.check;
      if (finding.state == FindingState::Failure) {
        EXPECT_FALSE(finding.remedy.empty()) << finding.check;
      }
    }
  }
}

TEST_F(Probe, no_manifest_means_no_driver) {
  const Finding finding = find("vulkan.drivers");
  EXPECT_EQ(finding.state, FindingState::Failure);
  EXPECT_NE(finding.remedy.find("mesa-vulkan-drivers"), std::string::npos);
}

TEST_F(Probe, manifest_in_order_is_ok) {
  write("icd.d/good.json", kGoodManifest);
  EXPECT_EQ(find("vulkan.drivers").state, FindingState::Ok);
}

TEST_F(Probe, broken_manifests_are_named) {
  write("icd.d/bad.json", "nonsense");
  EXPECT_EQ(find("vulkan.drivers").state, FindingState::Failure);
  EXPECT_NE(find("vulkan.drivers").message.find("not JSON"), std::string::npos);
  write("icd.d/bad.json", R"({"ICD": {}})");
  EXPECT_NE(find("vulkan.drivers").message.find("library_path"), std::string::npos);
  write("icd.d/bad.json", R"({"ICD": {"library_path": "./missing.so"}})");
  EXPECT_NE(find("vulkan.drivers").message.find("missing.so"), std::string::npos);
  write("icd.d/good.json", kGoodManifest);
  EXPECT_EQ(find("vulkan.drivers").state, FindingState::Warning);
}

TEST_F(Probe, environment_that_names_a_missing_file_is_named) {
  write("icd.d/good.json", kGoodManifest);
  ::setenv("VK_ICD_FILENAMES", "/no/such/driver.json", 1);
  const Finding finding = find("vulkan.drivers");
  ::unsetenv("VK_ICD_FILENAMES");
  EXPECT_EQ(finding.state, FindingState::Failure);
  EXPECT_NE(finding.message.find("VK_ICD_FILENAMES"), std::string::npos);
}

TEST_F(Probe, nvidia_kernel_driver_without_vulkan_part_is_a_warning) {
  EXPECT_EQ(find("vulkan.nvidia").state, FindingState::Ok);
  write("nvidia-version", "NVRM version");
  EXPECT_EQ(find("vulkan.nvidia").state, FindingState::Warning);
  write("icd.d/nvidia_icd.json", kGoodManifest);
  EXPECT_EQ(find("vulkan.nvidia").state, FindingState::Ok);
}

TEST_F(Probe, node_without_permission_is_a_warning) {
  if (::geteuid() == 0) GTEST_SKIP() << "root may open everything";
  write("dri/renderD128", "");
  std::filesystem::permissions(scratch_ / "dri/renderD128", std::filesystem::perms::none);
  EXPECT_EQ(find("vulkan.nodes").state, FindingState::Warning);
}

TEST_F(Probe, library_that_is_no_loader_is_named) {
  write("icd.d/good.json", kGoodManifest);
  EXPECT_EQ(find("vulkan.instance").state, FindingState::Failure);
  EXPECT_NE(find("vulkan.instance").message.find("vkGetInstanceProcAddr"), std::string::npos);
}

TEST_F(Probe, drivers_are_asked_in_another_process) {
  EXPECT_EQ(askDrivers(paths_, {"instance", "libno-such.so"}).kind, InstanceOutcome::Kind::LoaderMissing);
  EXPECT_EQ(askDrivers(paths_, {"devices"}).kind, InstanceOutcome::Kind::Done);
}

TEST_F(Probe, process_that_says_nothing_is_told_from_one_that_cannot_be_started) {
  paths_.command = "/bin/false";
  EXPECT_TRUE(isHarmful(askDrivers(paths_, {"devices"})));
  paths_.command = "/no/such/command";
  EXPECT_EQ(askDrivers(paths_, {"devices"}).kind, InstanceOutcome::Kind::SystemFailed);
  EXPECT_EQ(loadingProblem(paths_, "libc.so.6"), "");
}

TEST_F(Probe, process_that_does_not_end_is_ended) {
  write("sleep.sh", "#!/bin/sh\nsleep 1000\n");
  std::filesystem::permissions(scratch_ / "sleep.sh", std::filesystem::perms::owner_all);
  paths_.command = (scratch_ / "sleep.sh").string();
  paths_.timeout_seconds = 1;
  EXPECT_EQ(askDrivers(paths_, {"devices"}).kind, InstanceOutcome::Kind::TimedOut);
}

TEST_F(Probe, validation_layer_is_found) {
  EXPECT_FALSE(find("vulkan.layers").remedy.empty());
  write("layers/VkLayer_khronos_validation.json", "{}");
  EXPECT_TRUE(find("vulkan.layers").remedy.empty());
}

}  // namespace
}  // namespace lockstep::tools
