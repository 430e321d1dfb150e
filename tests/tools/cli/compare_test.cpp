// SPDX-License-Identifier: Apache-2.0
// What compares in the tool: run --expect, run --devices, verify train and program, bisect.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "frontend/io/npy.h"
#include "frontend/io/safetensors.h"
#include "tests/tools/cli/process.h"

namespace lockstep {
namespace {

using testing::Outcome;

constexpr std::string_view kRoot = R"(
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@compute @workgroup_size(4)
fn main(@builtin(global_invocation_id) id: vec3u) { y[id.x] = sqrt(x[id.x]); }
)";

/// Invocations that take the same cell; the reference gives it to the same one each time.
constexpr std::string_view kRace = R"(
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@compute @workgroup_size(4)
fn main(@builtin(global_invocation_id) id: vec3u) { y[0] = f32(id.x); }
)";

/// More rounds of a loop than lavapipe does.
constexpr std::string_view kLong = R"(
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@compute @workgroup_size(1)
fn main() { var sum = 0.0; for (var i = 0u; i < 100000u; i++) { sum = sum * 0.5 + x[i & 3u]; } y[0] = sum; }
)";

class Compare : public ::testing::Test {
 protected:
  Compare() : scratch_("compare") {
    write("root.wgsl", kRoot);
    write("race.wgsl", kRace);
    write("long.wgsl", kLong);
  }
  void write(const std::string& name, std::string_view text) { EXPECT_TRUE(io::writeFileAtomically(scratch_ / name, text).ok()); }
  void write(const std::string& name, const std::vector<float>& values) {
    EXPECT_TRUE(io::writeNpy(scratch_ / name, io::Array::fromFloats({static_cast<int64_t>(values.size())}, values)).ok());
  }
  std::string file(const std::string& name) { return (scratch_ / name).string(); }
  Outcome tool(const std::string& arguments) { return testing::runTool(scratch_, arguments); }
  Outcome root(const std::string& arguments) {
    return tool("run " + file("root.wgsl") + " --bind 0.0=iota:f32[4] --bind 0.1=zeros:16 " + arguments);
  }
  /// `root` on the reference against an array.
  Outcome expecting(const std::vector<float>& values, const std::string& arguments = "") {
    write("want.npy", values);
    return root("--device reference --expect 0.1=" + file("want.npy") + " " + arguments);
  }
  testing::ScratchDirectory scratch_;
};

TEST_F(Compare, an_array_that_a_binding_holds_is_equal_or_within_the_tolerance) {
  const Outcome equal = expecting({0, 1, 1.41421354f, 1.73205078f});
  EXPECT_EQ(equal.status, 0) << equal.err;
  EXPECT_EQ(equal.out, "0.1 y is equal to " + file("want.npy") + " in 4 elements\n");
  const Outcome near = expecting({0, 1.000001f, 1.41421354f, 1.73205078f});
  EXPECT_EQ(near.status, 0) << near.err;
  EXPECT_NE(near.out.find("agrees with"), std::string::npos) << near.out;
}

TEST_F(Compare, one_element_further_off_is_named_and_exits_with_5) {
  const Outcome off = expecting({0, 1, 1.4143f, 1.73205078f});
  EXPECT_EQ(off.status, 5);
  EXPECT_NE(off.out.find("0.1 y differs from"), std::string::npos) << off.out;
  EXPECT_NE(off.out.find("[2] is 1.41421354 instead of 1.41429996 (725 ulp"), std::string::npos) << off.out;
  EXPECT_NE(off.out.find("1 of 4 elements is beyond"), std::string::npos) << off.out;
  EXPECT_EQ(expecting({0, 1, 1.4143f, 1.73205078f}, "--rtol 1e-4").status, 0);
  EXPECT_EQ(expecting({0, 1, 1.4143f, 1.73205078f}, "--rtol 0 --atol 1e-4").status, 0);
  EXPECT_EQ(expecting({0.001f, 1, 1.41421354f, 1.73205078f}, "--rtol 0 --atol 1e-4").status, 5);
  EXPECT_EQ(expecting({NAN, 1, 1.41421354f, 1.73205078f}, "--rtol 1 --atol 1").status, 5);
}

TEST_F(Compare, bounds_of_each_element_come_from_an_array) {
  write("wide.npy", {0, 0, 0.001f, 0});
  write("narrow.npy", {0.001f, 0.001f, 0.00001f, 0.001f});
  EXPECT_EQ(expecting({0, 1, 1.4143f, 1.73205078f}, "--within 0.1=" + file("wide.npy")).status, 0);
  EXPECT_EQ(expecting({0, 1, 1.4143f, 1.73205078f}, "--within 0.1=" + file("narrow.npy")).status, 5);
  EXPECT_EQ(expecting({0, 1, 1.4143f, 1.73205078f}, "--within 0.0=" + file("wide.npy")).status, 2);
}

TEST_F(Compare, arrays_that_do_not_fit_are_errors) {
  const Outcome small = expecting({0, 1});
  EXPECT_EQ(small.status, 4);
  EXPECT_NE(small.err.find("run.expect"), std::string::npos) << small.err;
  EXPECT_EQ(root("--expect 0.7=" + file("want.npy")).status, 2);
  EXPECT_EQ(root("--expect 0.1").status, 2);
  EXPECT_EQ(root("--rtol -1").status, 2);
  EXPECT_EQ(root("--expect 0.1=" + file("no-such.npy")).status, 4);
}

TEST_F(Compare, devices_get_a_verdict) {
  const Outcome equal = root("--devices reference,reference --runs 2");
  EXPECT_EQ(equal.status, 0) << equal.err;
  EXPECT_TRUE(equal.out.starts_with("verdict: equal: the same bits in 4 runs\n  reference: 2 runs\n")) << equal.out;
  const Outcome rounding = root("--devices reference,reference:fault=sqrt+9ulp");
  EXPECT_EQ(rounding.status, 0);
  EXPECT_TRUE(rounding.out.starts_with("verdict: rounding: ")) << rounding.out;
  const Outcome wrong = root("--devices reference,reference:fault=sqrt+900ulp");
  EXPECT_EQ(wrong.status, 5);
  EXPECT_TRUE(
      wrong.out.starts_with("verdict: wrong: 0.1 y[1] is 1.00010729 on reference:fault=sqrt+900ulp and 1 on reference (900 ulp, allowed "))
      << wrong.out;
  EXPECT_EQ(root("--devices reference,reference:fault=sqrt+900ulp --rtol 0.01").status, 0);
}

TEST_F(Compare, floats_of_devices_are_floats_in_structs_vectors_and_halves) {
  write("bodies.wgsl", R"(
enable f16;
struct Body { place: vec3<f32>, id: u32, weight: f16 }
@group(0) @binding(0) var<storage, read_write> bodies: array<Body>;
@group(0) @binding(1) var<storage, read_write> places: array<vec3<f32>>;
@compute @workgroup_size(4)
fn main(@builtin(local_invocation_index) i: u32) {
  let root = sqrt(f32(i) + 0.3);
  bodies[i] = Body(vec3(root), i, f16(root));
  places[i] = vec3(root);
}
)");
  const auto on = [&](const std::string& faulty) {
    return tool("run " + file("bodies.wgsl") +
                " --bind 0.0=zeros:128 --bind 0.1=zeros:64 --runs 1 --devices reference,reference:fault=" + faulty);
  };
  const Outcome rounding = on("sqrt+9ulp");
  EXPECT_EQ(rounding.status, 0) << rounding.err;
  EXPECT_TRUE(rounding.out.starts_with("verdict: rounding: 0.0 bodies[")) << rounding.out;
  const Outcome wrong = on("sqrt+900ulp");
  EXPECT_EQ(wrong.status, 5);
  EXPECT_NE(wrong.out.find("].place."), std::string::npos) << wrong.out;
  EXPECT_NE(wrong.out.find("of 20 numbers differ by more than is allowed"), std::string::npos) << wrong.out;
  // 1e-3 of each number, which an f16 holds in one or two of its units.
  EXPECT_EQ(on("sqrt+9000ulp --rtol 0.002").status, 0);

  // The same of --expect, whose file has such an array as words.
  const std::string bound = "run " + file("bodies.wgsl") + " --bind 0.0=zeros:128 --bind 0.1=zeros:64 ";
  ASSERT_EQ(tool(bound + "--device reference --out 0.0=" + file("bodies.npy")).status, 0);
  EXPECT_EQ(tool(bound + "--device reference:fault=sqrt+9ulp --expect 0.0=" + file("bodies.npy")).status, 0);
  const Outcome differs = tool(bound + "--device reference:fault=sqrt+900ulp --expect 0.0=" + file("bodies.npy"));
  EXPECT_EQ(differs.status, 5);
  EXPECT_NE(differs.out.find(": bodies["), std::string::npos) << differs.out;
}

TEST_F(Compare, a_race_is_one_although_all_runs_are_equal) {
  const Outcome race = tool("run " + file("race.wgsl") + " --dispatch 2 --bind 0.1=zeros:4 --devices reference");
  EXPECT_EQ(race.status, 5);
  EXPECT_TRUE(race.out.starts_with("verdict: race: the sanitizer found race.storage: ")) << race.out;
  EXPECT_NE(race.err.find("race.wgsl:4:"), std::string::npos) << race.err;
}

TEST_F(Compare, a_device_that_refuses_a_kernel_has_a_limit) {
  const Outcome both = tool("run " + file("long.wgsl") + " --bind 0.0=iota:f32[4] --bind 0.1=zeros:4 --devices reference,vulkan");
  if (both.status == 3 || both.out.starts_with("verdict: equal") || both.out.starts_with("verdict: rounding"))
    GTEST_SKIP() << "no driver that ends loops early";
  EXPECT_EQ(both.status, 5) << both.err;
  EXPECT_TRUE(both.out.starts_with("verdict: driver limit: the kernel ran on reference and failed on vulkan: ")) << both.out;
}

/// exp at 0.25, which WGSL allows 3.5 ulp, as golden data.
TEST_F(Compare, a_golden_op_fails_just_above_what_wgsl_allows_it) {
  const float x = 0.25f, one = 1;
  const double y = std::exp(0.25);
  io::TensorFile golden;
  golden.metadata["exp.quarter"] = R"({"op": "exp", "attrs": {}})";
  golden.tensors["exp.quarter/in/x"] = io::Array::fromFloats({1, 1}, {&x, 1});
  golden.tensors["exp.quarter/cotangent/y"] = io::Array::fromFloats({1, 1}, {&one, 1});
  for (const char* part : {"out/y", "grad/x"}) golden.tensors[std::string("exp.quarter/") + part] = io::Array::fromDoubles({1, 1}, {&y, 1});
  ASSERT_TRUE(io::writeSafetensors(scratch_ / "exp.safetensors", golden).ok());
  const std::string verify = "verify golden " + file("exp.safetensors") + " --device reference";
  for (const char* fault : {"", ":fault=exp+2ulp", ":fault=exp-2ulp"}) {
    const Outcome within = tool(verify + fault);
    EXPECT_EQ(within.status, 0) << within.out;
    EXPECT_EQ(within.out.find("no known bound"), std::string::npos) << within.out;
  }
  for (const char* fault : {":fault=exp+5ulp", ":fault=exp-5ulp"}) {
    const Outcome beyond = tool(verify + fault);
    EXPECT_EQ(beyond.status, 5) << beyond.out;
    EXPECT_NE(beyond.out.find("output 'y'[0, 0] is 1.2840"), std::string::npos) << beyond.out;
    EXPECT_NE(beyond.out.find("instead of 1.28402542 (5 ulp, allowed 4.17e-07); 1 of 1 elements is beyond its bound"), std::string::npos)
        << beyond.out;
  }
  const Outcome json = tool(verify + ":fault=exp+8ulp --json");
  EXPECT_EQ(json.status, 5);
  for (const char* part : {R"("status": "fail")", R"("unbounded": 0)", R"("index": "[0, 0]")", R"("ulps": 8)", R"("judge": "bound")"})
    EXPECT_NE(json.out.find(part), std::string::npos) << part << "\n" << json.out;
}

TEST_F(Compare, devices_stand_alone) {
  EXPECT_EQ(root("--devices reference --device reference").status, 2);
  EXPECT_EQ(root("--devices reference --out 0.1=-").status, 2);
  // Those that would print something else than a verdict are all named.
  const Outcome both = root("--devices reference --why '0.1[1]' --print-from 0");
  EXPECT_EQ(both.status, 2);
  EXPECT_NE(both.err.find("--devices does not go with --why, --print-from"), std::string::npos) << both.err;
  for (const std::string other : {"--why '0.1[1]'", "--print-from 0", "--repeat 2", "--schedules 3", "--sanitize", "--within 0.1=y.npy"}) {
    const Outcome one = root("--devices reference " + other);
    EXPECT_EQ(one.status, 2) << other;
    EXPECT_NE(one.err.find("--devices does not go with " + other.substr(0, other.find(' ')) + "\n"), std::string::npos) << one.err;
  }
  EXPECT_EQ(root("--devices reference,nonsense").status, 3);
  EXPECT_EQ(root("--devices reference --runs 0").status, 2);
}

TEST_F(Compare, verify_goes_through_the_kernels_of_a_sample_and_of_a_dump) {
  const std::string out = file("difference");
  const Outcome right = tool("verify train sine --device reference --steps 1");
  EXPECT_EQ(right.status, 0) << right.err;
  EXPECT_TRUE(right.out.starts_with("sine: reference agrees with reference in ")) << right.out;
  EXPECT_NE(right.err.find("compared with itself"), std::string::npos);
  const Outcome wrong = tool("verify train sine --device reference:fault=mul+9999ulp --out " + out);
  EXPECT_EQ(wrong.status, 5);
  EXPECT_TRUE(wrong.err.starts_with("examples/models/mlp.cpp:")) << wrong.err;
  for (const char* part : {"error: verify.kernel: kernel k0_", "ulp, allowed ", "note: command 1 of ",
                           "note: matmul, add at examples/models/mlp.cpp:", "/run.sh' runs this kernel alone"})
    EXPECT_NE(wrong.err.find(part), std::string::npos) << part << "\n" << wrong.err;
  EXPECT_TRUE(std::filesystem::exists(out + "/kernel.wgsl"));

  ASSERT_EQ(tool("train sine --steps 1 --no-out --quiet --device reference --dump-ir " + file("dump")).status, 0);
  for (const char* stage : {"*-kernels", "*-schedule"}) {
    const std::string path = file("dump/" + std::string(stage) + ".program");
    EXPECT_EQ(tool("verify program " + path + " --device reference --steps 1").status, 0) << stage;
    const Outcome off = tool(fmt::format("verify program {} --device reference:fault=mul+9999ulp --out {}", path, out));
    EXPECT_EQ(off.status, 5) << stage;
    EXPECT_NE(off.err.find("matmul, add at examples/models/mlp.cpp:"), std::string::npos) << off.err;
  }
  EXPECT_EQ(tool("verify program " + file("dump/06-simplify.graph")).status, 4);
  EXPECT_EQ(tool("verify program " + file("dump/*-kernels.program") + " --inputs " + file("none.safetensors")).status, 4);
  EXPECT_EQ(tool("verify train nonsense").status, 2);
  EXPECT_EQ(tool("verify train sine --steps 0").status, 2);
  EXPECT_EQ(tool("verify train sine --against nonsense").status, 3);
  // Several names: the worst exit code counts.
  EXPECT_EQ(tool("verify program " + file("dump/*-kernels.program") + " " + file("dump/*-schedule.program") + " --device reference").status,
            0);
}

TEST_F(Compare, bisect_finds_the_pass_and_says_when_there_is_none) {
  const Outcome right = tool("bisect train sine --device reference");
  EXPECT_EQ(right.status, 0) << right.err;
  EXPECT_NE(right.out.find("sine is right on reference with all passes"), std::string::npos) << right.out;
  const Outcome fuse = tool("bisect train sine --device reference:fault=sub+99999ulp@register_rows");
  EXPECT_EQ(fuse.status, 5);
  EXPECT_NE(fuse.err.find("error: bisect.pass: the pass 'fuse' makes sine wrong"), std::string::npos) << fuse.err;
  EXPECT_NE(fuse.err.find("sub at examples/models/samples.cpp:"), std::string::npos) << fuse.err;
  EXPECT_NE(fuse.err.find("help: --disable-pass fuse avoids it"), std::string::npos) << fuse.err;
  const Outcome always = tool("bisect train sine --device reference:fault=mul+99999ulp");
  EXPECT_EQ(always.status, 5);
  EXPECT_NE(always.err.find("is wrong on reference:fault=mul+99999ulp without any optional pass as well"), std::string::npos) << always.err;
  EXPECT_NE(always.err.find("note: it is in kernel k0_"), std::string::npos) << always.err;

  ASSERT_EQ(tool("train sine --steps 1 --no-out --quiet --device reference --dump-ir " + file("dump")).status, 0);
  for (const char* stage : {"04-optimizer.graph", "06-simplify.graph", "09-fuse.graph", "*-schedule.program", "*-kernels.program"})
    EXPECT_EQ(tool("bisect program " + file("dump/" + std::string(stage)) + " --device reference").status, 0) << stage;
  EXPECT_EQ(tool("bisect program " + file("dump/00-trace.graph")).status, 4);
  EXPECT_EQ(tool("bisect nothing x").status, 2);
  EXPECT_EQ(tool("bisect train sine --tolerance 0").status, 2);
}

}  // namespace
}  // namespace lockstep
