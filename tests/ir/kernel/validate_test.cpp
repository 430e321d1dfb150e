// SPDX-License-Identifier: Apache-2.0
// What the validator rejects in a text that can be read: one case per rule, with the code and the place.
#include <gtest/gtest.h>

#include "tests/ir/kernel/samples.h"

namespace lockstep::kernel {
namespace {

using testing::inEntryPoint;
using testing::kFirstBodyLine;

struct RuleCase {
  std::string name, text, code;
  uint32_t line, column;
};

RuleCase body(std::string name, const std::string& lines, std::string code, uint32_t line, uint32_t column) {
  return {std::move(name), inEntryPoint(lines), std::move(code), kFirstBodyLine + line - 1, column};
}

RuleCase module(std::string name, const std::string& lines, std::string code, uint32_t line, uint32_t column) {
  return {std::move(name), "lockstep.kernel 1\n" + lines, std::move(code), line, column};
}

/// A module whose only line of interest is a variable, used so that it is printed as it stands.
RuleCase variable(std::string name, const std::string& line, std::string code) {
  return module(std::move(name), line + "\n", std::move(code), 2, 1);
}

std::vector<RuleCase> dominanceCases() {
  return {
      body("use_after_if", "  if true {\n    %a: u32 = add %i, %i\n  }\n  %b: u32 = add %a, %i\n", "kernel.dominance", 4, 17),
      body("use_in_else", "  if true {\n    %a: u32 = add %i, %i\n  } else {\n    %b: u32 = add %a, %i\n  }\n", "kernel.dominance", 4, 19),
      body("use_after_loop", "  loop {\n    %a: u32 = add %i, %i\n    break\n  }\n  %b: u32 = add %i, %a\n", "kernel.dominance", 5, 21),
      body("continuing_behind_continue",
           "  loop {\n    if true {\n      continue\n    }\n    %a: bool = eq %i, %i\n  } continuing {\n    break_if %a\n  }\n",
           "kernel.dominance", 7, 14),
      body("use_in_another_case",
           "  switch %i {\n    case 1u {\n      %a: u32 = add %i, %i\n    }\n    case default {\n      %b: u32 = add %a, %i\n    }\n  }\n",
           "kernel.dominance", 6, 21),
  };
}

std::vector<RuleCase> debugCases() {
  return {
      body("print_of_nothing", "  print\n", "kernel.structure", 1, 3),
      body("print_of_a_pointer", "  %p: ptr<function, f32> = var\n  print %i, %p\n", "kernel.type", 2, 13),
      body("print_of_too_much", "  print %i, zero<array<array<f32, 64>, 65>>\n", "kernel.type", 1, 13),
      body("print_with_too_few_labels", "  print %i {labels = [\"i\"]}\n", "kernel.structure", 1, 3),
  };
}

std::vector<RuleCase> controlCases() {
  return {
      body("break_outside", "  break\n", "kernel.control", 1, 3),
      body("continue_outside", "  continue\n", "kernel.control", 1, 3),
      body("continue_in_switch", "  switch %i {\n    case default {\n      continue\n    }\n  }\n", "kernel.control", 3, 7),
      body("after_break", "  loop {\n    break\n    workgroup_barrier\n  }\n", "kernel.control", 3, 5),
      body("after_return", "  return\n  workgroup_barrier\n", "kernel.control", 2, 3),
      body("after_break_if", "  loop {\n  } continuing {\n    break_if true\n    workgroup_barrier\n  }\n", "kernel.control", 4, 5),
      body("break_if_outside", "  break_if true\n", "kernel.control", 1, 3),
      body("break_if_in_body", "  loop {\n    break_if true\n  }\n", "kernel.control", 2, 5),
      body("break_if_nested", "  loop {\n  } continuing {\n    if true {\n      break_if true\n    }\n  }\n", "kernel.control", 4, 7),
      body("break_in_continuing", "  loop {\n  } continuing {\n    break\n  }\n", "kernel.control", 3, 5),
      body("continue_in_continuing", "  loop {\n  } continuing {\n    continue\n  }\n", "kernel.control", 3, 5),
      body("return_in_continuing", "  loop {\n  } continuing {\n    loop {\n      return\n    }\n  }\n", "kernel.control", 4, 7),
      body("selector_twice", "  switch %i {\n    case 1u {\n    }\n    case 1u, default {\n    }\n  }\n", "kernel.control", 4, 5),
      body("no_default", "  switch %i {\n    case 1u {\n    }\n  }\n", "kernel.control", 1, 3),
      body("two_defaults", "  switch %i {\n    case default {\n    }\n    case default {\n    }\n  }\n", "kernel.control", 1, 3),
      body("entry_point_called", "}\nfn @g() {\n  %0: ptr<function, vec3<u32>> = var\n  %1: vec3<u32> = load %0\n  call @main(%1, 0u)\n",
           "kernel.control", 5, 3),
      module("no_return", "fn @f(%c: bool) -> f32 {\n  if %c {\n    return 1.0f\n  }\n}\n", "kernel.control", 2, 1),
      module("loop_without_return", "fn @f(%c: bool) -> f32 {\n  loop {\n    if %c {\n      break\n    }\n  }\n}\n", "kernel.control", 2,
             1),
      module("switch_without_return", "fn @f(%c: i32) -> f32 {\n  switch %c {\n    case default {\n      break\n    }\n  }\n}\n",
             "kernel.control", 2, 1),
      module("recursion", "fn @f() {\n  call @f()\n}\n", "kernel.recursion", 3, 3),
  };
}

std::vector<RuleCase> typeCases() {
  return {
      body("operand_types_differ", "  %0: f32 = add 1.0f, 2i\n", "kernel.type", 1, 3),
      body("wrong_result", "  %0: i32 = add 1.0f, 2.0f\n", "kernel.type", 1, 3),
      body("operand_count", "  %0: f32 = add 1.0f\n", "kernel.structure", 1, 3),
      body("result_of_store", "  %p: ptr<function, f32> = var\n  %0: f32 = store %p, 1.0f\n", "kernel.type", 2, 3),
      body("no_result", "  add 1.0f, 2.0f\n", "kernel.type", 1, 3),
      body("condition", "  if %i {\n  }\n", "kernel.type", 1, 3),
      body("selector", "  switch 1.0f {\n    case default {\n    }\n  }\n", "kernel.type", 1, 3),
      body("convert_width", "  %0: vec2<f32> = convert %gid\n", "kernel.type", 1, 3),
      body("bitcast_size", "  %0: f32 = bitcast %gid\n", "kernel.type", 1, 3),
      body("bitcast_bool", "  %0: u32 = bitcast true\n", "kernel.type", 1, 3),
      body("construct_count", "  %0: vec3<u32> = construct %i, %i\n", "kernel.type", 1, 3),
      body("construct_element", "  %0: vec2<u32> = construct %i, 1i\n", "kernel.type", 1, 33),
      body("construct_scalar", "  %0: u32 = construct %i\n", "kernel.type", 1, 3),
      body("construct_atomic", "  %0: atomic<u32> = construct %i\n", "kernel.type", 1, 3),
      body("extract_out_of_range", "  %0: u32 = extract %gid, 3u\n", "kernel.access", 1, 27),
      body("extract_negative", "  %0: u32 = extract %gid, -1i\n", "kernel.access", 1, 27),
      body("extract_from_scalar", "  %0: u32 = extract %i, 0u\n", "kernel.access", 1, 25),
      body("extract_by_float", "  %0: u32 = extract %gid, 0.0f\n", "kernel.access", 1, 27),
      body("extract_result", "  %0: i32 = extract %gid, 0u\n", "kernel.type", 1, 3),
      body("member_by_value", "  %0: S = load @state\n  %1: f32 = extract %0, %i\n", "kernel.access", 2, 25),
      body("swizzle_component", "  %0: vec2<f32> = construct 1.0f\n  %1: vec2<f32> = swizzle %0 {components = xz}\n", "kernel.access", 2,
           3),
      body("swizzle_scalar", "  %0: vec2<u32> = swizzle %i {components = xx}\n", "kernel.type", 1, 3),
      body("var_space", "  %0: ptr<private, f32> = var\n", "kernel.type", 1, 3),
      body("var_of_atomic", "  %0: ptr<function, atomic<u32>> = var\n", "kernel.memory", 1, 3),
      body("var_of_runtime_array", "  %0: ptr<function, array<f32>> = var\n", "kernel.memory", 1, 3),
      body("var_initial", "  %0: ptr<function, f32> = var 1i\n", "kernel.type", 1, 32),
      body("access_without_index", "  %0: ptr<storage, f32, read> = access @in\n", "kernel.access", 1, 3),
      body("access_result", "  %0: ptr<storage, f32, read_write> = access @in, %i\n", "kernel.type", 1, 3),
      body("access_member", "  %0: ptr<private, f32> = access @state, 2u\n", "kernel.access", 1, 42),
      body("access_member_by_value", "  %0: ptr<private, f32> = access @state, %i\n", "kernel.access", 1, 42),
      body("access_negative", "  %0: ptr<storage, f32, read> = access @in, -1i\n", "kernel.access", 1, 45),
      body("access_below_scalar", "  %0: ptr<storage, f32, read> = access @in, 0u, 0u\n", "kernel.access", 1, 49),
      body("argument_count", "  %0: f32 = call @helper()\n", "kernel.type", 1, 3),
      body("argument_type", "  %0: f32 = call @helper(1i)\n", "kernel.type", 1, 26),
      body("call_result", "  %0: i32 = call @helper(1.0f)\n", "kernel.type", 1, 3),
      body("return_value", "  return 1.0f\n", "kernel.type", 1, 3),
      body("in_bounds_elsewhere", "  %0: f32 = neg 1.0f {in_bounds = true}\n", "kernel.structure", 1, 3),
      module("return_nothing", "fn @f() -> f32 {\n  return\n}\n", "kernel.type", 3, 3),
      module("return_pointer", "fn @f(%p: ptr<function, f32>) -> ptr<function, f32> {\n  return %p\n}\n", "kernel.type", 2, 1),
      module("parameter_atomic", "fn @f(%p: atomic<u32>) {\n}\n", "kernel.type", 2, 7),
  };
}

std::vector<RuleCase> matrixCases() {
  const auto matrix = [](std::string name, const std::string& operand, const std::string& instruction, uint32_t column) {
    return module(std::move(name), "enable f16\nenable subgroup_matrices\nfn @f(%m: " + operand + ") {\n  " + instruction + "\n}\n",
                  "kernel.type", 5, column);
  };
  const std::string sum = "subgroup_matrix_result<f32, 8, 8>", half = "subgroup_matrix_result<f16, 8, 8>";
  const std::string left = "subgroup_matrix_left<f16, 8, 8>", brain = "subgroup_matrix_left<bf16, 8, 8>";
  return {
      matrix("row_max_of_a_factor", left, "%0: " + left + " = subgroup_matrix_row_max %m", 3),
      matrix("row_sum_of_a_number", "f32", "%0: f32 = subgroup_matrix_row_sum %m", 3),
      matrix("row_sum_of_other_components", half, "%0: " + sum + " = subgroup_matrix_row_sum %m", 3),
      matrix("convert_a_number", "f32", "%0: " + left + " = subgroup_matrix_convert %m", 65),
      matrix("convert_a_factor", left, "%0: " + brain + " = subgroup_matrix_convert %m", 66),
      matrix("convert_halves", half, "%0: " + left + " = subgroup_matrix_convert %m", 65),
      matrix("convert_to_a_result", sum, "%0: " + half + " = subgroup_matrix_convert %m", 3),
      matrix("convert_to_f32", sum, "%0: subgroup_matrix_left<f32, 8, 8> = subgroup_matrix_convert %m", 3),
      matrix("convert_to_another_shape", sum, "%0: subgroup_matrix_left<f16, 8, 16> = subgroup_matrix_convert %m", 3),
      matrix("convert_to_nothing", sum, "subgroup_matrix_convert %m", 3),
  };
}

std::vector<RuleCase> memoryCases() {
  return {
      body("store_to_read_only", "  %0: ptr<storage, f32, read> = access @in, %i\n  store %0, 1.0f\n", "kernel.memory", 2, 9),
      body("load_atomic", "  %0: atomic<u32> = load @counter\n", "kernel.memory", 1, 26),
      body("load_runtime_array", "  %0: array<f32> = load @in\n", "kernel.memory", 1, 25),
      body("atomic_on_plain", "  %0: f32 = atomic_add @state, 1.0f\n", "kernel.type", 1, 3),
      body("length_of_fixed_array", "  %0: ptr<function, array<f32, 4>> = var\n  %1: u32 = array_length %0\n", "kernel.type", 2, 3),
      body("uniform_load_of_private", "  %0: S = workgroup_uniform_load @state\n", "kernel.memory", 1, 34),
      module("atomic_in_private", "fn @f(%p: ptr<private, atomic<u32>>) {\n  %0: u32 = atomic_load %p\n}\n", "kernel.memory", 3, 25),
      variable("function_space", "var @x: f32 {space = function}", "kernel.memory"),
      variable("bool_in_storage", "var @x: array<bool, 4> {access = read, binding = 0, group = 0, space = storage}", "kernel.memory"),
      variable("bool_in_uniform", "var @x: bool {binding = 0, group = 0, space = uniform}", "kernel.memory"),
      variable("runtime_array_in_workgroup", "var @x: array<f32> {space = workgroup}", "kernel.memory"),
      variable("runtime_array_in_uniform", "var @x: array<f32> {binding = 0, group = 0, space = uniform}", "kernel.memory"),
      variable("atomic_in_private_memory", "var @x: atomic<u32> {space = private}", "kernel.memory"),
      variable("atomic_in_read_storage", "var @x: atomic<u32> {access = read, binding = 0, group = 0, space = storage}", "kernel.memory"),
      variable("write_only_storage", "var @x: f32 {access = write, binding = 0, group = 0, space = storage}", "kernel.memory"),
      variable("writable_uniform", "var @x: f32 {access = read_write, binding = 0, group = 0, space = uniform}", "kernel.memory"),
      variable("private_without_zero", "var @x: f32 {initial = none, space = private}", "kernel.memory"),
      variable("initial_workgroup", "var @x: f32 = 1.0f {space = workgroup}", "kernel.memory"),
      variable("initial_type", "var @x: f32 = 1i {space = private}", "kernel.type"),
      variable("array_too_large", "var @x: array<vec4<f32>, 4294967295> {space = private}", "kernel.type"),
      variable("array_of_runtime_arrays", "var @x: array<array<f32>, 4> {access = read, binding = 0, group = 0, space = storage}",
               "kernel.type"),
      variable("pointer_variable", "var @x: ptr<function, f32> {space = private}", "kernel.type"),
      module("struct_without_members", "struct S {\n}\nvar @x: S {space = private}\n", "kernel.type", 2, 1),
      module("runtime_array_in_the_middle",
             "struct S {\n  a: array<f32> {offset = 0}\n  b: f32 {offset = 4}\n}\nvar @x: S {access = read, binding = 0, group = 0, space "
             "= storage}\n",
             "kernel.type", 2, 1),
      module("struct_with_pointer", "struct S {\n  a: ptr<function, f32> {offset = 0}\n}\nvar @x: S {space = private}\n", "kernel.type", 2,
             1),
      module("wrong_offset", "struct S {\n  a: f32 {offset = 0}\n  b: f32 {offset = 8}\n}\nvar @x: S {space = private}\n", "kernel.layout",
             2, 1),
      module("wrong_align", "struct S {\n  a: f32 {align = 3, offset = 0}\n}\nvar @x: S {space = private}\n", "kernel.layout", 2, 1),
      module("align_too_small", "struct S {\n  a: vec4<f32> {align = 8, offset = 0}\n}\nvar @x: S {space = private}\n", "kernel.layout", 2,
             1),
      module("wrong_size", "struct S {\n  a: vec2<f32> {offset = 0, size = 4}\n}\nvar @x: S {space = private}\n", "kernel.layout", 2, 1),
      module("runtime_constant", "fn @f() {\n  %0: array<f32> = neg zero<array<f32>>\n}\n", "kernel.constant", 3, 24),
  };
}

std::vector<RuleCase> entryPointCases() {
  const std::string size = "{workgroup_size = [1, 1, 1]} {\n}\n";
  return {
      module("result", "fn @f() -> f32 {workgroup_size = [1, 1, 1]} {\n  return 1.0f\n}\n", "kernel.entry_point", 2, 1),
      module("size_zero", "fn @f() {workgroup_size = [1, 0, 1]} {\n}\n", "kernel.entry_point", 2, 1),
      module("subgroup_size_odd", "fn @f() {subgroup_size = 12, workgroup_size = [24, 1, 1]} {\n}\n", "kernel.entry_point", 2, 1),
      module("subgroup_size_small", "fn @f() {subgroup_size = 2, workgroup_size = [64, 1, 1]} {\n}\n", "kernel.entry_point", 2, 1),
      module("subgroup_in_part", "fn @f() {subgroup_size = 32, workgroup_size = [48, 1, 1]} {\n}\n", "kernel.entry_point", 2, 1),
      module("subgroups_of_a_square", "fn @f() {subgroup_size = 32, workgroup_size = [32, 2, 1]} {\n}\n", "kernel.entry_point", 2, 1),
      module("plain_parameter", "fn @f(%a: u32) " + size, "kernel.entry_point", 2, 7),
      module("builtin_type", "fn @f(%a: u32 {builtin = workgroup_id}) " + size, "kernel.entry_point", 2, 7),
      module("builtin_signed", "fn @f(%a: i32 {builtin = local_invocation_index}) " + size, "kernel.entry_point", 2, 7),
      module("builtin_twice", "fn @f(%a: u32 {builtin = local_invocation_index}, %b: u32 {builtin = local_invocation_index}) " + size,
             "kernel.entry_point", 2, 51),
      module("builtin_in_helper", "fn @f(%a: u32 {builtin = local_invocation_index}) {\n}\n", "kernel.entry_point", 2, 7),
      module("same_binding",
             "var @a: f32 {access = read, binding = 3, group = 1, space = storage}\nvar @b: f32 {binding = 3, group = 1, space = uniform}\n"
             "fn @h() -> f32 {\n  %0: f32 = load @b\n  return %0\n}\n"
             "fn @f() {workgroup_size = [1, 1, 1]} {\n  %0: f32 = load @a\n  %1: f32 = call @h()\n}\n",
             "kernel.binding", 3, 1),
      module("subgroups_not_listed", "fn @f(%a: u32 {builtin = subgroup_size}) " + size, "kernel.capability", 2, 7),
      module("subgroup_operation_not_listed", "fn @f() {\n  %0: u32 = subgroup_add 1u\n}\n", "kernel.capability", 3, 3),
      module("broadcast_lane_above_127", "enable subgroups\nfn @f() {\n  %0: u32 = subgroup_broadcast 1u, 128u\n}\n", "kernel.constant", 4,
             36),
      module("quad_lane_is_computed", "enable subgroups\nfn @f() {\n  %0: u32 = complement 1u\n  %1: u32 = quad_broadcast 1u, %0\n}\n",
             "kernel.constant", 5, 32),
      module("f16_not_listed", "fn @f() {\n  %0: f16 = neg 1.0h\n}\n", "kernel.capability", 3, 3),
      module("f16_not_listed_in_variable", "var @x: vec2<f16> {space = private}\n", "kernel.capability", 2, 1),
  };
}

void expectRejected(const std::vector<RuleCase>& cases) {
  for (const RuleCase& each : cases) {
    Result<Module> module = parse(each.text);
    ASSERT_TRUE(module.ok()) << each.name << "\n" << toString(module.diagnostics());
    // The places below are those of the printed text.
    ASSERT_EQ(print(*module), each.text) << each.name;
    Result<ValidModule> valid = validate(*module);
    ASSERT_FALSE(valid.ok()) << each.name;
    EXPECT_EQ(valid.diagnostics().size(), 1u) << each.name << "\n" << toString(valid.diagnostics());
    const Diagnostic& diagnostic = valid.diagnostics()[0];
    EXPECT_EQ(diagnostic.code, each.code) << each.name << "\n" << toString(diagnostic);
    EXPECT_EQ(diagnostic.where.line, each.line) << each.name << "\n" << toString(diagnostic);
    EXPECT_EQ(diagnostic.where.column, each.column) << each.name << "\n" << toString(diagnostic);
  }
}

TEST(Validate, values_are_used_where_they_are_defined) { expectRejected(dominanceCases()); }
TEST(Validate, debug_output) { expectRejected(debugCases()); }
TEST(Validate, control_flow) { expectRejected(controlCases()); }
TEST(Validate, types_of_instructions) { expectRejected(typeCases()); }
TEST(Validate, types_of_subgroup_matrices) { expectRejected(matrixCases()); }
TEST(Validate, memory_and_variables) { expectRejected(memoryCases()); }
TEST(Validate, entry_points_and_capabilities) { expectRejected(entryPointCases()); }

TEST(Validate, accepts_what_the_rules_allow) {
  const std::string bodies[] = {
      // A value of the loop's body reaches the continuing block if no continue stands before it.
      "  loop {\n    %a: bool = eq %i, %i\n    if %a {\n      continue\n    }\n  } continuing {\n    break_if %a\n  }\n",
      ("  loop {\n    loop {\n      continue\n    } continuing {\n      break_if true\n    }\n    %a: bool = eq %i, %i\n"
       "  } continuing {\n    break_if %a\n  }\n"),
      "  loop {\n    break\n  } continuing {\n    switch %i {\n      case default {\n        break\n      }\n    }\n  }\n",
      "  loop {\n    switch %i {\n      case default {\n        continue\n      }\n    }\n  } continuing {\n    break_if true\n  }\n",
      "  %0: u32 = atomic_load @counter\n  %1: u32 = workgroup_uniform_load @counter\n",
      "  %0: ptr<storage, f32, read> = access @in, 2147483647i\n",
      "}\nfn @infinite() -> f32 {\n  loop {\n  }\n",
      "}\nfn @chosen(%c: bool) -> f32 {\n  if %c {\n    return 1.0f\n  } else {\n    return 2.0f\n  }\n",
      "}\nfn @pointer(%p: ptr<storage, f32, read_write>) {\n  store %p, 1.0f\n",
  };
  for (const std::string& lines : bodies) {
    Result<Module> module = parse(inEntryPoint(lines));
    ASSERT_TRUE(module.ok()) << toString(module.diagnostics());
    Result<ValidModule> valid = validate(*module);
    EXPECT_TRUE(valid.ok()) << lines << toString(valid.diagnostics());
  }
}

// Two entry points may give one binding to different variables.
TEST(Validate, bindings_are_unique_for_each_entry_point) {
  std::string entry = "() {workgroup_size = [1, 1, 1]} {\n  %0: f32 = load @";
  Result<Module> module = parse(
      "lockstep.kernel 1\nvar @a: f32 {access = read, binding = 0, group = 0, space = storage}\n"
      "var @b: f32 {access = read, binding = 0, group = 0, space = storage}\nfn @f" +
      entry + "a\n}\nfn @g" + entry + "b\n}\n");
  ASSERT_TRUE(module.ok()) << toString(module.diagnostics());
  EXPECT_TRUE(validate(*module).ok());
}

TEST(Validate, reports_every_problem_and_quotes_its_line) {
  Result<Module> module =
      parse(inEntryPoint("  %0: i32 = neg 1.0f {location = [\"a.wgsl\", 7, 2]}\n  loop {\n    %1: f32 = add 1.0f, 2i\n    break\n  }\n"));
  ASSERT_TRUE(module.ok()) << toString(module.diagnostics());
  Result<ValidModule> valid = validate(*module);
  ASSERT_EQ(valid.diagnostics().size(), 2u);
  EXPECT_EQ(toString(valid.diagnostics()[0]),
            "kernel:15:3: error: kernel.type: the result of neg is of type f32, not i32\n"
            "  kernel:15:3: note: %0: i32 = neg 1.0f\n"
            "  a.wgsl:7:2: note: made from this source");
  EXPECT_EQ(valid.diagnostics()[1].notes[0].message, "%1: f32 = add 1.0f, 2i");
}

}  // namespace
}  // namespace lockstep::kernel
