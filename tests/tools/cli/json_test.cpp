// SPDX-License-Identifier: Apache-2.0
// Every verb speaks JSON, and what it says is what docs/json.md and docs/schemas say.
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "frontend/io/npy.h"
#include "frontend/io/safetensors.h"
#include "tests/tools/cli/process.h"
#include "tests/tools/cli/schema.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::Outcome;
using testing::readSchema;
using testing::violation;

constexpr std::string_view kKernel = R"(
@group(0) @binding(0) var<storage, read_write> x: array<f32, 4>;
@compute @workgroup_size(4)
fn main(@builtin(global_invocation_id) id: vec3<u32>) { x[id.x] += 1.5; }
)";
constexpr std::string_view kGraph =
    "lockstep.graph 1\ngraph {\n  %x: f32[2] = input {dtype = f32, name = \"x\", shape = [2]}\n  %1: f32[2] = relu %x\n"
    "  output result \"y\" %1\n}\n";

class CliJson : public ::testing::Test {
 protected:
  CliJson() : scratch_("json") {
    EXPECT_TRUE(io::writeFileAtomically(scratch_ / "k.wgsl", kKernel).ok());
    EXPECT_TRUE(io::writeFileAtomically(scratch_ / "print.wgsl", "@compute @workgroup_size(2) fn f() { print(1.5, vec2(true)); }\n").ok());
    EXPECT_TRUE(io::writeFileAtomically(scratch_ / "bad.wgsl", "fn f() -> i32 { return 1.5; }\n").ok());
    EXPECT_TRUE(io::writeFileAtomically(scratch_ / "g.graph", kGraph).ok());
    const float two[] = {1, -2};
    io::TensorFile inputs;
    inputs.tensors["x"] = io::Array::fromFloats({2}, two);
    EXPECT_TRUE(io::writeSafetensors(scratch_ / "inputs.safetensors", inputs).ok());
    io::TensorFile golden;
    golden.metadata["good"] = R"({"op": "relu", "attrs": {}})";
    golden.tensors["good/in/x"] = io::Array::fromFloats({2}, two);
    golden.tensors["good/out/y"] = io::Array::fromDoubles({2}, std::vector<double>{1, 0});
    EXPECT_TRUE(io::writeSafetensors(scratch_ / "golden.safetensors", golden).ok());
  }
  /// In the scratch folder; arguments name files in it.
  Outcome run(const std::string& arguments) {
    const fs::path before = fs::current_path();
    fs::current_path(scratch_ / ".");
    Outcome outcome = testing::runTool(scratch_, arguments);
    fs::current_path(before);
    return outcome;
  }
  std::string read(const std::string& name) { return *io::readTextFile(scratch_ / name); }

  static void expectLines(const std::string& text, const std::string& schema) {
    std::istringstream lines(text);
    size_t count = 0;
    for (std::string line; std::getline(lines, line); ++count) {
      EXPECT_EQ(violation(line, readSchema(schema)), "") << line;
    }
    EXPECT_GT(count, 0u) << schema;
  }
  /// One value and nothing else.
  static void expectValue(const Outcome& outcome, const std::string& schema) {
    EXPECT_EQ(violation(outcome.out, readSchema(schema)), "") << outcome.out.substr(0, 500) << outcome.err;
  }

  testing::ScratchDirectory scratch_;
};

TEST_F(CliJson, every_verb_has_it) {
  // What these print is the text that was asked for.
  const std::set<std::string> texts = {"manual", "completions"};
  std::istringstream help(run("--help").out);
  size_t verbs = 0;
  for (std::string line; std::getline(help, line);) {
    if (!line.starts_with("  ")) continue;
    const std::string verb = line.substr(2, line.find(' ', 2) - 2);
    ++verbs;
    EXPECT_EQ(run(verb + " --help").out.find("--json") == std::string::npos, texts.contains(verb)) << verb;
  }
  EXPECT_GE(verbs, 12u);
}

TEST_F(CliJson, outputs_fit_their_schemas) {
  struct Row {
    std::string arguments, schema;
  };
  for (const Row& row : std::vector<Row>{
           {"devices", "devices"},
           {"doctor", "doctor"},
           {"explain file.read", "explain"},
           {"explain matmul.C1", "explain"},
           {"check k.wgsl", "check"},
           {"check bad.wgsl k.wgsl --limits portable", "check"},
           {"reflect k.wgsl", "reflect"},
           {"compile k.wgsl -o k.kir", "compile"},
           {"compile k.wgsl --format wgsl", "compile"},
           {"run k.wgsl --bind 0.0=iota:f32[4] --out 0.0=- --device reference", "run"},
           {"run k.wgsl --bind 0.0=iota:f32[4] --out 0.0=- --device reference --repeat 2", "run"},
           {"run k.wgsl --bind 0.0=iota:f32[4] --out 0.0=y.npy --device reference", "run"},
           {"run print.wgsl --device reference", "run"},
           {"run k.wgsl --bind 0.0=uninit:16 --sanitize", "run"},
           {"run g.graph --inputs inputs.safetensors", "run"},
           {"explore sine --device reference", "explore"},
           {"explore sine --device reference --out e.json", "explore_file"},
           {"opt g.graph --passes simplify", "opt"},
           {"opt g.graph -o h.graph", "opt"},
           {"opt --list", "opt_list"},
           {"verify golden golden.safetensors --device reference", "verify_golden"},
           {"verify samples sine --steps 1 --device reference", "verify_samples"},
           {"verify train sine --steps 1 --device reference", "verify_program"},
           {"verify train sine --device reference:fault=mul+99999ulp --out difference", "verify_program"},
           {"run k.wgsl --bind 0.0=iota:f32[4] --expect 0.0=difference/before_0.npy --device reference", "errors"},
           {"run difference/kernel.kir --dispatch 256 --bind 0.0=difference/before_0.npy --bind 0.1=difference/before_1.npy "
            "--bind 0.2=difference/before_2.npy --bind 0.3=difference/before_3.npy --expect 0.3=difference/expected_3.npy --device "
            "reference",
            "run"},
           {"run k.wgsl --bind 0.0=iota:f32[4] --devices reference,reference:fault=add+99999ulp", "run_devices"},
           {"bisect train sine --device reference", "bisect"},
           {"bisect train sine --device reference:fault=sub+99999ulp@register_rows", "bisect"},
           {"fmt --check k.wgsl", "fmt"},
           {"new my_model", "new"},
           {"no-such-verb", "errors"},
           {"opt no-such-file.graph", "errors"},
           {"train sine --device nonsense --no-out", "errors"},
       }) {
    SCOPED_TRACE(row.arguments);
    expectValue(run(row.arguments + " --json"), row.schema);
  }
  ASSERT_EQ(run("train sine --steps 2 --dump-steps 2 --dump-ir dump --device reference --no-out --json").status, 0);
  EXPECT_EQ(violation(read("dump/program.json"), readSchema("program")), "");
  EXPECT_EQ(json::parse(read("dump/program.json"))["lockstep_program"], 2);
  expectValue(
      run("run dump/*-kernels.program --steps 2 --load dump/start.safetensors --batches dump/batches.safetensors --save end.safetensors "
          "--device reference --json"),
      "run_steps");
  io::TensorFile huge = io::readSafetensors(scratch_ / "dump/batches.safetensors").orThrow();
  for (auto& [name, array] : huge.tensors) {
    if (array.type == io::ElementType::F32) array = io::Array::fromFloats(array.shape, std::vector<float>(array.elementCount(), 1e30F));
  }
  ASSERT_TRUE(io::writeSafetensors(scratch_ / "huge.safetensors", huge).ok());
  const Outcome overflow =
      run("run dump/*-kernels.program --steps 1 --load dump/start.safetensors --batches huge.safetensors --sanitize --json");
  EXPECT_EQ(overflow.status, 5);
  expectValue(overflow, "errors");
  EXPECT_NE(overflow.out.find("\"code\": \"float.not_finite\""), std::string::npos) << overflow.out;
  const json added = json::parse(run("run k.wgsl --bind 0.0=iota:f32[4] --out 0.0=- --device reference --json").out);
  EXPECT_EQ(added["outputs"][0]["values"], json({1.5, 2.5, 3.5, 4.5}));
  EXPECT_EQ(violation(read("e.json"), readSchema("explore")), "");
  // The command brings the lines of its samples along: this folder has none of the project's files.
  for (const char* file : {"examples/models/mlp.cpp", "examples/models/samples.cpp"})
    EXPECT_FALSE(json::parse(read("e.json"))["sources"][file].empty()) << file;
}

TEST_F(CliJson, unstable_choices_are_listed_with_their_places) {
  ASSERT_TRUE(io::writeFileAtomically(scratch_ / "choices.wgsl", R"(@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@compute @workgroup_size(8)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  let difference = x[id.x] * 0.1 - 0.3;
  y[id.x] = select(0.0, 1.0, bool(difference));
  if (difference < 0.0) { y[id.x] += 2.0; }
  if (x[id.x] < 3.0) { y[id.x] += 4.0; }
}
)")
                  .ok());
  const Outcome outcome = run("run choices.wgsl --bind 0.0=iota:f32[8] --bind 0.1=uninit:32 --sanitize=error --json");
  expectValue(outcome, "run");
  const json choices = json::parse(outcome.out)["unstable_choices"];
  ASSERT_EQ(choices.size(), 2u) << choices;
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(choices[i]["file"], "choices.wgsl");
    EXPECT_EQ(choices[i]["line"], i == 0 ? 6 : 7);
    EXPECT_EQ(choices[i]["column"], i == 0 ? 30 : 6);
    EXPECT_EQ(choices[i]["message"], "a device may choose differently here");
    EXPECT_EQ(choices[i]["count"], 1) << "of x[3]";
    EXPECT_EQ(choices[i]["invocation"], "workgroup (0, 0, 0), local (3, 0, 0)");
  }
  // An exact comparison has one answer.
  const json stable = json::parse(run("run k.wgsl --bind 0.0=uninit:16 --sanitize --json").out);
  EXPECT_EQ(stable["unstable_choices"], json::array());
}

TEST_F(CliJson, training_writes_lines) {
  const Outcome lines = run("train sine --device reference --steps 60 --json --out run");
  ASSERT_EQ(lines.status, 0) << lines.err;
  expectLines(lines.out, "train");
  const json last = json::parse(lines.out.substr(lines.out.rfind('\n', lines.out.size() - 2) + 1));
  EXPECT_EQ(last["final"], true);
  const Outcome sanitized = run("train sine --sanitize --steps 2 --json --no-out");
  expectLines(sanitized.out, "train");
  EXPECT_NE(sanitized.out.find("\"findings\": []"), std::string::npos) << sanitized.out;
  EXPECT_EQ(sanitized.err, "");
  expectLines(read("run/config.json"), "config");
  expectLines(read("run/losses.jsonl"), "losses");
  expectLines(read("run/metrics.jsonl"), "metrics");
}

TEST_F(CliJson, profiles_and_what_changed) {
  ::setenv("XDG_CACHE_HOME", (scratch_ / "cache").c_str(), 1);
  const Outcome profile = run("profile sine --device reference --steps 1 --json");
  ::unsetenv("XDG_CACHE_HOME");
  expectValue(profile, "profile");
  ASSERT_TRUE(io::writeFileAtomically(scratch_ / "p.json", std::string_view(profile.out)).ok());
  expectValue(run("profile --diff p.json p.json --json"), "profile_diff");
}

TEST_F(CliJson, errors_are_one_object_on_stdout) {
  ASSERT_TRUE(io::writeFileAtomically(scratch_ / "bad.graph", "lockstep.graph 1\ngraph {\n  %1: f32[2] = nonsense %x\n}\n").ok());
  const Outcome bad = run("opt bad.graph --json");
  EXPECT_EQ(bad.status, 4);
  EXPECT_EQ(bad.err, "");
  const json value = json::parse(bad.out);
  EXPECT_EQ(value["exit_code"], 4);
  EXPECT_EQ(value["errors"][0]["code"], "graph.op");
  EXPECT_TRUE(value["errors"][0]["place"].get<std::string>().starts_with("bad.graph:3:")) << bad.out;
}

TEST_F(CliJson, schema_checker_finds_mistakes) {
  const std::string schema = readSchema("losses");
  EXPECT_EQ(violation(R"({"step": 1, "loss": null})", schema), "");
  EXPECT_NE(violation(R"({"step": 1})", schema), "");
  EXPECT_NE(violation(R"({"step": "1", "loss": 2})", schema), "");
  EXPECT_NE(violation(R"({"step": 1.5, "loss": 2})", schema), "");
  EXPECT_NE(violation(R"({"step": 1, "loss": 2, "more": 3})", schema), "");
  EXPECT_NE(violation("3", R"({"enum": [1, 2]})"), "");
  EXPECT_NE(violation("3", R"({"minimum": 5})"), "") << "words that the checker would pass over";
}

/// The page links every schema, and each example fits the schema that was linked last before it.
TEST_F(CliJson, page_has_every_schema_and_right_examples) {
  const std::string page = *io::readTextFile(LOCKSTEP_SOURCE_DIR "/docs/json.md");
  for (const auto& entry : fs::directory_iterator(LOCKSTEP_SOURCE_DIR "/docs/schemas")) {
    EXPECT_NE(page.find("](schemas/" + entry.path().filename().string() + ")"), std::string::npos) << entry.path();
  }
  const std::string fence = "```json\n", link = "](schemas/";
  size_t examples = 0;
  for (size_t at = page.find(fence); at != std::string::npos; at = page.find(fence, at + 1), ++examples) {
    const size_t begin = at + fence.size(), name = page.rfind(link, at) + link.size();
    EXPECT_EQ(
        violation(page.substr(begin, page.find("```", begin) - begin), readSchema(page.substr(name, page.find(".json)", name) - name))), "")
        << page.substr(at, 200);
  }
  EXPECT_GE(examples, 3u);
}

TEST_F(CliJson, verbose_says_what_is_decided) {
  for (const char* command :
       {"-v train sine --no-out --steps 1 --device reference --json", "train sine --no-out --steps 1 --device reference --json -v"}) {
    const Outcome outcome = run(command);
    EXPECT_EQ(outcome.status, 0);
    EXPECT_NE(outcome.err.find("lockstep: device reference"), std::string::npos) << outcome.err;
    EXPECT_NE(outcome.err.find("lockstep: pass fuse "), std::string::npos) << outcome.err;
    expectLines(outcome.out, "train");
  }
  EXPECT_EQ(run("train sine --no-out --steps 1 --device reference --json").err, "");
}

}  // namespace
}  // namespace lockstep
