// SPDX-License-Identifier: Apache-2.0
#include "tools/devices/device_report.h"

#include <fmt/format.h>

#include "console/text_format.h"

namespace lockstep::tools {
namespace {

io::Json shapeJson(const program::MatrixShape& shape) {
  if (shape == program::MatrixShape{}) return {};
  return io::Json::object().add("m", shape.m).add("n", shape.n).add("k", shape.k);
}

std::string matrixText(const program::DeviceProfile& profile) {
  std::string text;
  const auto add = [&](std::string_view type, const program::MatrixShape& shape) {
    if (shape == program::MatrixShape{}) return;
    text += fmt::format("{}{} of {}x{}x{}", text.empty() ? "" : ", ", type, shape.m, shape.n, shape.k);
  };
  add("f16", profile.matrix_f16);
  add("bf16", profile.matrix_bf16);
  return text;
}

}  // namespace

io::Json deviceJson(const DeviceInfo& device) {
  const program::DeviceProfile& profile = device.profile;
  const io::Json limits = io::Json::object()
                              .add("max_storage_buffers", profile.max_storage_buffers)
                              .add("max_binding_bytes", profile.max_binding_bytes)
                              .add("min_offset_alignment", profile.min_offset_alignment)
                              .add("max_workgroup_invocations", profile.max_workgroup_invocations)
                              .add("max_workgroup_bytes", profile.max_workgroup_bytes)
                              .add("max_workgroup_size_x", profile.max_workgroup_size_x)
                              .add("max_workgroup_size_y", profile.max_workgroup_size_y)
                              .add("max_workgroup_size_z", profile.max_workgroup_size_z)
                              .add("max_immediate_bytes", profile.max_immediate_bytes)
                              .add("max_groups_per_dimension", profile.max_groups_per_dimension)
                              .add("max_loop_iterations", profile.max_loop_iterations)
                              .add("subgroup_size", profile.subgroup_size)
                              .add("f16", profile.f16)
                              .add("subgroups", profile.subgroups)
                              .add("fixed_subgroups", profile.fixed_subgroups)
                              .add("matrix_f16", shapeJson(profile.matrix_f16))
                              .add("matrix_bf16", shapeJson(profile.matrix_bf16))
                              .add("matrix_rows", profile.matrix_rows)
                              .add("packed_dot", profile.packed_dot);
  return io::Json::object()
      .add("id", device.id)
      .add("name", device.name)
      .add("kind", toString(device.kind))
      .add("driver", device.driver)
      .add("memory_bytes", device.memory_bytes)
      .add("limits", limits)
      .add("usable", device.usable)
      .add("why_not", device.usable ? io::Json() : io::Json(device.why_not));
}

std::string deviceText(const DeviceInfo& device) {
  std::string text = fmt::format("{:<12}{} ({})\n", device.id, device.name, toString(device.kind));
  text += fmt::format("{:<12}driver {}, memory {}\n", "", device.driver.empty() ? "-" : device.driver,
                      console::formatBytes(device.memory_bytes));
  if (!device.usable) return text + fmt::format("{:<12}not usable: {}\n", "", device.why_not);
  const program::DeviceProfile& profile = device.profile;
  text += fmt::format("{:<12}{} storage buffers of {}, workgroups of {} with {} shared\n", "", profile.max_storage_buffers,
                      console::formatBytes(profile.max_binding_bytes), profile.max_workgroup_invocations,
                      console::formatBytes(profile.max_workgroup_bytes));
  if (const std::string shapes = matrixText(profile); !shapes.empty()) text += fmt::format("{:<12}matrix units: {}\n", "", shapes);
  if (profile.max_loop_iterations == 0) return text;
  return text + fmt::format("{:<12}ends loops after {} rounds per invocation, silently: plans stay below, other kernels are counted\n", "",
                            profile.max_loop_iterations);
}

}  // namespace lockstep::tools
