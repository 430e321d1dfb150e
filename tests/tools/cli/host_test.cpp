// SPDX-License-Identifier: Apache-2.0
// What `lockstep run` says of a host that does not do what a kernel asks for: contracts and layouts.
#include <gtest/gtest.h>

#include "frontend/io/npy.h"
#include "tests/tools/cli/process.h"

namespace lockstep {
namespace {

using testing::Outcome;

class Host : public ::testing::Test {
 protected:
  Host() : scratch_("host") {}
  Outcome run(const std::string& source, const std::string& arguments) {
    const std::string path = scratch_ / "k.wgsl";
    EXPECT_TRUE(io::writeFileAtomically(path, std::string_view(source)).ok());
    return testing::runTool(scratch_, "run " + path + " " + arguments);
  }
  std::string npy(std::vector<int64_t> shape) {
    const std::string path = scratch_ / "data.npy";
    EXPECT_TRUE(io::writeNpy(path, io::Array::zeros(io::ElementType::F32, std::move(shape))).ok());
    return path;
  }
  testing::ScratchDirectory scratch_;
};

const std::string kBlur =
    "struct P { sizes: vec2u, deep: Q } struct Q { n: u32 }\n"
    "@group(0) @binding(0) var<storage, read> x: array<f32>;\n"
    "@group(0) @binding(1) var<storage, read_write> y: array<f32>;\n"
    "@group(0) @binding(2) var<storage, read> p: P;\n"
    "override block: u32 = 64;\n"
    "// lockstep: require(length(y) >= p.deep.n && p.sizes.y == 2)\n"
    "// lockstep: dispatch(ceil_div(p.deep.n, block))\n"
    "@compute @workgroup_size(block)\n"
    "fn main(@builtin(global_invocation_id) id: vec3u) { if (id.x < p.deep.n) { y[id.x] = x[id.x] + f32(p.sizes.x); } }\n"
    "// lockstep: dispatch(9)\n"
    "@compute @workgroup_size(1) fn other() { y[0] = 1; }\n";
const std::string kBuffers = " --entry main --device reference --bind 0.0=iota:f32[100] ";

TEST_F(Host, contracts_that_are_kept_say_nothing) {
  const Outcome good = run(kBlur, "--dispatch 2" + kBuffers + "--bind 0.1=zeros:400 --bind 0.2=list:1,2,100");
  EXPECT_EQ(good.status, 0) << good.err;
  EXPECT_EQ(good.err, "");
  EXPECT_EQ(run(kBlur, "--dispatch 4 --override block=32" + kBuffers + "--bind 0.1=zeros:400 --bind 0.2=list:1,2,100").status, 0);
  EXPECT_EQ(run(kBlur, "--entry other --dispatch 9 --device reference --bind 0.1=zeros:400").status, 0);
}

TEST_F(Host, reflect_lists_contracts) {
  (void)run(kBlur, "--entry other --device reference --bind 0.1=zeros:400");
  const std::string path = scratch_ / "k.wgsl";
  const Outcome text = testing::runTool(scratch_, "reflect " + path), json = testing::runTool(scratch_, "reflect " + path + " --json");
  EXPECT_NE(text.out.find("asks for require(length(y) >= p.deep.n && p.sizes.y == 2)\n"
                          "asks for dispatch(ceil_div(p.deep.n, block)) (main)\nasks for dispatch(9) (other)\n"),
            std::string::npos)
      << text.out;
  EXPECT_NE(json.out.find("{\"text\": \"dispatch(9)\", \"entry_point\": \"other\", \"line\": 10}"), std::string::npos) << json.out;
}

TEST_F(Host, contracts_hold_on_all_devices) {
  const Outcome bad = run(kBlur, "--entry other --devices reference,reference --bind 0.1=zeros:400");
  EXPECT_EQ(bad.status, 4) << bad.out;
  EXPECT_NE(bad.err.find("contract.dispatch"), std::string::npos) << bad.err;
}

TEST_F(Host, contracts_that_are_not_kept_are_all_named_and_nothing_runs) {
  const Outcome bad = run(kBlur, "--dispatch 2" + kBuffers + "--bind 0.1=zeros:400 --bind 0.2=list:1,3,200 --out 0.1=-");
  EXPECT_EQ(bad.status, 4);
  EXPECT_EQ(bad.out, "");
  const std::string at = (scratch_ / "k.wgsl").string();
  EXPECT_NE(
      bad.err.find(at + ":6:14: error: contract.require: the kernel requires length(y) >= p.deep.n && p.sizes.y == 2 (length(y) = 100, "
                        "p.deep.n = 200, p.sizes.y = 3)"),
      std::string::npos)
      << bad.err;
  EXPECT_NE(bad.err.find(at + ":7:14: error: contract.dispatch: 2 workgroups in x are dispatched, and the kernel asks for "
                              "ceil_div(p.deep.n, block) = 4 (p.deep.n = 200)\n  help: dispatch 4,1,1: --dispatch 4,1,1"),
            std::string::npos)
      << bad.err;
  EXPECT_NE(run(kBlur, "--entry other --device reference --bind 0.1=zeros:400").err.find("asks for 9"), std::string::npos);
}

TEST_F(Host, the_sanitizer_reports_contracts_and_goes_on) {
  const Outcome found =
      run(kBlur, "--entry main --bind 0.0=iota:f32[100] --bind 0.1=zeros:400 --bind 0.2=list:1,2,100 --out 0.1=- --sanitize");
  EXPECT_EQ(found.status, 5);
  EXPECT_NE(found.err.find(":7:14: error: contract.dispatch: 1 workgroup in x is dispatched"), std::string::npos) << found.err;
  EXPECT_NE(found.err.find("sanitizer: 1 error, 0 warnings"), std::string::npos) << found.err;
  EXPECT_NE(found.out.find("0.1 y: f32[100]"), std::string::npos) << found.out;
}

TEST_F(Host, a_contract_that_cannot_be_read_is_an_error_of_run_and_check) {
  const std::string source =
      "// lockstep: dispatch(length(z))\n@group(0) @binding(0) var<storage, read_write> y: array<f32>;\n"
      "@compute @workgroup_size(1) fn main() { y[0] = 1; }\n";
  const Outcome bad = run(source, "--device reference --bind 0.0=zeros:4");
  EXPECT_EQ(bad.status, 4);
  EXPECT_NE(bad.err.find(":1:30: error: wgsl.contract: 'z' is no variable that a host binds"), std::string::npos) << bad.err;
  const Outcome checked = testing::runTool(scratch_, "check " + (scratch_ / "k.wgsl").string());
  EXPECT_NE((checked.out + checked.err).find("wgsl.contract"), std::string::npos) << checked.out << checked.err;
  EXPECT_NE(checked.status, 0);
}

std::string reading(const std::string& type, const std::string& more = "") {
  return "enable f16;\nstruct H { a: f16, b: f16, c: f16 } struct W { v: vec2f, w: f32 }\n" + more +
         "@group(0) @binding(0) var<storage, read> points: " + type + ";\n@group(0) @binding(1) var<storage, read_write> y: array<f32>;\n" +
         "@compute @workgroup_size(1) fn main() { y[0] = f32(arrayLength(&points" + (more.empty() ? "" : ".list") + ")); }\n";
}

TEST_F(Host, bytes_left_over_are_found) {
  const auto stride = [&](const std::string& type, const std::string& bind, const std::string& more = "") {
    return run(reading(type, more), "--bind 0.0=" + bind + " --bind 0.1=zeros:4 --sanitize");
  };
  const Outcome packed = stride("array<vec3f>", "zeros:1212");
  EXPECT_EQ(packed.status, 5);
  EXPECT_NE(packed.err.find(
                ":3:42: error: layout.stride: 12 bytes are left over at the end of points: it has 1212 bytes, and 75 elements of type "
                "vec3<f32> are 16 bytes apart; 101 elements of 12 bytes without padding would fill it\n"),
            std::string::npos)
      << packed.err;
  EXPECT_NE(packed.err.find("help: pad each element to 16 bytes on the host"), std::string::npos) << packed.err;
  EXPECT_NE(stride("array<vec4f>", "zeros:24").err.find("help: bind a multiple of 16 bytes"), std::string::npos);
  EXPECT_NE(stride("Tail", "zeros:44", "struct Tail { head: vec4f, list: array<vec4u> }\n").err.find("behind the first 16 bytes"),
            std::string::npos);
  struct Fine {
    const char *type, *bind, *more;
  };
  for (const Fine& one :
       {Fine{"array<vec3f>", "zeros:1200", ""}, Fine{"array<f32>", "zeros:12", ""}, Fine{"array<f16>", "zeros:12", ""},
        Fine{"array<H>", "zeros:20", ""}, Fine{"Tail", "zeros:48", "struct Tail { head: vec4f, list: array<array<f32, 3>> }\n"}}) {
    const Outcome fine = stride(one.type, one.bind, one.more);
    EXPECT_EQ(fine.status, 0) << one.type << fine.err;
    EXPECT_EQ(fine.err.find("layout.stride"), std::string::npos) << one.type << fine.err;
  }
  // Only the sanitizer asks, and a line may say that it is meant.
  EXPECT_EQ(run(reading("array<vec3f>"), "--device reference --bind 0.0=zeros:1212 --bind 0.1=zeros:4").err, "");
  EXPECT_EQ(run(reading("array<vec3f>"), "--bind 0.0=zeros:1212 --bind 0.1=zeros:4 --sanitize=race").status, 0);
  EXPECT_EQ(stride("array<vec3f> /* */; // lockstep: allow(layout.stride)\n", "zeros:1212").status, 0);
}

TEST_F(Host, rows_of_a_file_are_elements) {
  const auto stride = [&](const std::string& type, std::vector<int64_t> shape) {
    return run(reading(type), "--bind 0.0=" + npy(std::move(shape)) + " --bind 0.1=zeros:4 --sanitize");
  };
  const Outcome packed = stride("array<vec3f>", {100, 3});
  EXPECT_EQ(packed.status, 5);
  EXPECT_NE(packed.err.find("error: layout.stride: points is bound to rows of 12 bytes ("), std::string::npos) << packed.err;
  EXPECT_NE(
      packed.err.find("data.npy, f32[100,3]), but its elements of type vec3<f32> are 16 bytes apart: 12 bytes of numbers and 4 bytes of "
                      "padding\n"),
      std::string::npos)
      << packed.err;
  EXPECT_NE(packed.err.find("help: pad each row to 16 bytes on the host, or declare an array of scalars"), std::string::npos) << packed.err;
  EXPECT_EQ(stride("array<W>", {8, 3}).status, 5);
  EXPECT_NE(stride("array<vec3f>", {8, 6}).err.find("give the file rows of 16 bytes"), std::string::npos);
  // Numbers that lie in two rows may be meant.
  const Outcome split = stride("array<vec4f>", {100, 3});
  EXPECT_EQ(split.status, 0);
  EXPECT_NE(split.err.find("warning: layout.stride"), std::string::npos) << split.err;
  struct Fine {
    const char* type;
    std::vector<int64_t> shape;
  };
  for (const Fine& one :
       {Fine{"array<vec3f>", {100, 4}}, Fine{"array<vec3f>", {400}}, Fine{"array<f32>", {100, 3}}, Fine{"array<vec4f>", {10, 6, 2}},
        Fine{"array<vec2f>", {64, 30}}, Fine{"array<vec4f>", {4, 30}}, Fine{"array<W>", {8, 4}}}) {
    const Outcome fine = stride(one.type, one.shape);
    EXPECT_EQ(fine.err.find("layout.stride"), std::string::npos) << one.type << fine.err;
  }
}

}  // namespace
}  // namespace lockstep
