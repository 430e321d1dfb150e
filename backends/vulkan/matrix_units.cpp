// SPDX-License-Identifier: Apache-2.0
#include "backends/vulkan/matrix_units.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <string_view>

#include "backends/vulkan/matrix_layout.h"
#include "ir/kernel/spread_matrices.h"

namespace lockstep::vulkan {

namespace {

using kernel::MatrixUse;
using kernel::Scalar;

// From the registry of Vulkan (vk.xml), extensions 507 and 142.
constexpr const char* kCooperativeMatrix = "VK_KHR_cooperative_matrix";
constexpr const char* kBFloat16 = "VK_KHR_shader_bfloat16";
constexpr auto kMatrixFeatures = static_cast<VkStructureType>(1000506000);
constexpr auto kMatrixProperties = static_cast<VkStructureType>(1000506001);
constexpr auto kBFloat16Features = static_cast<VkStructureType>(1000141000);
constexpr int32_t kSubgroupScope = 3;

/// VkCooperativeMatrixPropertiesKHR.
struct ShapeProperties {
  VkStructureType type;
  void* next;
  uint32_t m, n, k;
  int32_t a, b, c, result;  ///< VkComponentTypeKHR
  VkBool32 saturating;
  int32_t scope;  ///< VkScopeKHR
};
using GetShapes = VkResult(VKAPI_PTR*)(VkPhysicalDevice, uint32_t*, ShapeProperties*);

std::optional<Scalar> scalarOf(int32_t component) {
  if (component == 0) return Scalar::F16;
  if (component == 1) return Scalar::F32;
  return component == 1000141000 ? std::optional(Scalar::BF16) : std::nullopt;
}

bool has(std::span<const VkExtensionProperties> offered, const char* name) {
  return std::ranges::any_of(offered, [&](const VkExtensionProperties& e) { return std::strcmp(e.extensionName, name) == 0; });
}

std::optional<MatrixShape> shapeOf(const ShapeProperties& row) {
  const std::optional<Scalar> operand = scalarOf(row.a), result = scalarOf(row.c);
  const bool plain = row.a == row.b && row.c == row.result && row.scope == kSubgroupScope && row.saturating == VK_FALSE;
  const uint32_t largest = std::max({row.m, row.n, row.k});
  if (!operand || !result || !plain || largest > kernel::kMaxSubgroupMatrixExtent) return std::nullopt;
  return MatrixShape{.operand = *operand, .result = *result, .m = row.m, .n = row.n, .k = row.k};
}

}  // namespace

MatrixUnits findMatrixUnits(VkInstance instance, VkPhysicalDevice device, std::span<const VkExtensionProperties> offered, uint32_t version,
                            std::vector<const char*>& extensions) {
  // Modules with matrices have the Vulkan memory model.
  const bool memory_model_is_core = version >= VK_API_VERSION_1_2;
  if (!has(offered, kCooperativeMatrix)) return {};
  if (!memory_model_is_core && !has(offered, VK_KHR_VULKAN_MEMORY_MODEL_EXTENSION_NAME)) return {};
  const auto get_shapes = reinterpret_cast<GetShapes>(vkGetInstanceProcAddr(instance, "vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR"));
  if (get_shapes == nullptr) return {};
  const bool bfloat16 = has(offered, kBFloat16);
  FeatureFlags brain{.type = kBFloat16Features, .next = nullptr, .values = {}};
  FeatureFlags matrix{.type = kMatrixFeatures, .next = bfloat16 ? &brain : nullptr, .values = {}};
  auto memory_model = blank<VkPhysicalDeviceVulkanMemoryModelFeatures>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_MEMORY_MODEL_FEATURES);
  memory_model.pNext = &matrix;
  auto features = blank<VkPhysicalDeviceFeatures2>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2);
  features.pNext = &memory_model;
  vkGetPhysicalDeviceFeatures2(device, &features);
  if (matrix.values[0] == VK_FALSE || memory_model.vulkanMemoryModel == VK_FALSE) return {};
  uint32_t count = 0;
  if (get_shapes(device, &count, nullptr) != VK_SUCCESS) return {};
  ShapeProperties empty{};
  empty.type = kMatrixProperties;
  std::vector<ShapeProperties> rows(count, empty);
  if (get_shapes(device, &count, rows.data()) != VK_SUCCESS) return {};
  MatrixUnits units{.shapes = {}, .bfloat16 = bfloat16 && brain.values[0] == VK_TRUE && brain.values[2] == VK_TRUE};
  for (const ShapeProperties& row : rows) {
    const std::optional<MatrixShape> shape = shapeOf(row);
    if (shape && (shape->operand != Scalar::BF16 || units.bfloat16)) units.shapes.push_back(*shape);
  }
  if (units.shapes.empty()) return {};
  extensions.push_back(kCooperativeMatrix);
  if (!memory_model_is_core) extensions.push_back(VK_KHR_VULKAN_MEMORY_MODEL_EXTENSION_NAME);
  if (units.bfloat16) extensions.push_back(kBFloat16);
  return units;
}

bool suits(const kernel::Module& module, const MatrixUnits& units) {
  const auto fits = [&](const kernel::Type& type) {
    return std::ranges::any_of(units.shapes, [&](const MatrixShape& s) {
      if (type.use == MatrixUse::Result) return type.scalar == s.result && type.rows == s.m && type.columns == s.n;
      if (type.scalar != s.operand) return false;
      return type.use == MatrixUse::Left ? type.rows == s.m && type.columns == s.k : type.rows == s.k && type.columns == s.n;
    });
  };
  for (size_t i = 0; i < module.types.size(); ++i) {
    const kernel::Type& type = module.types[kernel::TypeId(i)];
    if (type.kind == kernel::TypeKind::SubgroupMatrix && !fits(type)) return false;
  }
  return std::ranges::all_of(module.instructions, [&](const kernel::Instruction& in) {
    if (needsLayout(in.op))
      return std::ranges::find(units.scattered, ScatteredWork{in.op, module.typeOf(in.operands[0])}) == units.scattered.end();
    if (in.op != kernel::Op::SubgroupMatrixMultiplyAccumulate) return true;
    const kernel::Type &left = module.typeOf(in.operands[0]), &result = module.typeOf(in.operands[2]);
    const MatrixShape wanted{.operand = left.scalar, .result = result.scalar, .m = left.rows, .n = result.columns, .k = left.columns};
    return std::ranges::find(units.shapes, wanted) != units.shapes.end();
  });
}

Result<std::optional<kernel::ValidModule>> spreadWithoutUnits(const kernel::ValidModule& module, const MatrixUnits& units,
                                                              uint32_t subgroup_size) {
  if (!kernel::hasSubgroupMatrices(*module) || suits(*module, units)) return std::optional<kernel::ValidModule>();
  LS_TRY(kernel::InlinedModule spread, kernel::spreadMatrices(kernel::inlineAllCalls(*module), subgroup_size));
  auto valid = kernel::validate(std::move(spread.module));
  if (!valid.ok()) internalError("spreadMatrices made an invalid kernel\n" + toString(valid.diagnostics()));
  return std::optional(std::move(*valid));
}

program::MatrixShape plannedShape(const MatrixUnits& units, kernel::Scalar operand) {
  program::MatrixShape best;
  for (const MatrixShape& shape : units.shapes) {
    if (shape.operand != operand || shape.result != Scalar::F32) continue;
    if (shape.m * shape.n * shape.k > best.m * best.n * best.k) best = {.m = shape.m, .n = shape.n, .k = shape.k};
  }
  return best;
}

MatrixFeatures::MatrixFeatures(const MatrixUnits& units) : wanted_(!units.shapes.empty()), wants_bfloat16_(units.bfloat16) {
  cooperative_ = {.type = kMatrixFeatures, .next = nullptr, .values = {VK_TRUE, VK_FALSE, VK_FALSE}};
  memory_model_ = {
      .type = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_MEMORY_MODEL_FEATURES, .next = nullptr, .values = {VK_TRUE, VK_FALSE, VK_FALSE}};
  bfloat16_ = {.type = kBFloat16Features, .next = nullptr, .values = {VK_TRUE, VK_FALSE, VK_TRUE}};
}

void* MatrixFeatures::chain(void* next) {
  if (!wanted_) return next;
  cooperative_.next = next;
  memory_model_.next = &cooperative_;
  if (!wants_bfloat16_) return &memory_model_;
  bfloat16_.next = &memory_model_;
  return &bfloat16_;
}

}  // namespace lockstep::vulkan
