// SPDX-License-Identifier: Apache-2.0
#include "backends/vulkan/pipeline_statistics.h"

#include <fmt/format.h>

#include <cstdlib>
#include <string_view>

namespace lockstep::vulkan {

namespace {

std::string valueOf(const VkPipelineExecutableStatisticKHR& statistic) {
  switch (statistic.format) {
    case VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_BOOL32_KHR:
      return statistic.value.b32 == VK_TRUE ? "yes" : "no";
    case VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_INT64_KHR:
      return std::to_string(statistic.value.i64);
    case VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_UINT64_KHR:
      return std::to_string(statistic.value.u64);
    case VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_FLOAT64_KHR:
      return fmt::format("{}", statistic.value.f64);
    case VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_MAX_ENUM_KHR:
      break;
  }
  return "?";
}

}  // namespace

bool wantsPipelineStatistics() {
  const char* wish = std::getenv("LOCKSTEP_PIPELINE_STATISTICS");
  return wish != nullptr && std::string_view(wish) == "1";
}

std::string pipelineStatistics(const Context& context, VkPipeline pipeline) {
  auto info = blank<VkPipelineExecutableInfoKHR>(VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_INFO_KHR);
  info.pipeline = pipeline;  // of a compute pipeline the only executable is number 0
  uint32_t count = 0;
  if (context.vk().vkGetPipelineExecutableStatisticsKHR(context.device(), &info, &count, nullptr) != VK_SUCCESS) return {};
  std::vector<VkPipelineExecutableStatisticKHR> rows(
      count, blank<VkPipelineExecutableStatisticKHR>(VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_STATISTIC_KHR));
  if (context.vk().vkGetPipelineExecutableStatisticsKHR(context.device(), &info, &count, rows.data()) != VK_SUCCESS) return {};
  std::string text;
  for (const VkPipelineExecutableStatisticKHR& row : rows) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", static_cast<const char*>(row.name), valueOf(row));
  }
  return text;
}

}  // namespace lockstep::vulkan
