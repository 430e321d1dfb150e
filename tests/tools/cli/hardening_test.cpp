// SPDX-License-Identifier: Apache-2.0
// The command among hostile files, full disks and closed streams: a clear error and an exit code, whatever happens.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>

#include "frontend/io/npy.h"
#include "frontend/io/safetensors.h"
#include "tests/tools/cli/process.h"

namespace lockstep {
namespace {

using testing::Outcome;

constexpr std::string_view kKernel =
    "@group(0) @binding(0) var<storage, read_write> x: array<f32, 4>;\n"
    "@compute @workgroup_size(4) fn main(@builtin(global_invocation_id) id: vec3<u32>) { x[id.x] += 1.5; }\n";
constexpr std::string_view kGraph =
    "lockstep.graph 1\ngraph {\n  %x: f32[2] = input {dtype = f32, name = \"x\", shape = [2]}\n  %1: f32[2] = relu %x\n"
    "  output result \"y\" %1\n}\n";

class Hardening : public ::testing::Test {
 protected:
  Hardening() : scratch_("hardening") {
    file("k.wgsl", kKernel);
    file("g.graph", kGraph);
  }
  std::string file(const std::string& name, std::string_view text) {
    EXPECT_TRUE(io::writeFileAtomically(scratch_ / name, text).ok());
    return scratch_ / name;
  }
  Outcome run(const std::string& arguments) { return testing::runTool(scratch_, arguments); }
  /// With shell text before the command and in place of the redirections of runTool(). Runs in the scratch folder.
  Outcome runWith(const std::string& before, const std::string& arguments, const std::string& after) {
    const std::string err = scratch_ / "stderr";
    const int raw =
        std::system(fmt::format("cd {} && {} {} {} {}", (scratch_ / "").string(), before, LOCKSTEP_TOOL, arguments, after).c_str());
    Outcome outcome{.status = WIFEXITED(raw) ? WEXITSTATUS(raw) : -1};
    if (std::filesystem::exists(err)) outcome.err = *io::readTextFile(err);
    return outcome;
  }
  testing::ScratchDirectory scratch_;
};

TEST_F(Hardening, what_is_printed_on_a_full_disk_is_an_error_of_every_verb) {
  for (const char* arguments :
       {"--help", "--version", "train --help", "devices", "explain file.read", "check k.wgsl --json", "reflect k.wgsl", "fmt - <k.wgsl",
        "compile k.wgsl --format wgsl -o -", "opt g.graph", "run k.wgsl --device reference --bind 0.0=zeros:16 --out 0.0=-", "new project",
        "manual", "completions bash", "train sine --steps 1 --no-out --device reference --json --quiet",
        "explore sine --device reference --json", "profile sine --device reference --steps 1 --json"}) {
    const Outcome outcome = runWith("", arguments, ">/dev/full 2>stderr");
    EXPECT_EQ(outcome.status, 4) << arguments << "\n" << outcome.err;
    EXPECT_NE(outcome.err.find("file.write"), std::string::npos) << arguments << "\n" << outcome.err;
    EXPECT_EQ(outcome.err.find("bug"), std::string::npos) << arguments << "\n" << outcome.err;
  }
}

TEST_F(Hardening, an_error_keeps_its_exit_code_on_a_full_disk) {
  EXPECT_EQ(runWith("", "check nothing.wgsl --json", ">/dev/full 2>stderr").status, 4);
  EXPECT_EQ(runWith("", "trian --json", ">/dev/full 2>stderr").status, 2);
}

TEST_F(Hardening, closed_streams_are_nobodys_file) {
  const std::string ugly = "@compute @workgroup_size(1) fn main() { }\n", path = file("ugly.wgsl", ugly);
  EXPECT_EQ(runWith("", "fmt ugly.wgsl", ">&- 2>stderr <&-").status, 4);
  EXPECT_EQ(io::readTextFile(path)->find("ugly.wgsl"), std::string::npos) << "the name was printed into the file";
  for (const char* closed : {">&-", ">&- 2>&-", ">&- 2>&- <&-"}) {
    EXPECT_EQ(runWith("", "opt g.graph", closed).status, 4) << closed;
    EXPECT_EQ(runWith("", "opt g.graph -o out.graph", closed).status, 0) << closed;
    EXPECT_EQ(*io::readTextFile(scratch_ / "out.graph"), kGraph) << closed;
  }
  EXPECT_EQ(runWith("", "opt nothing.graph", "2>&- >/dev/null").status, 4);
}

TEST_F(Hardening, a_workgroup_of_more_than_32_bits_of_invocations_is_refused) {
  for (const char* size : {"65536, 65536", "65537, 65536", "2147483647, 2147483647, 2147483647"}) {
    file("large.wgsl", fmt::format("@group(0) @binding(0) var<storage, read_write> x: array<f32>;\n"
                                   "@compute @workgroup_size({}) fn main() {{ x[0] = 1; }}\n",
                                   size));
    const Outcome outcome = run("run " + (scratch_ / "large.wgsl").string() + " --device reference --bind 0.0=zeros:16");
    EXPECT_EQ(outcome.status, 4) << size << outcome.err;
    EXPECT_NE(outcome.err.find("invocations"), std::string::npos) << outcome.err;
  }
}

TEST_F(Hardening, long_filters_and_names_are_no_end_of_the_stack) {
  const std::string filter(100'000, 'a'), nested = std::string(5000, '(') + std::string(5000, ')');
  const float two[] = {1, -2};
  io::TensorFile golden;
  const std::string name(200'000, 'x');
  golden.metadata[name] = R"({"op": "relu", "attrs": {}})";
  golden.tensors[name + "/in/x"] = io::Array::fromFloats({2}, two);
  golden.tensors[name + "/out/y"] = io::Array::fromDoubles({2}, std::vector<double>{1, 0});
  const std::string path = scratch_ / "golden.safetensors";
  ASSERT_TRUE(io::writeSafetensors(path, golden).ok());
  EXPECT_EQ(run("verify golden " + path + " --device evaluate --filter " + filter).status, 2);
  EXPECT_EQ(run("verify golden " + path + " --device evaluate --filter '" + nested + "'").status, 2);
  EXPECT_EQ(run("verify golden " + path + " --device evaluate --filter '(x|y)*z'").status, 2) << "no case matches";
  EXPECT_EQ(run("verify golden " + path + " --device evaluate --filter '(x|y)*'").status, 0);
}

TEST_F(Hardening, the_lines_of_files_that_a_kernel_names_are_not_shown) {
  const std::string secret = file("secret", "password\n");
  const std::string kernel =
      file("k.kir",
           "lockstep.kernel 1\nvar @x: array<u32> {access = read_write, binding = 0, group = 0, space = storage}\n"
           "fn @main() {workgroup_size = [1, 1, 1]} {\n  %p: ptr<storage, u32, read_write> = access @x, 99u {location = [\"" +
               secret + "\", 1, 1]}\n  store %p, 1u {location = [\"" + secret + "\", 1, 1]}\n  return\n}\n");
  const Outcome outcome = run("run " + kernel + " --device reference --bind 0.0=zeros:16");
  EXPECT_NE(outcome.err.find(secret + ":1:1: error: reference.out_of_bounds"), std::string::npos) << outcome.err;
  EXPECT_EQ(outcome.err.find("password"), std::string::npos) << outcome.err;
}

TEST_F(Hardening, control_characters_do_not_reach_the_terminal) {
  const std::string path = file("bell.wgsl", "fn f() { \x1b]0;title\x07 }\n// \xe2\x80\xae\n");
  for (const char* verb : {"check ", "reflect ", "run ", "compile -o x.wgsl ", "fmt "}) {
    const Outcome outcome = run(verb + path);
    EXPECT_EQ(outcome.status, 4) << verb << outcome.err;
    EXPECT_EQ((outcome.out + outcome.err).find_first_of("\x1b\x07"), std::string::npos) << verb << outcome.err << outcome.out;
  }
  const Outcome missing = run("check \"$(printf 'a\\033[31m')\"");
  EXPECT_EQ(missing.status, 4);
  EXPECT_EQ(missing.err.find('\x1b'), std::string::npos) << missing.err;
}

TEST_F(Hardening, refusals_of_the_system_are_no_bugs_of_ours) {
  const std::string deep(5000, 'a');
  for (const std::string& arguments :
       {"explore " + deep, "conformance " + deep, "check " + deep, "train sine --steps 1 --quiet --device reference --out " + deep,
        "new " + deep, "verify golden " + deep, "explore sine --device reference --out " + deep, "profile " + deep}) {
    const Outcome outcome = run(arguments);
    EXPECT_TRUE(outcome.status == 4 || outcome.status == 2) << arguments.substr(0, 40) << outcome.status << outcome.err.substr(0, 300);
    EXPECT_EQ(outcome.err.find("this is a bug"), std::string::npos) << outcome.err.substr(0, 300);
  }
  const Outcome temporary = runWith("TMPDIR=/nowhere/at/all", "explore sine --device reference", ">/dev/null 2>stderr");
  EXPECT_EQ(temporary.status, 4) << temporary.err;
  EXPECT_NE(temporary.err.find("file.directory"), std::string::npos) << temporary.err;
}

TEST_F(Hardening, links_in_a_circle_are_no_bug_of_ours) {
  std::filesystem::create_symlink("circle", scratch_ / "circle");
  for (const char* arguments : {"check circle", "conformance circle", "explore circle", "verify golden circle", "opt circle",
                                "train sine --steps 1 --quiet --device reference --out circle", "new circle"}) {
    const Outcome outcome = runWith("", arguments, ">/dev/null 2>stderr");
    EXPECT_TRUE(outcome.status == 4 || outcome.status == 2) << arguments << outcome.status << outcome.err;
    EXPECT_EQ(outcome.err.find("this is a bug"), std::string::npos) << outcome.err;
  }
}

#ifdef LOCKSTEP_SANITIZED
constexpr const char* kSmallStack = "";  // a sanitizer's frames are many times as large
#else
constexpr const char* kSmallStack = "ulimit -s 4096 &&";
#endif

TEST_F(Hardening, the_deepest_kernels_need_at_most_the_stated_stack) {
  constexpr int kCalls = 1990, kBlocks = 250;
  const std::string head = "@group(0) @binding(0) var<storage, read_write> o: array<u32>;\n";
  std::string calls = head + "fn f0(x: u32) -> u32 { return x + 1; }\n";
  for (int i = 1; i < kCalls; ++i) calls += fmt::format("fn f{}(x: u32) -> u32 {{ return f{}(x) + 1; }}\n", i, i - 1);
  calls += fmt::format("@compute @workgroup_size(1) fn main() {{ o[0] = f{}(0); }}\n", kCalls - 1);
  file("calls.wgsl", calls);
  std::string blocks =
      "lockstep.kernel 1\nvar @o: array<u32> {access = read_write, binding = 0, group = 0, space = storage}\n"
      "fn @main(%i: u32 {builtin = local_invocation_index}) {workgroup_size = [1, 1, 1]} {\n  %c: bool = eq %i, 0u\n";
  for (int i = 0; i < kBlocks; ++i) blocks += "if %c {\n";
  blocks += "%p: ptr<storage, u32, read_write> = access @o, 0u\nstore %p, 1990u\n";
  for (int i = 0; i <= kBlocks; ++i) blocks += "}\n";
  file("blocks.kir", blocks);
  for (const char* name : {"calls.wgsl", "blocks.kir"}) {
    const Outcome ran =
        runWith(kSmallStack, fmt::format("run {} --device reference --bind 0.0=fill:u32[1]=0 --out 0.0=o.npy", name), ">stdout 2>stderr");
    EXPECT_EQ(ran.status, 0) << name << ran.err;
    EXPECT_EQ(io::readNpy(scratch_ / "o.npy").orThrow().at(0), 1990) << name;
    EXPECT_EQ(runWith(kSmallStack, fmt::format("compile {} -o out.wgsl", name), ">stdout 2>stderr").status, 0) << name;
  }
}

/// A kernel that reads the element of a variable that its input names, "in bounds".
constexpr std::string_view kClaimingProgram = R"(lockstep.program 1
profile portable
arena @input: input {size = 256}
arena @output: output {size = 256}
buffer %x: u32[1] input {arena = @input, offset = 0, size = 4}
buffer %y: u32[1] output {arena = @output, offset = 0, size = 4}
kernel @claims {
  lockstep.kernel 1
  var @source: array<u32, 1> {access = read, binding = 0, group = 0, space = storage}
  var @target: array<u32, 1> {access = read_write, binding = 1, group = 0, space = storage}
  var @own: array<u32, 4> {space = private}
  fn @main() {workgroup_size = [1, 1, 1]} {
    %0: ptr<storage, u32, read> = access @source, 0u
    %1: u32 = load %0
    %2: ptr<private, u32> = access @own, %1 {in_bounds = true}
    %3: u32 = load %2
    %4: ptr<storage, u32, read_write> = access @target, 0u
    store %4, %3
    return
  }
}
input "x" %x
output result "y" %y
level 0:
  dispatch @claims groups [1, 1, 1] (read %x, read_write %y) "claims"
end
)";

TEST_F(Hardening, what_a_program_claims_is_not_believed) {
  const std::string program = file("claims.program", kClaimingProgram);
  const std::string inputs = scratch_ / "inputs.safetensors";
  io::Array x = io::Array::zeros(io::ElementType::U32, {1});
  ASSERT_TRUE(io::writeSafetensors(inputs, {.tensors = {{"x", x}}, .metadata = {}}).ok());
  const std::string arguments = "run " + program + " --device reference --inputs " + inputs;
  EXPECT_EQ(run(arguments).status, 0) << run(arguments).err;
  x.data[2] = std::byte{1};  // element 65536
  ASSERT_TRUE(io::writeSafetensors(inputs, {.tensors = {{"x", x}}, .metadata = {}}).ok());
  const Outcome outcome = run(arguments);
  EXPECT_EQ(outcome.status, 4) << outcome.out;
  EXPECT_NE(outcome.err.find("out_of_bounds"), std::string::npos) << outcome.err;
}

constexpr std::string_view kOpenGroup = R"(lockstep.graph 1
# a comment, so that lines of the file are not those of the printer

graph {
  %x: f32[2] = input {dtype = f32, name = "x", shape = [2]}
  %y: f32[2] = input {dtype = f32, name = "y", shape = [2]}
  %1: f32[2] = group %x {kind = "map"} {
    %2: f32[2] = add %x, %y
    yield %2
  }
  output result "r" %1
}
)";

// A body that cannot be a kernel of the kind that its group claims.
TEST_F(Hardening, groups_of_a_wrong_kind_are_refused) {
  for (const char* kind : {"rows", "columns", "scan", "scatter", "contract"}) {
    const std::string text = fmt::format(
        "lockstep.graph 1\ngraph {{\n  %x: f32[2] = input {{dtype = f32, name = \"x\", shape = [2]}}\n  %1: f32[2] = group %x {{kind = "
        "\"{}\"}} {{\n    %2: f32[2] = exp %x\n    yield %2\n  }}\n  output result \"r\" %1\n}}\n",
        kind);
    const Outcome outcome = run("opt " + file("wrong_kind.graph", text) + " --passes schedule");
    EXPECT_EQ(outcome.status, 4) << kind << outcome.err;
    EXPECT_NE(outcome.err.find("schedule.group"), std::string::npos) << outcome.err;
  }
}

TEST_F(Hardening, graphs_of_other_forms_are_refused_by_passes) {
  const std::string open = file("open.graph", kOpenGroup);
  const Outcome captured = run("opt " + open + " --passes schedule");
  EXPECT_EQ(captured.status, 4) << captured.err;
  EXPECT_NE(captured.err.find("schedule.group"), std::string::npos) << captured.err;
  for (const char* pass : {"fuse", "splitReductions", "optimizer"}) {
    const Outcome outcome = run("opt " + open + " --passes " + pass);
    EXPECT_EQ(outcome.status, 4) << pass << outcome.err;
    EXPECT_NE(outcome.err.find("pipeline.stage"), std::string::npos) << outcome.err;
  }
}

// A folder of the name that it could be expected to take is somebody else's: it was written into, and removed.
TEST_F(Hardening, the_dump_of_explore_lies_in_a_folder_of_its_own) {
  std::filesystem::create_directory(scratch_ / "tmp");
  const std::string mine = "tmp/lockstep-explore-$$";  // exec keeps the number of the process
  EXPECT_EQ(runWith(fmt::format("mkdir {0} && touch {0}/keep && TMPDIR=tmp exec", mine), "explore sine --device reference --out page.html",
                    ">/dev/null 2>stderr")
                .status,
            0);
  size_t kept = 0, others = 0;
  for (const auto& entry : std::filesystem::directory_iterator(scratch_ / "tmp")) {
    ++(std::filesystem::exists(entry.path() / "keep") ? kept : others);
  }
  EXPECT_EQ(kept, 1u);
  EXPECT_EQ(others, 0u) << "its own is removed";
}

}  // namespace
}  // namespace lockstep
