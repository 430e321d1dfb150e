// SPDX-License-Identifier: Apache-2.0
// What a machine without a working Vulkan sees, and the pipeline cache file.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "backends/vulkan/context.h"
#include "backends/vulkan/limits.h"
#include "backends/vulkan/pipeline_cache.h"
#include "backends/vulkan/vulkan.h"
#include "tests/backends/vulkan/variable.h"

namespace lockstep {
namespace {

TEST(Devices, a_missing_subgroup_operation_is_named) {
  const auto messageOf = [](const std::string& type, const std::string& operation, const vulkan::DeviceFacts& facts) {
    const std::string text =
        "lockstep.kernel 1\nenable f16\nenable subgroups\nfn @main(%lane: u32 {builtin = subgroup_invocation_id}) "
        "{workgroup_size = [1, 1, 1]} {\n  %x: " +
        type + " = convert %lane\n  %y: " + type + " = " + operation + "\n}\n";
    const Status status = vulkan::checkSubgroups("k", kernel::parse(text).orThrow(), facts);
    return status.ok() ? std::string() : status.diagnostics()[0].code + ": " + status.diagnostics()[0].message;
  };
  vulkan::DeviceFacts facts{.spirv = {}, .extensions = {}, .info = {}};
  facts.info.name = "box";
  EXPECT_EQ(messageOf("u32", "subgroup_add %x", facts),
            "vulkan.feature: kernel \"k\" uses builtin subgroup_invocation_id, but box lacks the basic operations of subgroups");
  facts.subgroup_operations = VK_SUBGROUP_FEATURE_BASIC_BIT | VK_SUBGROUP_FEATURE_ARITHMETIC_BIT;
  EXPECT_EQ(messageOf("u32", "subgroup_add %x", facts), "");
  EXPECT_EQ(messageOf("u32", "subgroup_shuffle_up %x, 1u", facts),
            "vulkan.feature: kernel \"k\" uses subgroup_shuffle_up, but box lacks the shuffle_relative operations of subgroups");
  EXPECT_EQ(messageOf("u32", "quad_swap_x %x", facts),
            "vulkan.feature: kernel \"k\" uses quad_swap_x, but box lacks the quad operations of subgroups");
  EXPECT_EQ(messageOf("f16", "subgroup_add %x", facts),
            "vulkan.feature: kernel \"k\" uses subgroup_add, but box lacks the f16 operations of subgroups");
  facts.subgroup_f16 = true;
  EXPECT_EQ(messageOf("f16", "subgroup_add %x", facts), "");
}

TEST(Devices, missing_driver_gives_no_devices) {
  Variable newer("VK_DRIVER_FILES", "/nonexistent/driver.json"), older("VK_ICD_FILENAMES", "/nonexistent/driver.json");
  Result<std::vector<DeviceInfo>> devices = listVulkanDevices();
  EXPECT_TRUE(!devices || devices->empty());
  DeviceInfo gone{.id = "vulkan:0", .name = "gone", .driver = {}, .profile = {}, .why_not = {}};
  EXPECT_FALSE(openVulkanDevice(gone).ok());
  EXPECT_EQ(openVulkanDevice(gone).failure().exit_code, ExitCode::NoDevice);
}

TEST(Devices, unknown_device_is_refused) {
  DeviceInfo gone{.id = "vulkan:0", .name = "no such device", .driver = {}, .profile = {}, .why_not = {}};
  auto backend = openVulkanDevice(gone);
  ASSERT_FALSE(backend.ok());
  EXPECT_EQ(backend.failure().exit_code, ExitCode::NoDevice);
}

TEST(Validation, errors_of_the_layer_become_failures) {
  if (!vulkan::loadVulkan() || !vulkan::hasValidationLayer()) GTEST_SKIP() << "the validation layer is not installed";
  Variable wanted("LOCKSTEP_VALIDATION", "1"), no_cache("LOCKSTEP_CACHE_DIR", "");
  auto instance = vulkan::Instance::acquire().orThrow();
  std::vector<vulkan::DeviceFacts> devices = vulkan::findDevices(*instance).orThrow();
  ASSERT_FALSE(devices.empty());
  auto context = vulkan::Context::open(instance, devices[0]).orThrow();
  EXPECT_TRUE(context->validationStatus().ok());
  auto info = vulkan::blank<VkBufferCreateInfo>(VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO);  // no size, no usage: not allowed
  uint64_t count = 0;
  {
    auto buffer = vulkan::Buffer::create(context->functions(), count, info, "vkCreateBuffer");
  }
  EXPECT_EQ(count, 1u);
  Status status = context->validationStatus();
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.diagnostics()[0].code, "vulkan.validation");
  EXPECT_TRUE(context->validationStatus().ok());
}

TEST(Results, lost_devices_and_full_memory_have_their_exit_codes) {
  EXPECT_TRUE(vulkan::check(VK_SUCCESS, "vkQueueSubmit").ok());
  Status lost = vulkan::check(VK_ERROR_DEVICE_LOST, "vkQueueSubmit", "step 3");
  EXPECT_EQ(lost.failure().exit_code, ExitCode::DeviceLost);
  EXPECT_EQ(lost.diagnostics()[0].code, "vulkan.vkQueueSubmit");
  EXPECT_EQ(lost.diagnostics()[0].message, "vkQueueSubmit answers VK_ERROR_DEVICE_LOST for step 3");
  EXPECT_EQ(vulkan::check(VK_ERROR_OUT_OF_DEVICE_MEMORY, "vkAllocateMemory").failure().exit_code, ExitCode::OutOfMemory);
}

std::vector<std::byte> someBytes(size_t count) {
  std::vector<std::byte> bytes(count);
  for (size_t i = 0; i < count; ++i) bytes[i] = static_cast<std::byte>(i * 7);
  return bytes;
}

TEST(PipelineCache, file_round_trips_and_damage_is_noticed) {
  std::filesystem::path folder = std::filesystem::path(::testing::TempDir()) / "lockstep_cache_test";
  std::filesystem::remove_all(folder);
  std::filesystem::path file = folder / "sub" / "a.cache";
  EXPECT_TRUE(vulkan::readPipelineCache(file).empty());
  ASSERT_TRUE(vulkan::writePipelineCache(file, someBytes(1000)));
  EXPECT_EQ(vulkan::readPipelineCache(file), someBytes(1000));
  ASSERT_TRUE(vulkan::writePipelineCache(file, someBytes(500)));
  EXPECT_EQ(vulkan::readPipelineCache(file), someBytes(500));
  size_t files = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(file.parent_path())) ++files;
  EXPECT_EQ(files, 1u);
  {
    std::fstream stream(file, std::ios::binary | std::ios::in | std::ios::out);
    stream.seekp(200);
    stream.put('x');
  }
  EXPECT_TRUE(vulkan::readPipelineCache(file).empty());
  std::filesystem::resize_file(file, 10);
  EXPECT_TRUE(vulkan::readPipelineCache(file).empty());
  std::filesystem::remove_all(folder);
}

/// A folder for one test, with a good cache file in it.
class PipelineCacheFile : public ::testing::Test {
 protected:
  PipelineCacheFile() : folder_(std::filesystem::path(::testing::TempDir()) / fmt::format("lockstep_cache_{}", getpid())) {
    std::filesystem::remove_all(folder_);
    EXPECT_TRUE(vulkan::writePipelineCache(file(), someBytes(1000)));
  }
  ~PipelineCacheFile() override { std::filesystem::remove_all(folder_); }
  [[nodiscard]] std::filesystem::path file() const { return folder_ / "a.cache"; }
  std::filesystem::path folder_;
};

TEST_F(PipelineCacheFile, is_for_its_user_alone) {
  EXPECT_EQ(std::filesystem::status(folder_).permissions(), std::filesystem::perms::owner_all);
  EXPECT_EQ(std::filesystem::status(file()).permissions(), std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  // One that somebody else could have written is not believed.
  std::filesystem::permissions(file(), std::filesystem::perms::others_write, std::filesystem::perm_options::add);
  EXPECT_TRUE(vulkan::readPipelineCache(file()).empty());
  ASSERT_TRUE(vulkan::writePipelineCache(file(), someBytes(10)));
  EXPECT_EQ(vulkan::readPipelineCache(file()), someBytes(10));
  if (geteuid() != 0) return;
  ASSERT_EQ(chown(file().c_str(), 65534, 65534), 0);
  EXPECT_TRUE(vulkan::readPipelineCache(file()).empty());
}

TEST_F(PipelineCacheFile, is_no_link) {
  const std::filesystem::path other = folder_ / "precious";
  std::filesystem::rename(file(), other);
  std::filesystem::create_symlink("precious", file());
  EXPECT_TRUE(vulkan::readPipelineCache(file()).empty());
  ASSERT_TRUE(vulkan::writePipelineCache(file(), someBytes(5)));
  EXPECT_FALSE(std::filesystem::is_symlink(file()));
  EXPECT_EQ(vulkan::readPipelineCache(other), someBytes(1000));
  std::filesystem::remove(file());
  std::filesystem::create_hard_link(other, file());
  EXPECT_TRUE(vulkan::readPipelineCache(file()).empty());
  // Nor is the temporary file: its name cannot be foreseen, and what is there is never opened.
  std::filesystem::remove(file());
  std::filesystem::create_symlink("precious", folder_ / fmt::format("a.cache.{}", getpid()));
  ASSERT_TRUE(vulkan::writePipelineCache(file(), someBytes(5)));
  std::filesystem::remove(file());
  EXPECT_EQ(std::filesystem::file_size(other), 1000u + 24u);
}

TEST_F(PipelineCacheFile, is_no_pipe_that_hangs_and_no_giant) {
  std::filesystem::remove(file());
  ASSERT_EQ(mkfifo(file().c_str(), 0600), 0);
  EXPECT_TRUE(vulkan::readPipelineCache(file()).empty());
  std::filesystem::remove(file());
  // A sparse file takes no room on the disk, but all of the memory: 8 TiB, and a header that agrees.
  const uint64_t size = uint64_t{1} << 43;
  {
    std::ofstream stream(file(), std::ios::binary);
    const uint64_t header[2] = {size - 24, 0};
    stream.write("lspcach1", 8);
    stream.write(reinterpret_cast<const char*>(header), sizeof header);
  }
  if (truncate(file().c_str(), static_cast<off_t>(size)) != 0) GTEST_SKIP() << "no sparse files of that size here";
  EXPECT_TRUE(vulkan::readPipelineCache(file()).empty());
  std::filesystem::remove(file());
  std::filesystem::create_directory(file());
  EXPECT_TRUE(vulkan::readPipelineCache(file()).empty());
  EXPECT_FALSE(vulkan::writePipelineCache(file(), someBytes(5)));
  size_t files = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder_)) ++files;
  EXPECT_EQ(files, 1u);
}

TEST(PipelineCache, folder_is_chosen_by_the_environment) {
  VkPhysicalDeviceProperties properties{};
  {
    Variable off("LOCKSTEP_CACHE_DIR", "");
    EXPECT_TRUE(vulkan::pipelineCacheFile(properties).empty());
  }
  Variable folder("LOCKSTEP_CACHE_DIR", "/tmp/here");
  EXPECT_EQ(vulkan::pipelineCacheFile(properties).parent_path(), "/tmp/here");
  EXPECT_FALSE(vulkan::writePipelineCache("/proc/nowhere/x.cache", someBytes(4)));
}

}  // namespace
}  // namespace lockstep
