// SPDX-License-Identifier: Apache-2.0
// Replays tiny files of our own, in which it is known what agrees.
#include "conformance/conformance.h"

#include "tests/conformance/temporary_data.h"

namespace lockstep::conformance {
namespace {

std::vector<FileReport> replay(const TemporaryData& data, Settings settings = {}) {
  settings.folder = data.folder();
  std::vector<FileReport> reports;
  const Status status = run(settings, [&](const FileReport& report) { reports.push_back(report); });
  EXPECT_TRUE(status.ok()) << (status.ok() ? "" : toString(status.diagnostics().front()));
  return reports;
}

void expectCounts(const Counts& counts, uint64_t agree, uint64_t disagree, uint64_t unsupported) {
  EXPECT_EQ(counts.agree, agree);
  EXPECT_EQ(counts.disagree, disagree);
  EXPECT_EQ(counts.unsupported, unsupported);
}

constexpr std::string_view kVerdicts =
    R"({"q": "webgpu:shader,validation,one:a", "p": "", "k": "module", "ok": true, "code": "const a = 1;"}
{"q": "webgpu:shader,validation,one:b", "p": "", "k": "module", "ok": true, "code": "const a = ;"}
{"q": "webgpu:shader,validation,two:a", "p": "", "k": "module", "ok": false, "code": "const a = ;"}
{"q": "webgpu:shader,validation,two:b", "p": "", "k": "module", "ok": false, "code": "const a = 1;"}
)";

TEST(Replay, VerdictsAreCountedByFamily) {
  const TemporaryData data;
  data.write("cts_uniformity_compute", kVerdicts);
  const std::vector<FileReport> reports = replay(data);
  ASSERT_EQ(reports.size(), 1u);
  expectCounts(reports[0].counts, 2, 2, 0);
  ASSERT_EQ(reports[0].families.size(), 2u);
  expectCounts(reports[0].families.at("one"), 1, 1, 0);
  expectCounts(reports[0].families.at("two"), 1, 1, 0);
  ASSERT_EQ(reports[0].first.size(), 2u);
  EXPECT_TRUE(reports[0].first[1].test.starts_with("webgpu:shader,validation,two:b"));
}

TEST(Replay, OnlyAndFirstChoose) {
  const TemporaryData data;
  data.write("cts_uniformity_compute", kVerdicts);
  const std::vector<FileReport> reports = replay(data, {.folder = {}, .files = {}, .only = ":b", .differences = 1});
  ASSERT_EQ(reports.size(), 1u);
  expectCounts(reports[0].counts, 0, 2, 0);
  EXPECT_EQ(reports[0].first.size(), 1u);
}

/// The lists x + 1 and x + y; the last case of the second expects too much.
constexpr std::string_view kCases =
    R"({"h": "next", "n": 3, "params": ["u32"], "ret": "u32", "cases": [[[1], {"v": 2}], [[5], {"v": 6}], [[7], {"any": [{"v": 0}, {"v": 8}]}]]}
{"h": "sum", "n": 2, "params": ["f32", "f32"], "ret": "f32", "cases": [[["f3f800000", "f3f800000"], {"i": [2, 2]}], [["f3f800000", "f40000000"], {"i": [4, 5]}]]}
)";

/// The line of a run whose module adds what the type says, for each of the batch sizes.
std::string runLine(const std::string& name, const std::string& list, uint32_t lanes, const std::string& type, uint32_t parameters,
                    uint32_t stride, uint32_t batch, const std::vector<uint32_t>& sizes) {
  std::string types, offsets, modules, members;
  for (uint32_t p = 0; p < parameters; ++p) {
    types += std::string(p == 0 ? "" : ",") + "\"" + type + "\"";
    offsets += std::string(p == 0 ? "" : ",") + std::to_string(p * stride);
    members += "p" + std::to_string(p) + ": " + type + ", ";
  }
  const std::string in_stride = std::to_string(parameters * stride);
  for (const uint32_t size : sizes) {
    const std::string count = std::to_string(size), second = parameters == 2 ? "inputs[i].p1" : type + "(1)";
    modules += std::string(modules.empty() ? "" : ",") + R"({"first": 0, "n": )" + count + R"(, "wgsl": "struct Input { )" + members +
               "} @group(0) @binding(0) var<storage, read_write> outputs: array<" + type + ", " + count +
               ">; @group(0) @binding(1) var<storage> inputs: array<Input, " + count +
               ">; @compute @workgroup_size(1) fn main() { for (var i = 0; i < " + count + "; i++) { outputs[i] = inputs[i].p0 + " +
               second + "; } }\"}";
  }
  return R"({"q": "webgpu:shader,execution,)" + name + R"(", "p": "", "src": "storage_r", "vec": )" + std::to_string(lanes) +
         R"(, "h": ")" + list + R"(", "ptypes": [)" + types + R"(], "rtype": ")" + type + R"(", "batch": )" + std::to_string(batch) +
         R"(, "inStride": )" + in_stride + R"(, "inOff": [)" + offsets + R"(], "outStride": )" + std::to_string(stride) + R"(, "mods": [)" +
         modules + "]}\n";
}

TEST(Replay, ExpressionsRunInBatches) {
  const TemporaryData data;
  data.write("cts_expr_cases", kCases);
  data.write("cts_expr_runs", runLine("next:scalar", "next", 1, "u32", 1, 4, 2, {2, 1}) +         // two cases, then one
                                  runLine("next:vector", "next", 2, "vec2<u32>", 1, 8, 4, {2}) +  // the last case twice
                                  runLine("sum:scalar", "sum", 1, "f32", 2, 4, 8, {2}));
  const std::vector<FileReport> reports = replay(data, {.folder = {}, .files = {"cts_expr_runs"}, .only = {}});
  ASSERT_EQ(reports.size(), 1u);
  expectCounts(reports[0].counts, 2, 1, 0);
  expectCounts(reports[0].families.at("next"), 2, 0, 0);
  ASSERT_EQ(reports[0].first.size(), 1u);
  EXPECT_EQ(reports[0].first[0].why, "1 of 2 cases; case 1: of (1 (0x3f800000), 2 (0x40000000)) expected 4 .. 5, found 3 (0x40400000)");
}

TEST(Replay, ConstantsHaveEveryCaseInTheirText) {
  const TemporaryData data;
  data.write("cts_expr_cases", kCases);
  data.write("cts_expr_const_modules",
             R"({"q": "webgpu:shader,execution,next:const", "p": "", "src": "const", "vec": 1, "h": "next", "ptypes": ["u32"], )"
             R"("rtype": "u32", "batch": 2, "inStride": 16, "inOff": [], "outStride": 4, "mods": [)"
             R"({"first": 0, "n": 2, "wgsl": "@group(0) @binding(0) var<storage, read_write> o: array<u32, 2>; )"
             R"(@compute @workgroup_size(1) fn main() { o[0] = 1 + 1; o[1] = 5 + 1; }"},)"
             R"({"first": 2, "n": 1, "wgsl": "@group(0) @binding(0) var<storage, read_write> o: array<u32, 1>; )"
             R"(@compute @workgroup_size(1) fn main() { o[0] = 7 + 2; }"}]})");
  const std::vector<FileReport> reports = replay(data, {.folder = {}, .files = {"cts_expr_const_modules"}, .only = {}});
  ASSERT_EQ(reports.size(), 1u);
  expectCounts(reports[0].counts, 0, 1, 0);
  EXPECT_TRUE(reports[0].first[0].why.starts_with("1 of 3 cases; case 2: of (7)")) << reports[0].first[0].why;
}

TEST(Replay, LinesAreNamedWhenTheyAreNoTests) {
  const TemporaryData data;
  data.write("cts_uniformity_compute", std::string(kVerdicts) + "{\"q\": 1}\n");
  const Status status = run({.folder = data.folder(), .files = {}, .only = {}}, [](const FileReport&) {});
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.diagnostics().front().code, "conformance.line");
  EXPECT_EQ(status.diagnostics().front().where.line, 5u);
}

TEST(Replay, AFolderWithoutTheFilesIsAFailure) {
  const TemporaryData data;
  const Status status = run({.folder = data.folder(), .files = {}, .only = {}}, [](const FileReport&) {});
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.diagnostics().front().code, "conformance.folder");
}

}  // namespace
}  // namespace lockstep::conformance
