// SPDX-License-Identifier: Apache-2.0
// `lockstep run` on the reference device.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstring>

#include "frontend/io/npy.h"
#include "tests/tools/cli/process.h"

namespace lockstep {
namespace {

using testing::Outcome;

constexpr std::string_view kScale = R"(
struct Settings { factor: f32, count: u32 }
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(1) @binding(3) var<storage, read_write> y: array<f32>;
@group(1) @binding(4) var<storage, read> settings: Settings;
override bias: f32 = 0.0;
@compute @workgroup_size(4)
fn scale(@builtin(global_invocation_id) id: vec3<u32>) {
  if (id.x < settings.count) { y[id.x] = x[id.x] * settings.factor + bias; }
}
@compute @workgroup_size(1)
fn clear() { y[0] = 0.0; }
)";

class Run : public ::testing::Test {
 protected:
  Run() : scratch_("run") {
    EXPECT_TRUE(io::writeFileAtomically(scratch_ / "k.wgsl", kScale).ok());
    // factor 2.5, count 5
    const uint32_t words[] = {0x40200000u, 5};
    io::Array settings = io::Array::zeros(io::ElementType::U32, {2});
    std::memcpy(settings.data.data(), words, sizeof(words));
    EXPECT_TRUE(io::writeNpy(scratch_ / "settings.npy", settings).ok());
  }
  Outcome run(const std::string& arguments) {
    return testing::runTool(scratch_, "run " + (scratch_ / "k.wgsl").string() + " --device reference " + arguments);
  }
  std::string settings() { return " --bind 1.4=" + (scratch_ / "settings.npy").string(); }
  testing::ScratchDirectory scratch_;
};

TEST_F(Run, computes_prints_and_writes) {
  const std::string out = scratch_ / "y.npy";
  const Outcome outcome = run("--entry scale --dispatch 2 --bind 0.0=iota:f32[8] --bind 1.3=fill:f32[8]=-1" + settings() +
                              " --override bias=0.5 --out 1.3=- --out 1.3=" + out);
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "1.3 y: f32[8]\n  0.5 3.0 5.5 8.0 10.5 -1.0 -1.0 -1.0\n");
  const auto array = io::readNpy(out);
  ASSERT_TRUE(array.ok());
  EXPECT_EQ(array->toFloats(), (std::vector<float>{0.5f, 3, 5.5f, 8, 10.5f, -1, -1, -1}));
}

TEST_F(Run, overrides_may_be_true_or_false) {
  const std::string path = scratch_ / "flag.wgsl";
  ASSERT_TRUE(io::writeFileAtomically(path, std::string_view("override flag: bool = false;\n"
                                                             "@group(0) @binding(0) var<storage, read_write> v: array<u32, 1>;\n"
                                                             "@compute @workgroup_size(1) fn main() { v[0] = select(3u, 7u, flag); }\n"))
                  .ok());
  const auto outcome = [&](const std::string& value) {
    return testing::runTool(scratch_, "run " + path + " --device reference --bind 0.0=zeros --out 0.0=- --override flag=" + value);
  };
  EXPECT_EQ(outcome("true").out, "0.0 v: u32[1]\n  7\n");
  EXPECT_EQ(outcome("false").out, "0.0 v: u32[1]\n  3\n");
  EXPECT_NE(outcome("yes").err.find("usage.override"), std::string::npos);
}

TEST_F(Run, every_type_is_printed_by_members_and_elements) {
  const std::string path = scratch_ / "types.wgsl";
  ASSERT_TRUE(io::writeFileAtomically(path, std::string_view("enable f16;\n"
                                                             "struct P { position: vec3f, mass: f16, m: mat2x2f }\n"
                                                             "@group(0) @binding(0) var<storage, read_write> v: array<vec3f>;\n"
                                                             "@group(0) @binding(1) var<storage, read_write> p: P;\n"
                                                             "@compute @workgroup_size(1) fn main() {\n"
                                                             "  v[1] = vec3f(1, 2, 3); p.mass = 1.5; p.m[1] = vec2f(3, 4);\n"
                                                             "}\n"))
                  .ok());
  const Outcome outcome =
      testing::runTool(scratch_, "run " + path + " --device reference --bind 0.0=zeros:32 --bind 0.1=zeros --out 0.0=- --out 0.1=- --time");
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_TRUE(
      outcome.out.starts_with("0.0 v: array<vec3<f32>>\n  [0] (0.0, 0.0, 0.0)\n  [1] (1.0, 2.0, 3.0)\n"
                              "0.1 p: P\n  position: (0.0, 0.0, 0.0)\n  mass: 1.5\n  m: [(0.0, 0.0), (3.0, 4.0)]\ntime: "))
      << outcome.out;
}

TEST_F(Run, immediate_data_and_structs_take_lists) {
  const std::string path = scratch_ / "immediate.wgsl";
  ASSERT_TRUE(
      io::writeFileAtomically(path, std::string_view("struct S { scale: vec3f, count: u32, m: mat2x2f }\n"
                                                     "var<immediate> s: S;\n"
                                                     "@group(0) @binding(0) var<uniform> u: S;\n"
                                                     "@group(0) @binding(1) var<storage, read_write> out: array<f32, 4>;\n"
                                                     "@compute @workgroup_size(1) fn main() {\n"
                                                     "  out[0] = s.scale.y; out[1] = s.m[1].x; out[2] = f32(s.count); out[3] = u.m[0].y;\n"
                                                     "}\n@compute @workgroup_size(1) fn none() { out[0] = 1; }\n"))
          .ok());
  const auto runIt = [&](const std::string& arguments) {
    return testing::runTool(scratch_, "run " + path + " --device reference --bind 0.1=zeros --out 0.1=- " + arguments);
  };
  const std::string uniform = "--entry main --bind 0.0=list:0,0,0,0,0,4.5,0,0 ";
  const Outcome outcome = runIt(uniform + "--immediate list:1,2.5,3,7,4,5,6,8");
  EXPECT_EQ(outcome.out, "0.1 out: f32[4]\n  2.5 6.0 7.0 4.5\n") << outcome.err;
  EXPECT_EQ(runIt(uniform + "--immediate fill:3").out, "0.1 out: f32[4]\n  3.0 3.0 3.0 4.5\n");
  EXPECT_NE(runIt(uniform + "--immediate fill:1.5").err.find("has a number that is no u32"), std::string::npos);
  EXPECT_NE(runIt(uniform).err.find("immediate variable s: S has no value"), std::string::npos);
  EXPECT_NE(runIt(uniform + "--immediate list:1,2").err.find("has 2 numbers, but the immediate variable (s: S) takes 8"),
            std::string::npos);
  EXPECT_NE(runIt(uniform + "--immediate list:1,2,3,0.5,4,5,6,8").err.find("has 0.5 for number 4, which is no u32"), std::string::npos);
  EXPECT_NE(runIt(uniform + "--immediate list:1,2,x").err.find("has 'x', which is no number"), std::string::npos);
  EXPECT_NE(runIt(uniform + "--immediate iota:u32[2]").err.find("takes 32 bytes, not 8"), std::string::npos);
  EXPECT_NE(runIt("--entry none --immediate zeros").err.find("entry point 'none' uses no immediate variable"), std::string::npos);
}

TEST_F(Run, spirv_has_the_lines_of_the_text_on_request) {
  const std::string file = scratch_ / "k.wgsl", kir = scratch_ / "lines.kir";
  const auto compile = [&](const std::string& arguments) { return testing::runTool(scratch_, "compile " + arguments); };
  const Outcome assembled = compile(file + " --entry scale --format spvasm --debug");
  if (assembled.err.find("vulkan.build") != std::string::npos) GTEST_SKIP() << "this build has no Vulkan backend";
  const std::string& lined = assembled.out;
  const size_t store = lined.find("OpStore");
  ASSERT_NE(store, std::string::npos) << lined;
  const size_t line = lined.rfind("OpLine", store);
  ASSERT_NE(line, std::string::npos) << lined;
  EXPECT_TRUE(lined.substr(line, lined.find('\n', line) - line).ends_with(" 9 32")) << lined;
  EXPECT_NE(lined.find("@compute @workgroup_size(4)"), std::string::npos) << lined;
  EXPECT_EQ(compile(file + " --entry scale --format spvasm").out.find("OpLine"), std::string::npos);
  // By way of the kernel IR it is the same.
  EXPECT_EQ(compile(file + " --entry scale --debug -o " + kir).status, 0);
  EXPECT_EQ(compile(kir + " --format spvasm --debug").out, lined);
  EXPECT_EQ(compile(file + " --entry scale --format kir").out.find("location"), std::string::npos);
}

Outcome runDefect(const std::string& name, const std::string& arguments) {
  const std::string path = std::string(LOCKSTEP_SOURCE_DIR) + "/tests/frontend/wgsl/defects/" + name + ".wgsl";
  const testing::ScratchDirectory scratch("defect");
  return testing::runTool(scratch, "run " + path + " --device reference " + arguments);
}

TEST(RunDefects, indices_outside_of_a_buffer_are_named) {
  const Outcome outcome = runDefect("half_buffer", "--bind 0.0=zeros:16 --out-of-bounds trap");
  EXPECT_NE(outcome.status, 0);
  EXPECT_NE(outcome.err.find("reference.out_of_bounds: kernel main: index 4 is out of bounds of cache with 4 elements"), std::string::npos)
      << outcome.err;
}

TEST(RunDefects, bindings_of_another_entry_point_are_named_with_it) {
  const Outcome outcome = runDefect("two_passes", "--entry scan --bind 0.0=iota:f32[2] --bind 0.1=zeros:8 --bind 0.2=zeros:8");
  EXPECT_NE(outcome.status, 0);
  EXPECT_NE(outcome.err.find("run.bind: entry point 'scan' uses no variable at binding 0.2; 'reduce' does\n  help: leave out its --bind"),
            std::string::npos)
      << outcome.err;
}

TEST(RunDefects, more_workgroups_than_a_dimension_has_are_split) {
  const Outcome outcome = runDefect("many_workgroups", "--dispatch 70000 --bind 0.0=zeros:16");
  EXPECT_NE(outcome.status, 0);
  EXPECT_NE(outcome.err.find("run.dispatch: 70000 workgroups in x are more than the 65535 that"), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("(maxComputeWorkgroupsPerDimension)\n  help: split them over y: --dispatch 35000,2, and"), std::string::npos)
      << outcome.err;
  EXPECT_EQ(runDefect("many_workgroups", "--dispatch 65535 --bind 0.0=zeros:16").status, 0);
}

TEST(RunDefects, products_too_large_for_the_dispatch_are_warned_about) {
  EXPECT_NE(runDefect("product_too_large", "--dispatch 4096 --bind 0.0=zeros:16")
                .err.find("warning: lint.index: the index wraps: 'group.x * length * width'"),
            std::string::npos);
  EXPECT_EQ(runDefect("product_too_large", "--dispatch 2 --bind 0.0=zeros:16").err, "");
}

constexpr std::string_view kPrints = R"(@group(0) @binding(0) var<storage, read_write> x: array<f32>;
@compute @workgroup_size(2)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  print(id.x, x[id.x]);
  x[id.x + 6] = 1.0;
}
)";

TEST_F(Run, print_shows_its_lines) {
  ASSERT_TRUE(io::writeFileAtomically(scratch_ / "print.wgsl", kPrints).ok());
  const std::string file = (scratch_ / "print.wgsl").string();
  const Outcome text = testing::runTool(scratch_, "run " + file + " --device reference --dispatch 2 --bind 0.0=iota:f32[16]");
  EXPECT_EQ(text.status, 0);
  EXPECT_EQ(text.out, "");
  EXPECT_EQ(text.err, file + ":4:3: workgroup (0, 0, 0), local (0, 0, 0): id.x = 0, x[id.x] = 0.0\n" + file +
                          ":4:3: workgroup (0, 0, 0), local (1, 0, 0): id.x = 1, x[id.x] = 1.0\n" + file +
                          ":4:3: workgroup (1, 0, 0), local (0, 0, 0): id.x = 2, x[id.x] = 2.0\n" + file +
                          ":4:3: workgroup (1, 0, 0), local (1, 0, 0): id.x = 3, x[id.x] = 3.0\n");
  const Outcome json = testing::runTool(scratch_, "run " + file + " --device reference --bind 0.0=iota:f32[16] --json");
  EXPECT_EQ(json.err, "");
  EXPECT_NE(json.out.find("\"line\": 4, \"column\": 3, \"workgroup\": [0, 0, 0], \"local\": [1, 0, 0], \"text\": \"\", \"names\": "
                          "[\"id.x\", \"x[id.x]\"], \"values\": [1, 1]}], "
                          "\"printed_left_out\": 0"),
            std::string::npos)
      << json.out;
}

TEST_F(Run, print_shows_texts_and_structs_of_the_invocations_that_are_wanted) {
  const std::string path = scratch_ / "print.wgsl";
  ASSERT_TRUE(io::writeFileAtomically(path, std::string_view("struct Cell { at: vec2u, sums: array<f32, 2> }\n"
                                                             "fn show(cell: Cell) { print(\"cell\", cell); }\n"
                                                             "@compute @workgroup_size(4, 2)\n"
                                                             "fn main(@builtin(global_invocation_id) id: vec3u) {\n"
                                                             "  show(Cell(id.xy, array(0.5, f32(id.x))));\n"
                                                             "}\n"))
                  .ok());
  const auto runIt = [&](const std::string& options) {
    return testing::runTool(scratch_, "run " + path + " --device reference --dispatch 2 " + options);
  };
  const std::string head = path + ":2:23: workgroup ";
  EXPECT_EQ(runIt("--print-from 3..4,1").err, head + "(0, 0, 0), local (3, 1, 0): cell cell = {at: (3, 1), sums: [0.5, 3.0]}\n" + head +
                                                  "(1, 0, 0), local (0, 1, 0): cell cell = {at: (4, 1), sums: [0.5, 4.0]}\n");
  EXPECT_EQ(runIt("--print-from 99").err, "");
  const Outcome json = runIt("--print-from 7,0,0..5 --json");
  EXPECT_NE(json.out.find("\"text\": \"cell\", \"names\": [\"cell\"], \"values\": [{\"at\": [7, 0], \"sums\": [0.5, 7]}]}]"),
            std::string::npos)
      << json.out;
  for (const char* wrong : {"x", "3..1", "1,2,3,4", "1..", "..", "1,", "-1", "5000000000"}) {
    const Outcome refused = runIt(std::string("--print-from=") + wrong);
    EXPECT_EQ(refused.status, 2) << wrong;
    EXPECT_NE(refused.err.find("names no invocations"), std::string::npos) << refused.err;
  }
}

TEST_F(Run, an_index_out_of_bounds_is_named_in_the_wgsl_and_comes_after_what_was_printed) {
  ASSERT_TRUE(io::writeFileAtomically(scratch_ / "print.wgsl", kPrints).ok());
  const std::string file = (scratch_ / "print.wgsl").string();
  const Outcome outcome = testing::runTool(scratch_, "run " + file + " --device reference --bind 0.0=iota:f32[7] --out-of-bounds trap");
  EXPECT_EQ(outcome.status, 4);
  EXPECT_TRUE(outcome.err.starts_with(file + ":4:3: workgroup (0, 0, 0), local (0, 0, 0): id.x = 0, x[id.x] = 0.0\n")) << outcome.err;
  EXPECT_NE(outcome.err.find(file + ":5:3: error: reference.out_of_bounds: kernel main: index 7 is out of bounds of x with 7 elements"),
            std::string::npos)
      << outcome.err;
}

TEST_F(Run, a_trap_on_a_device_that_cannot_trap_is_refused) {
  if (testing::runTool(scratch_, "train sine --device vulkan --steps 1 --no-out").status == 3) GTEST_SKIP() << "there is no Vulkan device";
  ASSERT_TRUE(io::writeFileAtomically(scratch_ / "print.wgsl", kPrints).ok());
  const std::string file = (scratch_ / "print.wgsl").string();
  const Outcome trap = testing::runTool(scratch_, "run " + file + " --device vulkan --bind 0.0=iota:f32[7] --out-of-bounds trap");
  EXPECT_EQ(trap.status, 2);
  EXPECT_NE(trap.err.find("usage.value: --out-of-bounds trap: "), std::string::npos) << trap.err;
  EXPECT_NE(trap.err.find("only the reference does\n  help: add --device reference"), std::string::npos) << trap.err;
  // Without the option a .kir file traps where the device can, and else is clamped.
  const std::string kir = (scratch_ / "print.kir").string(), bind = " --bind 0.0=iota:f32[7] --out 0.0=-";
  ASSERT_EQ(testing::runTool(scratch_, "compile " + file + " -o " + kir).status, 0);
  EXPECT_EQ(testing::runTool(scratch_, "run " + kir + " --device reference" + bind).status, 4);
  EXPECT_EQ(testing::runTool(scratch_, "run " + kir + " --device vulkan" + bind).out,
            testing::runTool(scratch_, "run " + file + " --device vulkan" + bind).out);
}

TEST_F(Run, what_a_text_claims_is_not_believed) {
  // An element 4096 bytes after the end of its variable, "in bounds".
  const std::string path = scratch_ / "claims.kir";
  ASSERT_TRUE(io::writeFileAtomically(path, std::string_view(R"(lockstep.kernel 1
var @at: array<u32, 1> {access = read, binding = 0, group = 0, space = storage}
var @out: array<u32, 1> {access = read_write, binding = 1, group = 0, space = storage}
var @shared: array<u32, 4> {initial = none, space = workgroup}
fn @main() {workgroup_size = [1, 1, 1]} {
  %0: ptr<storage, u32> = access @at, 0u
  %i: u32 = load %0
  %1: ptr<workgroup, u32> = access @shared, %i {in_bounds = true}
  %2: u32 = load %1
  %3: ptr<storage, u32, read_write> = access @out, 0u
  store %3, %2
}
)"))
                  .ok());
  const std::string binds = "run " + path + " --bind 0.0=fill:u32[1]=1024 --bind 0.1=fill:u32[1]=7 --out 0.1=- --device ";
  const Outcome trapped = testing::runTool(scratch_, binds + "reference");
  EXPECT_EQ(trapped.status, 4) << trapped.out;
  EXPECT_NE(trapped.err.find("out_of_bounds"), std::string::npos) << trapped.err;
  for (const char* device : {"reference", "vulkan"}) {
    const Outcome outcome = testing::runTool(scratch_, binds + device + " --out-of-bounds clamp");
    if (outcome.status == 3) continue;  // there is no Vulkan device
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_EQ(outcome.out, "0.1 out: u32[1]\n  0\n") << device;  // cleared, though the text says that nobody need do it
  }
  const Outcome compiled = testing::runTool(scratch_, "compile " + path + " --format kir");
  EXPECT_EQ(compiled.status, 0) << compiled.err;
  EXPECT_EQ(compiled.out.find("in_bounds = true"), std::string::npos) << compiled.out;
}

TEST_F(Run, bindings_hold_f16) {
  ASSERT_TRUE(
      io::writeFileAtomically(scratch_ / "half.wgsl", std::string_view("enable f16;\n"
                                                                       "@group(0) @binding(0) var<storage> a: array<f16>;\n"
                                                                       "@group(0) @binding(1) var<storage> b: array<vec2h, 2>;\n"
                                                                       "@group(0) @binding(2) var<storage, read_write> c: array<f32>;\n"
                                                                       "@compute @workgroup_size(4)\n"
                                                                       "fn main(@builtin(local_invocation_index) i: u32) {\n"
                                                                       "  c[i] = f32(a[i]) + f32(b[i / 2][i % 2]);\n"
                                                                       "}\n"))
          .ok());
  const std::string command = "run " + (scratch_ / "half.wgsl").string() + " --device reference --bind 0.2=zeros:16 --out 0.2=- ";
  EXPECT_EQ(testing::runTool(scratch_, command + "--bind 0.0=iota:f16[4] --bind 0.1=fill:0.5").out, "0.2 c: f32[4]\n  0.5 1.5 2.5 3.5\n");
  EXPECT_EQ(testing::runTool(scratch_, command + "--bind 0.0=fill:f16[4]=-2 --bind 0.1=fill:f16[4]=0.25").out,
            "0.2 c: f32[4]\n  -1.75 -1.75 -1.75 -1.75\n");
  const std::vector<double> numbers{1, -2, 0.1, 65504, 7};
  const auto save = [&](const std::string& name, io::ElementType type, int64_t count) {
    const auto values = std::span(numbers).first(static_cast<size_t>(count));
    EXPECT_TRUE(io::writeNpy(scratch_ / name, io::Array::from(type, {count}, values)).ok());
    return (scratch_ / name).string();
  };
  EXPECT_EQ(testing::runTool(scratch_, command + "--bind 0.1=zeros --bind 0.0=" + save("half.npy", io::ElementType::F16, 4)).out,
            "0.2 c: f32[4]\n  1.0 -2.0 0.099975586 65504.0\n");
  const std::string odd = save("odd.npy", io::ElementType::F16, 5), bytes = save("bytes.npy", io::ElementType::U8, 1);
  for (const std::string& bad : {std::string("iota:f16[3]"), std::string("fill:f16[2]=65520"), std::string("iota:f16[70000]"),
                                 std::string("fill:f16=1"), odd, bytes}) {
    const Outcome outcome = testing::runTool(scratch_, fmt::format("{}--bind 0.1=zeros --bind 0.0={}", command, bad));
    EXPECT_EQ(outcome.status, 4) << bad;
    EXPECT_NE(outcome.err.find("run.bind"), std::string::npos) << bad << outcome.err;
  }
}

TEST_F(Run, file_of_halves_is_no_file_of_f32) {
  const std::vector<double> numbers{1, 2};
  ASSERT_TRUE(io::writeNpy(scratch_ / "half.npy", io::Array::from(io::ElementType::F16, {2}, numbers)).ok());
  ASSERT_TRUE(
      io::writeFileAtomically(scratch_ / "one.wgsl", std::string_view("@group(0) @binding(0) var<storage, read_write> x: array<f32>;\n"
                                                                      "@compute @workgroup_size(1) fn main() { x[0] = 1; }\n"))
          .ok());
  const Outcome outcome = testing::runTool(
      scratch_, "run " + (scratch_ / "one.wgsl").string() + " --device reference --bind 0.0=" + (scratch_ / "half.npy").string());
  EXPECT_EQ(outcome.status, 4);
  EXPECT_NE(outcome.err.find("f16[2], which binding 0.0 (x: array<f32>) cannot read"), std::string::npos) << outcome.err;
}

TEST_F(Run, warnings_know_what_uniform_buffers_hold) {
  ASSERT_TRUE(io::writeFileAtomically(scratch_ / "uniform.wgsl",
                                      std::string_view("@group(0) @binding(0) var<uniform> n: u32;\n"
                                                       "@group(0) @binding(1) var<storage, read_write> x: array<f32>;\n"
                                                       "@compute @workgroup_size(64)\n"
                                                       "fn main(@builtin(local_invocation_index) i: u32) { x[i * n] = 1.0; }\n"))
                  .ok());
  const std::string command = "run " + (scratch_ / "uniform.wgsl").string() + " --device reference --bind 0.1=zeros:16 --bind 0.0=fill:";
  EXPECT_NE(testing::runTool(scratch_, command + "70000000").err.find("the index wraps: 'i * n' reaches 4410000000"), std::string::npos);
  EXPECT_EQ(testing::runTool(scratch_, command + "1000000").err, "");
  EXPECT_NE(testing::runTool(scratch_, command + "x").err.find("has no number"), std::string::npos);
}

TEST_F(Run, mistakes_are_named) {
  const std::string good = "--bind 0.0=iota:f32[8] --bind 1.3=zeros:32" + settings();
  EXPECT_NE(run(good).err.find("run.entry"), std::string::npos);
  EXPECT_NE(run(good + " --entry scal").err.find("did you mean 'scale'?"), std::string::npos);
  EXPECT_NE(run("--entry scale --bind 0.0=iota:f32[8]" + settings()).err.find("binding 1.3 (y: array<f32>) has no value"),
            std::string::npos);
  EXPECT_EQ(run("--entry clear --bind 1.3=zeros:4 --out 1.3=-").out, "1.3 y: f32[1]\n  0.0\n");
  EXPECT_NE(run("--entry clear --bind 1.3=zeros:4 --bind 0.0=zeros:4").err.find("uses no variable at binding 0.0"), std::string::npos);
  EXPECT_NE(run(good + " --entry scale --bind 2.0=zeros:4").err.find("no variable at binding 2.0"), std::string::npos);
  EXPECT_NE(run(good + " --entry scale --bind 0.0=zeros:4").err.find("given twice"), std::string::npos);
  EXPECT_NE(run(good + " --entry scale --out 2.0=-").err.find("usage.out"), std::string::npos);
  EXPECT_NE(run(good + " --entry scale --override bia=1").status, 0);
  EXPECT_NE(run(good + " --entry scale --override bias").err.find("usage.override"), std::string::npos);
  for (const char* value :
       {"zeros", "zeros:3", "zeros:x", "iota:f64[3]", "iota:f32", "fill:f32[3]", "fill:u32[3]=-1", "fill:i32[3]=0.5", "nothing"}) {
    const Outcome outcome = run(std::string("--entry scale --bind '0.0=") + value + "'");
    EXPECT_EQ(outcome.status, 4) << value;
    EXPECT_NE(outcome.err.find("run.bind"), std::string::npos) << value << outcome.err;
  }
}

TEST_F(Run, wgsl_errors_show_the_line) {
  ASSERT_TRUE(
      io::writeFileAtomically(scratch_ / "k.wgsl", std::string_view("@compute @workgroup_size(1)\nfn main() { let x = unknown; }\n")).ok());
  const Outcome outcome = run("");
  EXPECT_EQ(outcome.status, 4);
  EXPECT_NE(outcome.err.find("k.wgsl:2:"), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find('^'), std::string::npos) << outcome.err;
}

}  // namespace
}  // namespace lockstep
