// SPDX-License-Identifier: Apache-2.0
#include "ir/kernel/link.h"

#include <gtest/gtest.h>

#include "tests/ir/kernel/samples.h"

namespace lockstep::kernel {
namespace {

using testing::moduleUsing;
using testing::wideModule;

void expectValid(const Module& module, const std::string& what) {
  Result<ValidModule> valid = validate(module);
  EXPECT_TRUE(valid.ok()) << what << "\n" << toString(valid.diagnostics());
}

std::vector<ValueId> copies(const Module& part) { return std::vector<ValueId>(part.globals.size()); }

/// A module whose entry point calls a helper that scales one element of @x.
Module scaler(const std::string& factor) {
  return parse(R"(lockstep.kernel 1
var @x: array<f32> {access = read_write, binding = 0, group = 0, space = storage}
var @sum: array<f32, 4> {initial = none, space = workgroup}
fn @scale(%i: u32) {
  %p: ptr<storage, f32, read_write> = access @x, %i
  %v: f32 = load %p
  %s: f32 = mul %v, )" +
               factor + R"( {origin = 3}
  store %p, %s
}
fn @main(%id: vec3<u32> {builtin = workgroup_id}) {workgroup_size = [4, 1, 1]} {
  %i: u32 = extract %id, 0u
  call @scale(%i)
}
)")
      .orThrow();
}

TEST(Link, entry_points_become_plain_functions_that_use_the_given_variables) {
  Module module = scaler("2.0f");
  Module part = scaler("3.0f");
  std::vector<FunctionId> functions = link(module, part, {module.globals[0].value, ValueId{}});
  ASSERT_EQ(functions.size(), 2u);
  EXPECT_EQ(functions[0].index(), 2u);
  EXPECT_EQ(print(module), R"(lockstep.kernel 1
var @x: array<f32> {access = read_write, binding = 0, group = 0, space = storage}
var @sum: array<f32, 4> {initial = none, space = workgroup}
var @sum_1: array<f32, 4> {initial = none, space = workgroup}
fn @scale(%i: u32) {
  %p: ptr<storage, f32, read_write> = access @x, %i
  %v: f32 = load %p
  %s: f32 = mul %v, 2.0f {origin = 3}
  store %p, %s
}
fn @main(%id: vec3<u32> {builtin = workgroup_id}) {workgroup_size = [4, 1, 1]} {
  %i: u32 = extract %id, 0u
  call @scale(%i)
}
fn @scale_1(%i: u32) {
  %p: ptr<storage, f32, read_write> = access @x, %i
  %v: f32 = load %p
  %s: f32 = mul %v, 3.0f {origin = 3}
  store %p, %s
}
fn @main_1(%id: vec3<u32>) {
  %i: u32 = extract %id, 0u
  call @scale_1(%i)
}
)");
  expectValid(module, "linked");
}

TEST(Link, module_linked_into_an_empty_one_has_its_functions) {
  for (size_t i = 0; i < kOpCount; ++i) {
    Module part = moduleUsing(static_cast<Op>(i)).value();
    part.functions.back().subgroup_size = 0;  // an entry point's, and what it makes becomes a plain function
    Module module;
    std::vector<FunctionId> functions = link(module, part, copies(part));
    for (size_t f = 0; f < functions.size(); ++f) {  // what link takes away on purpose
      module.functions[functions[f].index()].workgroup_size = part.functions[f].workgroup_size;
      module.functions[functions[f].index()].parameters.clear();
      for (const Parameter& parameter : part.functions[f].parameters) module.functions[f].parameters.push_back(parameter);
    }
    EXPECT_EQ(print(module), print(part)) << info(static_cast<Op>(i)).text;
  }
}

TEST(Link, two_wide_modules_are_a_valid_one) {
  Module module = wideModule(), part = wideModule();
  for (GlobalVariable& global : part.globals) global.binding += 100;
  size_t values = module.values.size();
  link(module, part, copies(part));
  EXPECT_EQ(module.values.size(), values + part.values.size());
  EXPECT_EQ(module.types, wideModule().types);
  expectValid(module, "wide");
}

}  // namespace
}  // namespace lockstep::kernel
