// SPDX-License-Identifier: Apache-2.0
// Recorded lines whose numbers, offsets and texts are wrong: each is an error that names the line, whatever it asks for.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "backends/dispatch.h"
#include "conformance/conformance.h"
#include "conformance/values.h"
#include "frontend/wgsl/wgsl.h"
#include "tests/conformance/temporary_data.h"

namespace lockstep::conformance {
namespace {

using nlohmann::json;

constexpr std::string_view kList = R"({"h": "next", "params": ["u32"], "ret": "u32", "cases": [[[1], {"v": 2}], [[5], {"v": 6}]]})";

json expressionLine() {
  json line = json::parse(R"({"q": "webgpu:shader,execution,next", "src": "storage_r", "vec": 1, "h": "next", "batch": 2, "inStride": 4,
    "inOff": [0], "outStride": 4, "mods": [{"first": 0, "n": 2}]})");
  line["mods"][0]["wgsl"] =
      "@group(0) @binding(0) var<storage, read_write> o: array<u32, 2>; @group(0) @binding(1) var<storage> i: array<u32, 2>;"
      "@compute @workgroup_size(1) fn main() { o[0] = i[0] + 1; o[1] = i[1] + 1; }";
  return line;
}

json programLine() {
  return json::parse(R"({"q": "a", "fam": "b", "wgs": [1, 1, 1], "constants": {}, "bufs": [{"size": 16, "in": "0", "out": "0"}],
    "binds": [{"group": 0, "binding": 0, "buf": 0, "offset": 0, "size": 16}],
    "wgsl": "@group(0) @binding(0) var<storage, read_write> o: array<u32>; @compute @workgroup_size(1) fn main() { o[0] = 0; }"})");
}

json consensusLine() {
  return json::parse(R"({"f": "a/b", "en": "main", "size": 16, "binds": [[0, 0]], "out": {"Z": {}},
    "wgsl": "@group(0) @binding(0) var<storage, read_write> o: array<u32>; @compute @workgroup_size(1) fn main() { o[0] = 0; }"})");
}

/// The code of the failure and what was said of its line; "agree" or "disagree" where there is none.
std::string judge(std::string_view file, const std::string& line, std::string_view list = kList) {
  const TemporaryData data;
  data.write("cts_expr_cases", std::string(list) + "\n");
  data.write(file, line + "\n");
  std::string found = "agree";
  const Status status =
      run({.folder = data.folder(), .files = {std::string(file)}, .only = {}, .threads = 2}, [&](const FileReport& report) {
        if (report.counts.agree == 0) found = "disagree";
      });
  if (status.ok()) return found;
  const Diagnostic& diagnostic = status.diagnostics().front();
  return diagnostic.code + " in line " + std::to_string(diagnostic.where.line);
}

struct Change {
  const char* member;  // a JSON pointer
  const char* value;
};

class WrongExpression : public ::testing::TestWithParam<Change> {};
TEST_P(WrongExpression, is_an_error) {
  json line = expressionLine();
  line[json::json_pointer(GetParam().member)] = json::parse(GetParam().value);
  EXPECT_EQ(judge("cts_expr_runs", line.dump()), "conformance.line in line 1");
}
INSTANTIATE_TEST_SUITE_P(Numbers, WrongExpression,
                         ::testing::Values(Change{"/inOff/0", "1"},           // the last value would end outside
                                           Change{"/inOff/0", "1000000000"},  //
                                           Change{"/inOff/0", "-4"}, Change{"/inOff", "[]"}, Change{"/inStride", "0"},
                                           Change{"/inStride", "2"}, Change{"/inStride", "-1"}, Change{"/inStride", "1099511627776"},
                                           Change{"/outStride", "0"}, Change{"/outStride", "3"}, Change{"/outStride", "-1"},
                                           Change{"/outStride", "9223372036854775808"}, Change{"/vec", "0"}, Change{"/vec", "5"},
                                           Change{"/vec", "2"},  // two lanes do not fit into four bytes
                                           Change{"/vec", "4294967296"}, Change{"/batch", "0"}, Change{"/batch", "-1"},
                                           Change{"/mods/0/n", "0"}, Change{"/mods/0/n", "-1"}, Change{"/mods/0/n", "1099511627776"},
                                           Change{"/mods/0/n", "1.5"}, Change{"/mods/0/n", "\"2\""}, Change{"/h", "\"none\""}));

class WrongProgram : public ::testing::TestWithParam<Change> {};
TEST_P(WrongProgram, is_an_error) {
  json line = programLine();
  line[json::json_pointer(GetParam().member)] = json::parse(GetParam().value);
  EXPECT_EQ(judge("cts_programs", line.dump()), "conformance.line in line 1");
}
INSTANTIATE_TEST_SUITE_P(Numbers, WrongProgram,
                         ::testing::Values(Change{"/bufs/0/size", "-1"}, Change{"/bufs/0/size", "1099511627776"},
                                           Change{"/wgs", "[1, 1, 1, 1]"},  // was an exception that ended the process
                                           Change{"/wgs", "[]"}, Change{"/wgs", "[-1]"}, Change{"/wgs", "[65535, 65535, 65535]"},
                                           Change{"/binds/0/offset", "18446744073709551360"}, Change{"/binds/0/size", "-1"},
                                           Change{"/binds/0/group", "4294967296"}, Change{"/binds/0/buf", "-1"},
                                           Change{"/bufs/0/in", "\"zAAAA\""}));

class WrongConsensus : public ::testing::TestWithParam<Change> {};
TEST_P(WrongConsensus, is_an_error) {
  json line = consensusLine();
  line[json::json_pointer(GetParam().member)] = json::parse(GetParam().value);
  EXPECT_EQ(judge("consensus", line.dump()), "conformance.line in line 1");
}
INSTANTIATE_TEST_SUITE_P(Numbers, WrongConsensus,
                         ::testing::Values(Change{"/size", "-1"}, Change{"/size", "1099511627776"}, Change{"/binds/0", "[0]"},
                                           Change{"/binds/0", "[0, -1]"}, Change{"/out", R"({"": {}})"}));

TEST(WrongLines, without_a_change_they_agree) {
  EXPECT_EQ(judge("cts_expr_runs", expressionLine().dump()), "agree");
  EXPECT_EQ(judge("cts_programs", programLine().dump()), "agree");
  EXPECT_EQ(judge("consensus", consensusLine().dump()), "agree");
}

TEST(WrongLines, expectations_have_one_known_member) {
  constexpr int kDeep = 100'000;
  std::string nested, closing;
  for (int i = 0; i < kDeep; ++i) nested += R"({"any":[)", closing += "]}";
  nested += R"({"v": 2})" + closing;
  for (const std::string& expectation :
       {std::string("{}"), std::string("[]"), std::string("null"), std::string(R"({"x": 1})"), std::string(R"({"any": 1})"),
        std::string(R"({"a": []})"), std::string(R"({"v": 1e300})"), nested}) {
    const std::string list = R"({"h": "next", "params": ["u32"], "ret": "u32", "cases": [[[1], )" + expectation + "]]}";
    EXPECT_EQ(judge("cts_expr_runs", expressionLine().dump(), list), "conformance.line in line 1") << expectation.substr(0, 40);
  }
}

TEST(WrongLines, a_list_has_cases) {
  EXPECT_EQ(judge("cts_expr_runs", expressionLine().dump(), R"({"h": "next", "params": ["u32"], "ret": "u32", "cases": []})"),
            "conformance.line in line 1");
}

TEST(WrongLines, a_binding_whose_end_wraps_is_outside_its_buffer) {
  const auto module =
      wgsl::read("@group(0) @binding(0) var<storage, read_write> o: array<u32>; @compute @workgroup_size(1) fn main() { o[0] = 0; }");
  ASSERT_TRUE(module.ok());
  const auto program = makeProgram({.module = *module,
                                    .entry = {},
                                    .bindings = {{.group = 0, .binding = 0, .buffer = 0, .offset = ~uint64_t{255}, .size = 512}},
                                    .buffer_sizes = {1024}});
  ASSERT_FALSE(program.ok());
  EXPECT_EQ(program.diagnostics().front().code, "run.bind");
}

}  // namespace
}  // namespace lockstep::conformance
