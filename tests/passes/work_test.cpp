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

/// Rows of a table [64, 4], each times 2; with `sum`, plus the sum of the table.
program::Kernel rowsOfTable(int64_t rows, bool sum) {
  graph::Builder builder;
  const auto input = [&](const char* name, graph::DType dtype, std::vector<int64_t> shape) {
    return builder.make("input", {}, {{"name", std::string(name)}, {"dtype", dtype}, {"shape", std::move(shape)}});
  };
  const graph::ValueId table = input("a0", graph::DType::F32, {64, 4});
  const graph::ValueId taken = builder.make("embedding", {table, input("a1", graph::DType::I32, {rows})});
  graph::ValueId result = builder.mul(taken, 2.0);
  if (sum) result = builder.add(result, builder.make("sum", {table}, {{"axes", std::vector<int64_t>{0}}, {"keep_dims", true}}));
  builder.output(graph::OutputKind::Result, "r0", result);
  return {"rows", program::SymbolicKernel{builder.take(), program::MapPlan{.lanes = 64}}};
}

TEST(CountWork, of_a_table_the_rows_that_are_selected_count) {
  const auto bytes = [](int64_t rows, bool sum) {
    Program planned = emptyProgram();
    planned.kernels.push_back(rowsOfTable(rows, sum));
    const auto of_index = static_cast<uint64_t>(4 * rows), of_rows = 4 * of_index;
    planned.commands.push_back(dispatch(0, {a(0, 1024), {BufferId(size_t{1}), 0, of_index, Access::Read}, b(512, of_rows)}, 0));
    Program program = planned;
    program.kernels[0].code = kernel::Module{};
    return countWork(planned, program)[0].bytes - of_index - of_rows;
  };
  EXPECT_EQ(bytes(3, false), 3u * 16);
  EXPECT_EQ(bytes(16, false), 16u * 16);
  EXPECT_EQ(bytes(3, true), 1024u);  // which reads all of it
}

TEST(CountWork, a_table_is_whole_where_another_part_reads_it_all) {
  Program planned = emptyProgram();
  planned.kernels = {rowsOfTable(3, false), rowsOfTable(3, true), {"own", kernel::Module{}}};
  const Range index{BufferId(size_t{1}), 0, 12, Access::Read};
  planned.commands = {dispatch(0, {a(0, 1024), index, b(256, 48)}, 0), dispatch(0, {a(0, 1024), index, b(512, 48)}, 0),
                      dispatch(0, {a(0, 1024), index, b(256, 48)}, 1), dispatch(1, {a(0, 1024), index, b(512, 48)}, 1),
                      dispatch(0, {a(0, 1024), index, b(256, 48)}, 2), dispatch(2, {a(0, 1024), b(512, 48)}, 2)};
  Program program = emptyProgram();
  program.kernels.push_back({"merged", kernel::Module{}});
  for (const uint32_t level : {0u, 1u, 2u}) program.commands.push_back(dispatch(0, {a(0, 1024), index, b(256, 48), b(512, 48)}, level));
  const std::vector<CommandWork> work = countWork(planned, program);
  EXPECT_EQ(work[0].bytes, 2u * 48 + 12 + 96);
  EXPECT_EQ(work[1].bytes, 1024u + 12 + 96);
  EXPECT_EQ(work[2].bytes, 1024u + 12 + 96);
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
