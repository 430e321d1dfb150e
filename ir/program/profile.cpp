// SPDX-License-Identifier: Apache-2.0
#include "ir/program/profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <set>
#include <variant>

#include "ir/graph/text.h"
#include "ir/support/nearest.h"
#include "ir/support/text.h"

namespace lockstep::program {
namespace {

using Member = std::variant<ExecutionStyle DeviceProfile::*, uint32_t DeviceProfile::*, uint64_t DeviceProfile::*, bool DeviceProfile::*,
                            MatrixShape DeviceProfile::*>;
struct Field {
  std::string_view name;
  Member member;
  int64_t least = 1;
};
// In the order of the text.
constexpr std::array kFields{
    Field{"style", &DeviceProfile::style},
    Field{"max_storage_buffers", &DeviceProfile::max_storage_buffers},
    Field{"max_binding_bytes", &DeviceProfile::max_binding_bytes},
    Field{"min_offset_alignment", &DeviceProfile::min_offset_alignment},
    Field{"max_workgroup_invocations", &DeviceProfile::max_workgroup_invocations},
    Field{"max_workgroup_bytes", &DeviceProfile::max_workgroup_bytes},
    Field{"max_workgroup_size_x", &DeviceProfile::max_workgroup_size_x},
    Field{"max_workgroup_size_y", &DeviceProfile::max_workgroup_size_y},
    Field{"max_workgroup_size_z", &DeviceProfile::max_workgroup_size_z},
    Field{"max_immediate_bytes", &DeviceProfile::max_immediate_bytes},
    Field{"max_groups_per_dimension", &DeviceProfile::max_groups_per_dimension},
    Field{"max_loop_iterations", &DeviceProfile::max_loop_iterations, 0},
    Field{"subgroup_size", &DeviceProfile::subgroup_size},
    Field{"parallel_units", &DeviceProfile::parallel_units},
    Field{"whole_buffer_access", &DeviceProfile::whole_buffer_access},
    Field{"f16", &DeviceProfile::f16},
    Field{"subgroups", &DeviceProfile::subgroups},
    Field{"fixed_subgroups", &DeviceProfile::fixed_subgroups},
    Field{"matrix_f16", &DeviceProfile::matrix_f16},
    Field{"matrix_bf16", &DeviceProfile::matrix_bf16},
    Field{"matrix_rows", &DeviceProfile::matrix_rows},
    Field{"packed_dot", &DeviceProfile::packed_dot},
    Field{"memory_mb_per_second", &DeviceProfile::memory_mb_per_second},
    Field{"f32_mflops", &DeviceProfile::f32_mflops},
    Field{"dispatch_ns", &DeviceProfile::dispatch_ns, 0},
    Field{"level_ns", &DeviceProfile::level_ns, 0},
};
/// As kernels have it (ir/kernel/type.h).
constexpr int64_t kMostMatrixExtent = 64;
constexpr std::array<std::string_view, 2> kStyles{"gpu", "cpu"};

struct FieldPrinter {
  const DeviceProfile& profile;
  std::string operator()(ExecutionStyle DeviceProfile::* member) const {
    return std::string(kStyles[static_cast<size_t>(profile.*member)]);
  }
  std::string operator()(uint32_t DeviceProfile::* member) const { return std::to_string(profile.*member); }
  std::string operator()(uint64_t DeviceProfile::* member) const { return std::to_string(profile.*member); }
  std::string operator()(bool DeviceProfile::* member) const { return profile.*member ? "true" : "false"; }
  std::string operator()(MatrixShape DeviceProfile::* member) const {
    const MatrixShape& shape = profile.*member;
    return shape == MatrixShape{} ? "none" : fmt::format("[{}, {}, {}]", shape.m, shape.n, shape.k);
  }
};

struct FieldParser {
  DeviceProfile& profile;
  TokenCursor& cursor;
  std::string_view name;
  int64_t least;

  Status operator()(ExecutionStyle DeviceProfile::* member) const {
    for (size_t i = 0; i < kStyles.size(); ++i) {
      if (!cursor.accept(kStyles[i])) continue;
      profile.*member = static_cast<ExecutionStyle>(i);
      return Success{};
    }
    return cursor.error("expected gpu or cpu");
  }
  template <class T>
  Status integer(T DeviceProfile::* member, int64_t maximum) const {
    const Token token = cursor.peek();
    LS_TRY(int64_t value, cursor.integer());
    if (value < least || value > maximum) {
      return fail("profile.value", fmt::format("{} is {}, outside {}..{}", name, value, least, maximum), token.where);
    }
    profile.*member = static_cast<T>(value);
    return Success{};
  }
  Status operator()(uint32_t DeviceProfile::* member) const { return integer(member, std::numeric_limits<uint32_t>::max()); }
  Status operator()(uint64_t DeviceProfile::* member) const { return integer(member, std::numeric_limits<int64_t>::max()); }
  Status operator()(MatrixShape DeviceProfile::* member) const {
    MatrixShape& shape = profile.*member;
    shape = {};
    if (cursor.accept("none")) return Success{};
    LS_CHECK(cursor.expect("["));
    for (uint32_t* extent : {&shape.m, &shape.n, &shape.k}) {
      if (extent != &shape.m) LS_CHECK(cursor.expect(","));
      const Token token = cursor.peek();
      LS_TRY(const int64_t value, cursor.integer());
      if (value < 1 || value > kMostMatrixExtent) {
        return fail("profile.value", fmt::format("an extent of {} is {}, outside 1..{}", name, value, kMostMatrixExtent), token.where);
      }
      *extent = static_cast<uint32_t>(value);
    }
    return cursor.expect("]");
  }
  Status operator()(bool DeviceProfile::* member) const {
    if (!cursor.accept("true")) {
      LS_CHECK(cursor.expect("false"));
      profile.*member = false;
    } else {
      profile.*member = true;
    }
    return Success{};
  }
};

const std::array<DeviceProfile, 4>& profiles() {
  static const std::array<DeviceProfile, 4> kProfiles = [] {
    DeviceProfile portable, webgpu, small, cpu;
    webgpu.name = "webgpu_default";
    webgpu.whole_buffer_access = true;
    small.name = "small_bindings";
    small.max_binding_bytes = 64u << 10;
    cpu.name = "cpu";
    cpu.style = ExecutionStyle::Cpu;
    cpu.max_workgroup_invocations = 1024;
    cpu.max_workgroup_size_x = cpu.max_workgroup_size_y = cpu.max_workgroup_size_z = 1024;
    cpu.max_immediate_bytes = 256;
    cpu.max_workgroup_bytes = 32u << 10;
    cpu.max_storage_buffers = 32;
    cpu.max_loop_iterations = 0;
    cpu.parallel_units = 2;
    return std::array{portable, webgpu, small, withRates(cpu, kCpuRates)};
  }();
  return kProfiles;
}

/// The fields of a profile up to and with the closing brace; those that are missing keep their values.
Status parseFields(TokenCursor& cursor, DeviceProfile& profile) {
  std::set<std::string> seen;
  while (!cursor.accept("}")) {
    const Token token = cursor.peek();
    LS_TRY(std::string name, cursor.identifier());
    const auto* field = std::ranges::find(kFields, name, &Field::name);
    if (field == kFields.end()) return fail("profile.field", fmt::format("a device profile has no field named {}", name), token.where);
    if (!seen.insert(name).second) return fail("profile.field", fmt::format("{} is given twice", name), token.where);
    LS_CHECK(cursor.expect("="));
    LS_CHECK(std::visit(FieldParser{profile, cursor, field->name, field->least}, field->member));
  }
  return Success{};
}

/// What a profile of this name is unless its text says more.
DeviceProfile startOf(const std::string& name) {
  for (const DeviceProfile& known : profiles()) {
    if (known.name == name) return known;
  }
  DeviceProfile profile;
  profile.name = name;
  return profile;
}

}  // namespace

DeviceProfile withRates(DeviceProfile profile, const DeviceRates& rates) {
  profile.memory_mb_per_second = rates.memory_mb_per_second;
  profile.f32_mflops = rates.f32_mflops;
  profile.dispatch_ns = rates.dispatch_ns;
  profile.level_ns = rates.level_ns;
  return profile;
}

std::string print(const DeviceProfile& profile) {
  std::string text = fmt::format("lockstep.profile 1\nprofile {} {{\n", graph::printName(profile.name));
  for (const Field& field : kFields) text += fmt::format("  {} = {}\n", field.name, std::visit(FieldPrinter{profile}, field.member));
  return text + "}\n";
}

Result<DeviceProfile> parseProfile(std::string_view text, const std::string& file_name) {
  LS_TRY(TokenCursor cursor, TokenCursor::create(text, file_name));
  LS_CHECK(graph::parseVersion(cursor, "lockstep.profile", 1));
  LS_CHECK(cursor.expect("profile"));
  DeviceProfile profile;
  LS_TRY(profile.name, graph::parseName(cursor));
  LS_CHECK(cursor.expect("{"));
  LS_CHECK(parseFields(cursor, profile));
  if (!cursor.atEnd()) return cursor.error("expected the end of the text after the profile");
  return profile;
}

std::string printReference(const DeviceProfile& profile) {
  const DeviceProfile start = startOf(profile.name);
  std::string fields;
  for (const Field& field : kFields) {
    std::string value = std::visit(FieldPrinter{profile}, field.member);
    if (value != std::visit(FieldPrinter{start}, field.member)) fields += fmt::format("  {} = {}\n", field.name, value);
  }
  return graph::printName(profile.name) + (fields.empty() ? "" : " {\n" + fields + "}");
}

Result<DeviceProfile> parseReference(TokenCursor& cursor) {
  LS_TRY(const std::string name, graph::parseName(cursor));
  DeviceProfile profile = startOf(name);
  if (cursor.accept("{")) LS_CHECK(parseFields(cursor, profile));
  return profile;
}

DeviceProfile unlimitedProfile(std::string name) {
  constexpr uint32_t kAny = std::numeric_limits<uint32_t>::max();
  DeviceProfile profile;
  profile.name = std::move(name);
  profile.max_storage_buffers = profile.max_workgroup_invocations = profile.max_workgroup_bytes = kAny;
  profile.max_workgroup_size_x = profile.max_workgroup_size_y = profile.max_workgroup_size_z = kAny;
  profile.max_immediate_bytes = profile.max_groups_per_dimension = kAny;
  profile.max_binding_bytes = std::numeric_limits<int64_t>::max();
  profile.max_loop_iterations = 0;
  return profile;
}

std::span<const DeviceProfile> namedProfiles() { return profiles(); }

Result<DeviceProfile> findProfile(std::string_view name) {
  std::span<const DeviceProfile> known = namedProfiles();
  auto found = std::find_if(known.begin(), known.end(), [&](const DeviceProfile& profile) { return profile.name == name; });
  if (found != known.end()) return *found;
  return fail("profile.unknown", fmt::format("there is no device profile named '{}'", name), {},
              "use one of " + joinNames(known, &DeviceProfile::name));
}

}  // namespace lockstep::program
