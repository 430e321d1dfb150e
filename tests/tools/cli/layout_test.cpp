// SPDX-License-Identifier: Apache-2.0
// `lockstep reflect --layout`: the texts are those of data/, the C text compiles as C and as C++, where its own assertions check every
// offset, and the JavaScript reads and writes the same bytes.
#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/tools/cli/process.h"

namespace lockstep {
namespace {

using testing::Outcome;

const std::string kData = std::string(LOCKSTEP_SOURCE_DIR) + "/tests/tools/cli/data/";

class Layout : public ::testing::Test {
 protected:
  Layout() : scratch_("layout") {}
  /// Compares what the command prints with a file, which LOCKSTEP_UPDATE_GOLDENS rewrites.
  std::string expectGolden(const std::string& layout, const std::string& golden) {
    const Outcome outcome = testing::runTool(scratch_, "reflect " + kData + "layout.wgsl --layout " + layout);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    const bool update = std::getenv("LOCKSTEP_UPDATE_GOLDENS") != nullptr;
    EXPECT_TRUE(!update || io::writeFileAtomically(kData + golden, outcome.out).ok());
    EXPECT_EQ(outcome.out, *io::readTextFile(kData + golden));
    return outcome.out;
  }
  int runs(const std::string& command) { return std::system((command + " >" + (scratch_ / "log").string() + " 2>&1").c_str()); }
  std::string log() { return *io::readTextFile(scratch_ / "log"); }
  testing::ScratchDirectory scratch_;
};

TEST_F(Layout, golden_c_compiles_and_its_assertions_hold) {
  const std::string header = expectGolden("c", "layout_c.txt");
  const std::string source = scratch_ / "host.c", options = " -Wall -Wextra -Wpedantic -Wpadded -Werror -fsyntax-only ";
  ASSERT_TRUE(io::writeFileAtomically(scratch_ / "layout.h", header).ok());
  const std::string main = "#include \"layout.h\"\nint main(void) { return sizeof(Particle) == particles_stride ? 0 : 1; }\n";
  ASSERT_TRUE(io::writeFileAtomically(source, main).ok());
  EXPECT_EQ(runs(LOCKSTEP_CXX + options + "-x c -std=c11 " + source), 0) << log();
  EXPECT_EQ(runs(LOCKSTEP_CXX + options + "-x c++ -std=c++17 " + source), 0) << log();
  // The assertions see a member that is elsewhere.
  std::string shifted = header;
  const size_t at = shifted.find("  float mass;");
  ASSERT_NE(at, std::string::npos);
  shifted.insert(at, "  float more;\n");
  ASSERT_TRUE(io::writeFileAtomically(scratch_ / "layout.h", shifted).ok());
  EXPECT_NE(runs(LOCKSTEP_CXX + options + "-x c -std=c11 " + source), 0);
  EXPECT_NE(log().find("Particle.mass is at 12"), std::string::npos) << log();
}

TEST_F(Layout, golden_js_reads_and_writes_the_bytes) {
  const std::string module = expectGolden("js", "layout_js.txt");
  if (runs("node --version") != 0) GTEST_SKIP() << "there is no node";
  ASSERT_TRUE(io::writeFileAtomically(scratch_ / "layout.mjs", module).ok());
  ASSERT_TRUE(io::writeFileAtomically(scratch_ / "host.mjs", std::string_view(R"(
import {Particle, List, bindings} from "./layout.mjs";
import assert from "node:assert";
const bytes = new ArrayBuffer(2 * bindings.particles.stride);
const p = new Particle(bytes, Particle.size);
p.position.set([1, 2, 3]);
p.mass = 2.5;
p.m[1].set([4, 5, 6]);
p.inner[1].n[1] = 7;
p.grid[2][1].set([8, 9]);
p.far = 10;
const floats = new Float32Array(bytes, 320), words = new Uint32Array(bytes, 320);
assert.deepEqual([...floats.subarray(0, 4)], [1, 2, 3, 2.5]);
assert.deepEqual([...floats.subarray(8, 11)], [4, 5, 6]);
assert.equal(words[(48 + 32 + 16) / 4], 7);
assert.deepEqual([...floats.subarray((208 + 2 * 16 + 8) / 4, 64)], [8, 9]);
assert.equal(words[64], 10);
assert.equal(new Particle(bytes).far, 0);
assert.equal(List.sizeOf(0), 32);
assert.equal(List.sizeOf(3), 64);
assert.equal(new List(new ArrayBuffer(List.sizeOf(3))).itemsAt(2).byteOffset, 48);
)"))
                  .ok());
  EXPECT_EQ(runs("node " + (scratch_ / "host.mjs").string()), 0) << log();
}

TEST_F(Layout, mistakes_are_answered) {
  const std::string file = kData + "layout.wgsl";
  EXPECT_NE(testing::runTool(scratch_, "reflect " + file + " --layout rust").err.find("usage.value"), std::string::npos);
  EXPECT_NE(testing::runTool(scratch_, "reflect " + file + " --layout c --json").out.find("usage.value"), std::string::npos);
}

TEST_F(Layout, names_that_a_host_cannot_use_are_changed) {
  const std::string path = scratch_ / "names.wgsl";
  ASSERT_TRUE(
      io::writeFileAtomically(path, std::string_view("struct double { int: i32, größe: f32, padding_8: f32, v: vec3f }\n"
                                                     "struct S { double: double, count: u32, items: array<double> }\n"
                                                     "@group(0) @binding(0) var<storage, read_write> short: S;\n"
                                                     "@group(0) @binding(1) var<storage, read_write> S_items: array<vec3f>;\n"
                                                     "@compute @workgroup_size(1) fn main() { short.count = 1; S_items[0].x = 1; }\n"))
          .ok());
  const Outcome outcome = testing::runTool(scratch_, "reflect " + path + " --layout c");
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  ASSERT_TRUE(io::writeFileAtomically(scratch_ / "names.c", outcome.out + "int main(void) { return 0; }\n").ok());
  EXPECT_EQ(runs(LOCKSTEP_CXX + std::string(" -Wall -Wpadded -Werror -fsyntax-only -x c -std=c11 ") + (scratch_ / "names.c").string()), 0)
      << log() << outcome.out;
  EXPECT_EQ(runs(LOCKSTEP_CXX + std::string(" -Wall -Wpadded -Werror -fsyntax-only -x c++ -std=c++17 ") + (scratch_ / "names.c").string()),
            0)
      << log() << outcome.out;
}

}  // namespace
}  // namespace lockstep
