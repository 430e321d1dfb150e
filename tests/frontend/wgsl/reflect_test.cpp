// SPDX-License-Identifier: Apache-2.0
// Reflection, and the limits that entry points need.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "frontend/wgsl/check/limits.h"
#include "tests/frontend/wgsl/wgsl_reading.h"

namespace lockstep::wgsl::testing {
namespace {

constexpr std::string_view kModule = R"(enable f16;
struct Particle { position: vec3f, mass: f32, velocity: vec3<f16> }
struct Settings { count: u32, scale: f32 }
override block: u32 = 64;
@id(7) override gain: f32;
@group(0) @binding(0) var<storage, read_write> particles: array<Particle>;
@group(1) @binding(2) var<uniform> settings: Settings;
alias Tile = array<f32, block + 1>;
var<workgroup> tile: Tile;
var<workgroup> flag: u32;
@compute @workgroup_size(block) fn step(@builtin(local_invocation_index) i: u32) {
  tile[i] = gain;
  if i == 0 { flag = settings.count; }
}
@compute @workgroup_size(8, 64) fn clear() { particles[0].mass = 0; }
)";

Reflection reflectGood(const ReadOptions& options = {}) {
  Result<Reflection> reflection = reflect(kModule, options);
  if (!reflection.ok()) ADD_FAILURE() << renderDiagnostics(reflection.diagnostics(), kModule);
  return reflection.ok() ? *reflection : Reflection{};
}

TEST(Reflect, bindings_haveSizesAndMembers) {
  const Reflection reflection = reflectGood();
  EXPECT_EQ(reflection.extensions, std::vector<std::string>{"f16"});
  ASSERT_EQ(reflection.bindings.size(), 2u);
  const ReflectedBinding &particles = reflection.bindings[0], &settings = reflection.bindings[1];
  EXPECT_EQ(particles.type, "array<Particle>");
  EXPECT_EQ(particles.access, kernel::Access::ReadWrite);
  EXPECT_EQ(particles.size, 32u);
  EXPECT_EQ(particles.stride, 32u);
  EXPECT_EQ(particles.where.line, 6u);
  EXPECT_EQ(settings.space, kernel::AddressSpace::Uniform);
  EXPECT_EQ(settings.group, 1u);
  EXPECT_EQ(settings.binding, 2u);
  EXPECT_EQ(settings.stride, 0u);
  ASSERT_EQ(settings.members.size(), 2u);
  EXPECT_EQ(settings.members[1].name, "scale");
  EXPECT_EQ(settings.members[1].offset, 4u);
}

TEST(Reflect, overrides_areKnownAsFarAsTheyHaveValues) {
  const Reflection without = reflectGood();
  ASSERT_EQ(without.overrides.size(), 2u);
  EXPECT_FALSE(without.overrides[0].id.has_value());
  EXPECT_EQ(without.overrides[1].id, 7u);
  EXPECT_EQ(without.overrides[1].type, "f32");
  EXPECT_TRUE(without.overrides[1].required);
  EXPECT_EQ(without.overrides[0].value, 64.0);
  EXPECT_FALSE(without.overrides[1].value.has_value());
  ASSERT_EQ(without.entry_points.size(), 2u);
  EXPECT_FALSE(without.entry_points[0].workgroup_size.has_value());
  EXPECT_EQ(without.entry_points[0].overrides, (std::vector<size_t>{0, 1}));
  EXPECT_EQ(without.entry_points[0].bindings, std::vector<size_t>{1});
  EXPECT_EQ(without.entry_points[1].workgroup_size, (std::array<uint32_t, 3>{8, 64, 1}));
  EXPECT_EQ(without.entry_points[1].bindings, std::vector<size_t>{0});

  const Reflection with = reflectGood({.file_name = "k.wgsl", .overrides = {{"7", 0.5}, {"block", 96}}});
  EXPECT_EQ(with.overrides[0].value, 96.0);
  EXPECT_EQ(with.overrides[1].value, 0.5);
  EXPECT_EQ(with.entry_points[0].workgroup_size, (std::array<uint32_t, 3>{96, 1, 1}));
  // 97 floats rounded up to 16, and one number.
  EXPECT_EQ(with.entry_points[0].workgroup_bytes, 400u + 16u);
}

TEST(Reflect, immediateData_isApartFromTheBindings) {
  const Reflection reflection = reflect(
                                    "struct S { a: vec3f, b: u32, c: f32 }\n"
                                    "var<immediate> s: S;\nvar<immediate> t: vec2f;\n"
                                    "@compute @workgroup_size(1) fn f() { _ = s.b; }\n"
                                    "@compute @workgroup_size(1) fn g() { _ = t; }\n"
                                    "@compute @workgroup_size(1) fn h() { }\n")
                                    .orThrow();
  EXPECT_TRUE(reflection.bindings.empty());
  ASSERT_EQ(reflection.immediates.size(), 2u);
  EXPECT_EQ(reflection.immediates[0].size, 32u);
  ASSERT_EQ(reflection.immediates[0].members.size(), 3u);
  EXPECT_EQ(reflection.immediates[0].members[2].offset, 16u);
  EXPECT_EQ(reflection.immediates[1].type, "vec2<f32>");
  EXPECT_EQ(reflection.entry_points[0].immediate, 0u);
  EXPECT_EQ(reflection.entry_points[1].immediate, 1u);
  EXPECT_FALSE(reflection.entry_points[2].immediate.has_value());
}

TEST(Reflect, thousandsOfEntryPoints_takeLinearTime) {
  std::string source = "override k: f32 = 2;\nvar<private> x: f32;\nfn h() { x = k; }\n";
  for (int i = 0; i < 4000; ++i) source += fmt::format("@compute @workgroup_size(8) fn e{}() {{ h(); }}\n", i);
  const Reflection reflection = reflect(source).orThrow();
  ASSERT_EQ(reflection.entry_points.size(), 4000u);
  EXPECT_EQ(reflection.entry_points.back().overrides, std::vector<size_t>{0});
  EXPECT_EQ(reflection.overrides[0].value, 2.0);
  const auto remedy = reflect(source, {.file_name = "k", .overrides = {}, .entry_point = "zz"}).diagnostics().at(0).remedy;
  EXPECT_TRUE(remedy.ends_with("e38, e39 and 3960 more")) << remedy;
}

TEST(Reflect, mistakesAreNamed) {
  const auto first = [](const ReadOptions& options) { return reflect(kModule, options).diagnostics().at(0); };
  EXPECT_EQ(first({.file_name = "k", .overrides = {{"blok", 1}, {"7", 1}}}).remedy, "did you mean 'block'?");
  EXPECT_EQ(first({.file_name = "k", .overrides = {}, .entry_point = "clera"}).remedy, "did you mean 'clear'?");
  EXPECT_EQ(first({.file_name = "k", .overrides = {{"7", 1}, {"block", -1}}}).code, "wgsl.override");
}

std::string limitErrors(const std::string& source) {
  const auto reflection = reflect(source);
  if (!reflection.ok()) return renderDiagnostics(reflection.diagnostics(), source);
  std::string text;
  for (const Diagnostic& error : checkLimits(*reflection, portableLimits())) {
    text += fmt::format("{}:{} {}\n", error.where.line, error.where.column, error.message);
  }
  return text;
}

TEST(Limits, nameValueAndMaximum) {
  EXPECT_EQ(limitErrors("@compute @workgroup_size(256) fn main() {}"), "");
  EXPECT_EQ(limitErrors("@compute @workgroup_size(16, 17) fn main() {}"),
            "1:37 entry point 'main': the number of invocations of a workgroup is 272, but portable allows at most 256 "
            "(maxComputeInvocationsPerWorkgroup)\n");
  EXPECT_EQ(limitErrors("@compute @workgroup_size(1, 1, 65) fn main() {}"),
            "1:39 entry point 'main': the workgroup size in z is 65, but portable allows at most 64 (maxComputeWorkgroupSizeZ)\n");
  EXPECT_EQ(limitErrors("@group(4) @binding(1000) var<storage> x: array<f32>;\n@compute @workgroup_size(1) fn main() { _ = x[0]; }"),
            "1:39 entry point 'main': the number of bind groups (highest group + 1) is 5, but portable allows at most 4 (maxBindGroups)\n"
            "1:39 entry point 'main': the number of bindings of a group (highest binding + 1) is 1001, but portable allows at most 1000 "
            "(maxBindingsPerBindGroup)\n");
  // 1024 vec4 fill the memory; one more number is rounded up to 16 bytes.
  const std::string memory = "var<workgroup> a: array<vec4f, 1024>;\nvar<workgroup> b: u32;\n";
  EXPECT_EQ(limitErrors(memory + "@compute @workgroup_size(1) fn main() { _ = a[0]; }"), "");
  EXPECT_EQ(limitErrors(memory + "@compute @workgroup_size(1) fn main() { _ = a[0]; _ = b; }"),
            "3:32 entry point 'main': the size of workgroup memory is 16400, but portable allows at most 16384 "
            "(maxComputeWorkgroupStorageSize)\n");
  EXPECT_EQ(limitErrors("struct S { a: mat4x4f, b: f32 }\nvar<immediate> s: S;\n@compute @workgroup_size(1) fn main() { _ = s.b; }"),
            "2:16 entry point 'main': the size of immediate data is 80, but portable allows at most 64 (maxImmediateSize)\n");
  // What no entry point uses counts for none.
  EXPECT_EQ(limitErrors("@group(9) @binding(0) var<storage> x: array<f32>;\n@compute @workgroup_size(1) fn main() { }"), "");
}

}  // namespace
}  // namespace lockstep::wgsl::testing
