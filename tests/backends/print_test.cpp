// SPDX-License-Identifier: Apache-2.0
// What the reference gives back of `print`: order, values, places, and how much.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "backends/dispatch.h"
#include "backends/reference/dispatch.h"
#include "backends/reference/reference.h"
#include "passes/kernel/restrict_print.h"

namespace lockstep {
namespace {

struct Ran {
  Status status;
  Printed printed;
};

/// One dispatch of a kernel in the text form, without the version line; binding 0, if it has one, is 64 words of zeros.
Ran run(const std::string& body, std::array<uint32_t, 3> groups, const ReferenceOptions& options = {}) {
  const kernel::Module module = kernel::parse("lockstep.kernel 1\n" + body).orThrow();
  KernelDispatch dispatch{.module = module,
                          .entry = {},
                          .groups = groups,
                          .bindings = {{.group = 0, .binding = 0, .buffer = 0, .size = 256}},
                          .buffer_sizes = {256}};
  const program::ValidProgram program = makeProgram(dispatch).orThrow();
  const std::unique_ptr<Backend> backend = makeReference(options);
  PreparedDispatch prepared = PreparedDispatch::make(*backend, program).orThrow();
  std::vector<Bytes> buffers{Bytes(256)};
  Status status = prepared.run(buffers);
  std::optional<Printed> printed = prepared.takePrinted();
  EXPECT_TRUE(printed.has_value());
  return {std::move(status), printed.value_or(Printed{})};
}

std::string idsOf(const Printed& printed) {
  std::string text;
  for (const PrintedLine& line : printed.lines)
    text += fmt::format("{}.{}:{} ", line.workgroup[0], line.local[0], toString(line.values[0]));
  return text;
}

TEST(Print, lines_name_place_invocation_and_values) {
  const Ran ran = run(R"(enable f16
fn @main(%id: vec3<u32> {builtin = local_invocation_id}) {workgroup_size = [1, 2, 1]} {
  print 1.5f, -7i, 4000000000u, true, 0.5h, %id
}
)",
                      {1, 1, 2});
  ASSERT_TRUE(ran.status.ok()) << toString(ran.status.diagnostics());
  EXPECT_EQ(toString(ran.printed),
            "main.kir:4: workgroup (0, 0, 0), local (0, 0, 0): 1.5, -7, 4000000000, true, 0.5, (0, 0, 0)\n"
            "main.kir:4: workgroup (0, 0, 0), local (0, 1, 0): 1.5, -7, 4000000000, true, 0.5, (0, 1, 0)\n"
            "main.kir:4: workgroup (0, 0, 1), local (0, 0, 0): 1.5, -7, 4000000000, true, 0.5, (0, 0, 0)\n"
            "main.kir:4: workgroup (0, 0, 1), local (0, 1, 0): 1.5, -7, 4000000000, true, 0.5, (0, 1, 0)\n");
  EXPECT_EQ(ran.printed.left_out, 0u);
}

TEST(Print, texts_names_and_values_with_parts) {
  const Ran ran = run(R"(struct Point {
  at: vec3<f32> {offset = 0}
  marks: array<u32, 2> {offset = 12}
}
fn @main(%i: u32 {builtin = local_invocation_index}) {workgroup_size = [1, 1, 1]} {
  %v: ptr<function, array<Point, 2>> = var
  %m: ptr<function, u32> = access %v, 1u, 1u, 1u
  store %m, 7u
  %all: array<Point, 2> = load %v
  print {labels = ["start"]}
  print %all, mat2x3<f32>(vec3<f32>(1.0f, 2.0f, 3.0f), vec3<f32>(4.0f, 5.0f, 6.0f)), true {labels = ["half =", "points", "m", ""]}
}
)",
                      {1, 1, 1});
  ASSERT_TRUE(ran.status.ok()) << toString(ran.status.diagnostics());
  EXPECT_EQ(toString(ran.printed),
            "main.kir:11: workgroup (0, 0, 0), local (0, 0, 0): start\n"
            "main.kir:12: workgroup (0, 0, 0), local (0, 0, 0): half = points = [{at: (0.0, 0.0, 0.0), marks: [0, 0]}, "
            "{at: (0.0, 0.0, 0.0), marks: [0, 7]}], m = [(1.0, 2.0, 3.0), (4.0, 5.0, 6.0)], true\n");
}

TEST(Print, only_invocations_of_a_range) {
  const kernel::Module module = kernel::parse(R"(lockstep.kernel 1
fn @show(%x: u32) {
  print %x
}
fn @main(%i: u32 {builtin = global_invocation_index}) {workgroup_size = [4, 2, 1]} {
  %odd: u32 = and %i, 1u
  %is: bool = eq %odd, 1u
  if %is {
    call @show(%i)
  } else {
    print %i
  }
}
)")
                                    .orThrow();
  const auto printedIn = [&](const passes::InvocationRange& range) {
    const kernel::Module restricted = *kernel::validate(passes::restrictPrint(module, range)).orThrow();
    const std::string text = kernel::print(restricted);
    return idsOf(run(text.substr(text.find('\n') + 1), {2, 1, 1}).printed);
  };
  EXPECT_EQ(printedIn({.first = {2, 1, 0}, .last = {5, 1, UINT32_MAX}}), "0.2:10 0.3:11 1.0:12 1.1:13 ");
  EXPECT_EQ(printedIn({.first = {7, 0, 0}, .last = {7, UINT32_MAX, 0}}), "1.3:7 1.3:15 ");
  EXPECT_EQ(printedIn({.first = {0, 2, 0}}), "");
  EXPECT_EQ(printedIn({}), idsOf(run(kernel::print(module).substr(18), {2, 1, 1}).printed));
}

constexpr const char* kLoop = R"(fn @main(%lid: u32 {builtin = local_invocation_index}) {workgroup_size = [3, 1, 1]} {
  %i: ptr<function, u32> = var
  loop {
    %0: u32 = load %i
    %1: bool = ge %0, %lid
    if %1 {
      break
    }
    %2: u32 = mul %0, 10u
    print %2
  } continuing {
    %3: u32 = load %i
    %4: u32 = add %3, 1u
    store %i, %4
  }
  print %lid
}
)";

TEST(Print, order_is_by_invocation_and_then_by_time) {
  const std::string expected = "0.0:0 0.1:0 0.1:1 0.2:0 0.2:10 0.2:2 1.0:0 1.1:0 1.1:1 1.2:0 1.2:10 1.2:2 ";
  for (const uint32_t threads : {1u, 4u}) {
    for (const uint64_t seed : {uint64_t{0}, uint64_t{5}}) {
      EXPECT_EQ(idsOf(run(kLoop, {2, 1, 1}, {.order_seed = seed, .max_threads = threads}).printed), expected);
    }
  }
}

TEST(Print, batches_of_workgroups_change_nothing) {
  const kernel::Module module = kernel::parse(std::string("lockstep.kernel 1\n") + kLoop).orThrow();
  const std::string expected = idsOf(run(kLoop, {9, 1, 1}).printed);
  for (const uint32_t batch : {1u, 2u, 5u, 16u}) {
    const reference::Bytecode code = reference::decode(module, batch).orThrow();
    reference::ThreadPool pool(1);
    reference::Outcome outcome = reference::dispatch(pool, code, {}, {9, 1, 1}, {});
    EXPECT_EQ(idsOf(reference::printedLines(std::move(outcome.printed), code, module, "kernel", {9, 1, 1})), expected);
  }
}

TEST(Print, the_first_lines_are_kept_and_the_others_counted) {
  const uint32_t groups = 700;
  for (const uint32_t threads : {1u, 4u}) {
    const Printed printed = run(kLoop, {groups, 1, 1}, {.max_threads = threads}).printed;
    ASSERT_EQ(printed.lines.size(), kMostPrintedLines);
    EXPECT_EQ(printed.left_out, 6 * groups - kMostPrintedLines);
    for (size_t i = 0; i < printed.lines.size(); ++i) EXPECT_EQ(printed.lines[i].workgroup[0], i / 6);
    EXPECT_TRUE(toString(printed).ends_with("... and 3200 more lines of print\n"));
  }
}

TEST(Print, a_run_that_fails_keeps_what_was_printed_before) {
  const std::string body = R"(var @data: array<u32> {access = read_write, binding = 0, group = 0, space = storage}
fn @main(%gid: vec3<u32> {builtin = global_invocation_id}) {workgroup_size = [32, 1, 1]} {
  %i: u32 = extract %gid, 0u
  print %i
  %p: ptr<storage, u32, read_write> = access @data, %i
  store %p, %i
  print 7u
}
)";
  const std::string first = idsOf(run(body, {40, 1, 1}, {.max_threads = 1}).printed);
  EXPECT_TRUE(first.starts_with("0.0:0 ")) << first;
  for (const uint32_t threads : {1u, 2u, 5u}) {
    const Ran ran = run(body, {40, 1, 1}, {.max_threads = threads});
    ASSERT_FALSE(ran.status.ok());
    EXPECT_EQ(ran.status.diagnostics()[0].code, "reference.out_of_bounds");
    EXPECT_EQ(idsOf(ran.printed), first) << threads;
    EXPECT_EQ(ran.printed.left_out, 0u);
  }
}

TEST(Print, lines_are_those_of_the_last_run_and_are_taken_once) {
  const kernel::Module module = kernel::parse("lockstep.kernel 1\nfn @main() {workgroup_size = [1, 1, 1]} {\n  print 1u\n}\n").orThrow();
  const program::ValidProgram program =
      makeProgram({.module = module, .entry = {}, .groups = {1, 1, 1}, .bindings = {}, .buffer_sizes = {}}).orThrow();
  const std::unique_ptr<Backend> backend = makeReference();
  PreparedDispatch prepared = PreparedDispatch::make(*backend, program).orThrow();
  std::vector<Bytes> buffers;
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(prepared.run(buffers).ok());
  EXPECT_EQ(prepared.takePrinted()->lines.size(), 1u);
  EXPECT_EQ(prepared.takePrinted()->lines.size(), 0u);
}

}  // namespace
}  // namespace lockstep
