// SPDX-License-Identifier: Apache-2.0
// What commands have to do, on programs by hand: one arena of 4 KiB with the buffers a and b.
#include "passes/plan/command_work.h"

#include <gtest/gtest.h>

#include "ir/graph/builder.h"

namespace lockstep::passes {
namespace {

using kernel::Access;
using program::BufferId;
using program::KernelId;
using program::Program;
using program::Range;

constexpr uint64_t kBytes = 1024;

Program emptyProgram() {
  Program program;
  program.arenas.push_back({.name = "workspace", .role = program::ArenaRole::Workspace, .size = 4096});
  for (const uint64_t offset : {uint64_t{0}, kBytes}) {
    program.buffers.push_back({.name = offset == 0 ? "a" : "b",
                               .type = {.dtype = graph::DType::F32, .shape = graph::Shape{256}},
                               .arena = program::ArenaId(size_t{0}),
                               .offset = offset,
                               .size = kBytes});
  }
  return program;
}

Range a(uint64_t offset, uint64_t size) { return {BufferId(size_t{0}), offset, size, Access::Read}; }
Range b(uint64_t offset, uint64_t size) { return {BufferId(size_t{1}), offset, size, Access::ReadWrite}; }

program::Command dispatch(size_t kernel, std::vector<Range> bindings, uint32_t level) {
  return {program::Dispatch{KernelId(kernel), {1, 1, 1}, std::move(bindings)}, level, "x"};
}

/// exp(a0) + a0 over 64 elements, called in two lines.
program::Kernel symbolic(const std::string& name) {
  graph::Builder builder;
  const graph::ValueId in =
      builder.make("input", {}, {{"name", std::string("a0")}, {"dtype", graph::DType::F32}, {"shape", std::vector<int64_t>{64}}});
  builder.setLocation(builder.addLocation({"toy.cpp", 9, 1}));
  const graph::ValueId exp = builder.make("exp", {in}, {});
  builder.setLocation(builder.addLocation({"toy.cpp", 3, 1}));
  builder.output(graph::OutputKind::Result, "r0", builder.make("add", {exp, in}, {}));
  return {name, program::SymbolicKernel{builder.take(), program::MapPlan{.lanes = 64}}};
}

TEST(CountWork, a_copy_reads_and_writes_and_computes_nothing) {
  Program program = emptyProgram();
  program.commands.push_back({program::Copy{a(0, 512), b(0, 512)}, 0, "copy"});
  const std::vector<CommandWork> work = countWork(program, program);
  ASSERT_EQ(work.size(), 1u);
  EXPECT_EQ(work[0].bytes, 1024u);
  EXPECT_EQ(work[0].operations, 0u);
  EXPECT_TRUE(work[0].lines.empty());
}

TEST(CountWork, a_byte_that_is_bound_twice_counts_once) {
  Program program = emptyProgram();
  program.kernels.push_back({"own", kernel::Module{}});
  program.commands.push_back(dispatch(0, {a(0, 512), a(256, 512), a(256, 64), b(0, 256)}, 0));
  EXPECT_EQ(countWork(program, program)[0].bytes, 768u + 256u);
}

TEST(CountWork, a_kernel_that_came_with_its_node_is_not_guessed) {
  Program program = emptyProgram();
  program.kernels.push_back({"own", kernel::Module{}});
  program.commands.push_back(dispatch(0, {a(0, 256), b(0, 256)}, 0));
  EXPECT_EQ(countWork(program, program)[0].operations, std::nullopt);
}

TEST(CountWork, numbers_come_from_the_graphs_of_the_plan) {
  Program planned = emptyProgram();
  planned.kernels.push_back(symbolic("k0"));
  planned.commands.push_back(dispatch(0, {a(0, 256), b(0, 256)}, 0));
  Program program = planned;
  program.kernels[0].code = kernel::Module{};
  const std::vector<CommandWork> work = countWork(planned, program);
  EXPECT_EQ(work[0].operations, 128u);
  EXPECT_EQ(work[0].lines, (std::vector<Location>{{"toy.cpp", 3, 1}, {"toy.cpp", 9, 1}}));
}

TEST(CountWork, a_merged_dispatch_does_the_work_of_its_parts) {
  Program planned = emptyProgram();
  planned.kernels = {symbolic("k0"), {"own", kernel::Module{}}};
  planned.commands = {dispatch(0, {a(0, 256), b(0, 256)}, 0), dispatch(0, {a(256, 256), b(256, 256)}, 0),
                      dispatch(0, {a(0, 256), b(0, 256)}, 1), dispatch(1, {a(0, 256), b(256, 256)}, 1)};
  Program program = emptyProgram();
  program.kernels.push_back({"merged", kernel::Module{}});
  for (const uint32_t level : {0u, 1u}) {
    program.commands.push_back(dispatch(0, {a(0, 256), b(0, 256), a(256, 256), b(256, 256)}, level));
  }
  const std::vector<CommandWork> work = countWork(planned, program);
  EXPECT_EQ(work[0].operations, 256u);
  EXPECT_EQ(work[0].bytes, 1024u);
  EXPECT_EQ(work[1].operations, std::nullopt);  // one part is not known
  EXPECT_EQ(work[1].lines.size(), 2u);
}

}  // namespace
}  // namespace lockstep::passes
