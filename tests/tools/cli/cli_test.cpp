// SPDX-License-Identifier: Apache-2.0
// The command as a process: help, exit codes, and that every mistake is answered.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cctype>
#include <filesystem>

#include "frontend/io/safetensors.h"
#include "tests/tools/cli/process.h"

namespace lockstep {
namespace {

using testing::Outcome;

class Cli : public ::testing::Test {
 protected:
  Cli() : scratch_("cli") {}
  Outcome run(const std::string& arguments) { return testing::runTool(scratch_, arguments); }
  std::string file(const std::string& name, std::string_view text) {
    EXPECT_TRUE(io::writeFileAtomically(scratch_ / name, text).ok());
    return scratch_ / name;
  }
  testing::ScratchDirectory scratch_;
};

TEST_F(Cli, help_lists_the_verbs) {
  const Outcome help = run("--help");
  EXPECT_EQ(help.status, 0);
  for (const char* verb : {"train", "devices", "doctor", "explain", "check", "reflect", "compile", "run", "explore", "opt", "profile",
                           "verify", "bisect", "fmt", "conformance", "new", "manual", "completions"}) {
    EXPECT_NE(help.out.find(verb), std::string::npos);
    const Outcome one = run(std::string(verb) + " --help");
    EXPECT_EQ(one.status, 0) << verb;
    EXPECT_NE(one.out.find("--help"), std::string::npos) << verb;
  }
}

TEST_F(Cli, help_and_errors_name_every_device) {
  const std::vector<std::string> selectors = {
      "auto", "reference", "vulkan:N", "vulkan:NAME", "reference:fault=OP+Nulp", "reference:perturb=LIST", "sanitizer"};
  for (const char* verb : {"train", "run", "explore", "profile", "verify", "bisect", "conformance"}) {
    const std::string help = run(std::string(verb) + " --help").out;
    for (const std::string& selector : selectors) EXPECT_NE(help.find(selector), std::string::npos) << verb << " and " << selector;
  }
  const std::string error = run("train sine --no-out --device nonsense").err;
  for (const char* selector : {"auto", "reference:fault=OP+Nulp", "reference:perturb=LIST", "sanitizer"})
    EXPECT_NE(error.find(selector), std::string::npos) << error;
}

TEST_F(Cli, help_names_every_check_of_the_sanitizer) {
  const std::string of_kernels = run("run --help").out, of_training = run("train --help").out;
  EXPECT_NE(of_kernels.find("=race,memory,integer,float,loop,barrier,subgroup,layout,wrap,error: "), std::string::npos) << of_kernels;
  EXPECT_NE(of_training.find("=race,memory,integer,float,loop,barrier,wrap,error: "), std::string::npos) << of_training;
  EXPECT_EQ(run("train sine --steps 1 --no-out --sanitize=race,memory,integer,float,loop,barrier,wrap").status, 0);
}

struct Mistake {
  const char* arguments;
  int status;
  const char* part;  // of what goes to stderr
};
void PrintTo(const Mistake& mistake, std::ostream* out) { *out << mistake.arguments; }

class CliMistake : public ::testing::TestWithParam<Mistake> {};
TEST_P(CliMistake, is_answered) {
  const testing::ScratchDirectory scratch("mistake");
  const Outcome outcome = testing::runTool(scratch, GetParam().arguments);
  EXPECT_EQ(outcome.status, GetParam().status) << outcome.err;
  EXPECT_NE(outcome.err.find(GetParam().part), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("error: "), std::string::npos) << outcome.err;
}
INSTANTIATE_TEST_SUITE_P(
    All, CliMistake,
    ::testing::Values(
        Mistake{"", 2, "usage.verb"}, Mistake{"trian", 2, "did you mean 'train'?"}, Mistake{"devices --jsn", 2, "did you mean '--json'?"},
        Mistake{"devices extra", 2, "usage.argument"}, Mistake{"train --steps many", 2, "usage."},
        Mistake{"train --steps -1", 2, "usage.steps"}, Mistake{"train sinus", 2, "did you mean 'sine'?"},
        Mistake{"train sine --disable-pass fusee", 2, "did you mean 'fuse'?"},
        Mistake{"train sine --disable-pass template:selective_skan", 2, "did you mean 'template:selective_scan'?"},
        Mistake{"train sine --memory-limit -1", 2, "--memory-limit"},
        Mistake{"train sine --no-out --device reference --memory-limit 1000", 6, "planBuffers.memory"},
        Mistake{"train sine --no-out --device nonsense", 3, "nonsense"}, Mistake{"opt", 2, "FILE"},
        Mistake{"opt no-such-file.graph", 4, "file.read"}, Mistake{"check", 2, "FILE"}, Mistake{"check no-such.wgsl", 4, "file.read"},
        Mistake{"check x.wgsl --limits portabel", 2, "did you mean 'portable'?"}, Mistake{"reflect no-such.wgsl", 4, "file.read"},
        Mistake{"compile x.wgsl", 2, "usage.format"}, Mistake{"compile x.wgsl -o x.wgls", 2, "did you mean 'wgsl'?"},
        Mistake{"compile x.wgsl -o x.wgsl --debug", 2, "usage.format"},
        Mistake{"compile x.wgsl -o x.spv --target vulkan1.2", 2, "did you mean 'vulkan1.1'?"}, Mistake{"run kernel.txt", 4, "run.file"},
        Mistake{"run no-such-file.wgsl", 4, "file.read"}, Mistake{"run k.kir --dispatch 0", 2, "run.dispatch"},
        Mistake{"train sine --no-out --disable-pass grad", 2, "pipeline.pass"}, Mistake{"verify samples all --steps 0", 2, "usage.steps"},
        Mistake{"verify samples nothing", 2, "usage.verify"}, Mistake{"verify samples all --device nonsense", 3, "nonsense"},
        Mistake{"manual extra", 2, "usage.argument"}, Mistake{"doctor extra", 2, "usage.argument"},
        Mistake{"profile sine --device nonsense", 3, "nonsense"}, Mistake{"profile sine --steps 0", 2, "usage.steps"},
        Mistake{"run x.graph --inputs no-such-file", 4, "file.read"}, Mistake{"run x.graph", 2, "usage.inputs"},
        Mistake{"train sine --no-out --data no-such-folder", 2, "usage.data: 'sine' makes its own data"},
        Mistake{"profile sine --data no-such-folder --device reference --steps 1", 2, "usage.data: 'sine' makes its own data"},
        Mistake{"train", 2, "usage.sample"},
        Mistake{"train mnist-cnn --no-out --data no-such-folder --device reference", 4, "no-such-folder"},
        Mistake{"verify golden", 2, "usage.value"}, Mistake{"verify goldn x", 2, "did you mean 'golden'?"},
        Mistake{"verify golden no-such-file", 4, "file.read"}, Mistake{"explain matmul.C33", 2, "did you mean 'matmul.C3'?"},
        Mistake{"--color sometimes devices", 2, "auto, always or never"},
        Mistake{"train sine --resume --out no-such-run", 4, "folder.missing"}, Mistake{"train --resume", 4, "folder.missing"},
        Mistake{"train sine --no-out --out x", 2, "usage.out"}, Mistake{"new", 2, "NAME"}, Mistake{"new 2nd_model", 2, "usage.name"},
        Mistake{"new my-model", 2, "usage.name"}, Mistake{"new all", 2, "usage.name"},
        Mistake{"completions bsh", 2, "did you mean 'bash'?"}, Mistake{"explore", 2, "NAME"},
        Mistake{"explore sin", 2, "did you mean 'sine'?"}, Mistake{"explore /", 4, "explore.dump"},
        Mistake{"explore sine --device nonsense", 3, "nonsense"}),
    [](const auto& info) {
      std::string name;
      for (const char c : std::string(info.param.arguments)) name += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
      return "m" + std::to_string(info.index) + "_" + name;
    });

TEST_F(Cli, explains_codes_of_the_page_and_constraints_of_ops) {
  EXPECT_TRUE(run("explain safetensors.offsets").out.starts_with("safetensors.offsets: a tensor lies outside the data"));
  EXPECT_TRUE(run("explain file.directory").out.starts_with("file.directory: the operating system refused"));
  EXPECT_TRUE(run("explain concat.C2").out.starts_with("concat.C2: a constraint of the op 'concat': "));
  EXPECT_TRUE(run("explain file.directory").out.ends_with("\ndocs/errors.md#file.directory\n"));
  EXPECT_TRUE(run("explain vulkan.loader").out.ends_with("\ndocs/errors.md#vulkan.loader\n"));
  EXPECT_TRUE(run("explain concat.C2").out.ends_with("\ndocs/ops.md#concat\n"));
  // What `check` prints in a warning.
  EXPECT_TRUE(run("explain lint.index").out.ends_with("\ndocs/errors.md#lint.index\n"));
  EXPECT_TRUE(run("explain lockstep.index_wraps").out.ends_with("\ndocs/errors.md#lockstep.index_wraps\n"));
  EXPECT_TRUE(run("explain vulkan.vkQueueSubmit").out.ends_with("\ndocs/errors.md\n"));
}

TEST_F(Cli, errors_are_coloured_when_asked_for) {
  EXPECT_NE(run("--color always explain nothing").err.find("\033[1;31merror:\033[0m"), std::string::npos);
  EXPECT_EQ(run("--color=never explain nothing").err.find('\033'), std::string::npos);
  EXPECT_EQ(run("explain nothing").err.find('\033'), std::string::npos);  // no terminal
  const std::string file = scratch_ / "wrong.wgsl";
  ASSERT_TRUE(io::writeFileAtomically(file, std::string_view("diagnostic(warning, nothing.here);\nfn f() { x = 1; }\n")).ok());
  const std::string coloured = run("--color always check " + file).out;
  EXPECT_NE(coloured.find(file + ":2:10: \033[1;31merror:\033[0m wgsl.name"), std::string::npos) << coloured;
  EXPECT_EQ(run("check " + file).out.find('\033'), std::string::npos);
}

TEST_F(Cli, training_goes_on_where_it_was) {
  const std::string folder = scratch_ / "sine";
  ASSERT_EQ(run("train sine --device reference --steps 3 --quiet --out " + folder).status, 0);
  EXPECT_EQ(run("train sine --device reference --steps 3 --out " + folder).status, 4);  // nothing is overwritten
  const Outcome more = run("train --resume --steps 5 --json --out " + folder);
  EXPECT_EQ(more.status, 0) << more.err;
  EXPECT_NE(more.out.find("\"steps\": 5"), std::string::npos) << more.out;
  EXPECT_EQ(run("train kan --resume --out " + folder).status, 2);
  EXPECT_EQ(run("train --resume --seed 7 --out " + folder).status, 2);
}

TEST_F(Cli, devices_and_doctor_give_json_lists) {
  const Outcome devices = run("devices --json");
  EXPECT_EQ(devices.status, 0);
  EXPECT_TRUE(devices.out.starts_with("[{\"id\": ")) << devices.out;
  EXPECT_NE(devices.out.find("\"id\": \"reference\""), std::string::npos);
  const Outcome doctor = run("doctor --json");
  EXPECT_TRUE(doctor.status == 0 || doctor.status == 3) << doctor.status;
  EXPECT_NE(doctor.out.find("\"vulkan.loader\""), std::string::npos);
  EXPECT_NE(doctor.out.find("\"id\": \"reference\""), std::string::npos);
}

TEST_F(Cli, everything_works_without_drivers) {
  ::setenv("VK_ICD_FILENAMES", "/no/such/driver.json", 1);
  ::setenv("VK_DRIVER_FILES", "/no/such/driver.json", 1);
  const Outcome devices = run("devices");
  const Outcome doctor = run("doctor");
  ::unsetenv("VK_ICD_FILENAMES");
  ::unsetenv("VK_DRIVER_FILES");
  EXPECT_EQ(devices.status, 0) << devices.err;
  EXPECT_NE(devices.out.find("auto takes reference"), std::string::npos) << devices.out;
  EXPECT_EQ(doctor.status, 3);
  EXPECT_NE(doctor.out.find("unset VK_"), std::string::npos) << doctor.out;
}

TEST_F(Cli, corrupt_golden_file_is_bad_input) {
  const Outcome outcome = run("verify golden " + file("bad.safetensors", "12345678{}"));
  EXPECT_EQ(outcome.status, 4);
  EXPECT_NE(outcome.err.find("safetensors.size"), std::string::npos) << outcome.err;
}

TEST_F(Cli, golden_case_of_each_status) {
  const float one[] = {1, 2};
  const double two[] = {2, 4}, three[] = {3, 4};
  io::TensorFile golden;
  for (const char* name : {"good", "bad"}) {
    golden.metadata[name] = R"({"op": "add", "attrs": {}})";
    golden.tensors[std::string(name) + "/in/a"] = io::Array::fromFloats({2}, one);
    golden.tensors[std::string(name) + "/in/b"] = io::Array::fromFloats({2}, one);
  }
  golden.tensors["good/out/y"] = io::Array::fromDoubles({2}, two);
  golden.tensors["bad/out/y"] = io::Array::fromDoubles({2}, three);
  golden.metadata["unknown"] = R"({"op": "fourier", "attrs": {}})";
  golden.tensors["unknown/out/y"] = io::Array::fromDoubles({2}, two);
  const std::string path = scratch_ / "golden.safetensors";
  ASSERT_TRUE(io::writeSafetensors(path, golden).ok());
  for (const char* device : {"evaluate", "reference"}) {
    const Outcome all = run("verify golden " + path + " --json --device " + device);
    EXPECT_EQ(all.status, 5) << all.err;
    EXPECT_NE(all.out.find(R"("passed": 1, "failed": 1, "unsupported": 1})"), std::string::npos) << all.out;
    EXPECT_EQ(run("verify golden " + path + " --filter '^good$' --device " + device).status, 0);
    EXPECT_EQ(run("verify golden " + path + " --filter unknown --device " + device).status, 5);
  }
  EXPECT_EQ(run("verify golden " + path + " --device evaluate --filter nothing").status, 2);
  EXPECT_EQ(run("verify golden " + path + " --device evaluate --filter '('").status, 2);
}

// Choices within a pass have names, too.
TEST_F(Cli, train_disables_choices_of_passes) {
  for (const char* name : {"template:selective_scan", "loops", "openExtents"}) {
    const Outcome outcome = run(fmt::format("train sine --steps 1 --no-out --quiet --device reference --disable-pass {}", name));
    EXPECT_EQ(outcome.status, 0) << name << ": " << outcome.err;
  }
}

// What a case means by more than its op has is not known, so it must not pass without it.
TEST_F(Cli, golden_case_with_more_than_its_op_has_is_refused) {
  const float one[] = {1, 2};
  const double two[] = {2, 4};
  io::TensorFile golden;
  golden.metadata["scaled"] = R"({"op": "add", "attrs": {"scale": 1}})";
  golden.metadata["shifted"] = R"({"op": "add", "attrs": {}})";
  golden.metadata["gated"] = R"({"op": "selective_scan", "attrs": {"delta_softplus": false, "discretise_B": "euler", "gate": "relu"}})";
  for (const std::string name : {"scaled", "shifted"}) {
    golden.tensors[name + "/in/a"] = io::Array::fromFloats({2}, one);
    golden.tensors[name + "/in/b"] = io::Array::fromFloats({2}, one);
    golden.tensors[name + "/out/y"] = io::Array::fromDoubles({2}, two);
  }
  golden.tensors["shifted/in/shift"] = io::Array::fromFloats({2}, one);
  for (const char* operand : {"u", "delta", "z", "B", "C"})
    golden.tensors[fmt::format("gated/in/{}", operand)] = io::Array::fromFloats({1, 1, 2}, one);
  golden.tensors["gated/in/A"] = io::Array::fromFloats({2, 2}, std::vector<float>(4, -1));
  golden.tensors["gated/in/D"] = io::Array::fromFloats({2}, one);
  golden.tensors["gated/out/y"] = io::Array::fromDoubles({1, 1, 2}, two);
  const std::string path = scratch_ / "golden.safetensors";
  ASSERT_TRUE(io::writeSafetensors(path, golden).ok());
  const Outcome outcome = run("verify golden " + path + " --device evaluate");
  EXPECT_NE(outcome.status, 0);
  for (const char* part : {"case 'scaled' of op 'add' has an attribute 'scale', which is not known here",
                           "case 'shifted' of op 'add' has an operand 'shift', which is not known here",
                           "case 'gated' of op 'selective_scan' has 'relu' as 'gate', wanted one of silu"})
    EXPECT_NE((outcome.out + outcome.err).find(part), std::string::npos) << part << "\n" << outcome.out << outcome.err;
}

TEST_F(Cli, every_signal_that_asks_for_the_end_stops_a_run_cleanly) {
  const std::string out = scratch_ / "out";
  for (const std::string signal : {"INT", "TERM", "HUP", "PIPE", "XFSZ"}) {
    const std::string folder = scratch_ / signal;
    // Once the first step is reported the run is under way.
    const std::string command = fmt::format(
        "{} train sine --device reference --steps 100000000 --quiet --out {} >{} 2>&1 & pid=$!; tries=0; "
        "until [ -s {}/losses.jsonl ] || [ $tries -ge 600 ]; do sleep 0.1; tries=$((tries + 1)); done; kill -s {} $pid; wait $pid",
        LOCKSTEP_TOOL, folder, out, folder, signal);
    const int raw = std::system(command.c_str());
    ASSERT_TRUE(WIFEXITED(raw)) << signal;
    EXPECT_EQ(WEXITSTATUS(raw), 130) << signal << *io::readTextFile(out);
    EXPECT_TRUE(std::filesystem::exists(folder + "/checkpoint.safetensors")) << signal;
    // The last line can be pasted.
    const std::string text = *io::readTextFile(out), hint = "to resume: ";
    ASSERT_NE(text.find(hint), std::string::npos) << text;
    const std::string resume = text.substr(text.find(hint) + hint.size());
    EXPECT_EQ(resume, LOCKSTEP_TOOL " train sine --resume --out " + folder + "\n");
  }
}

TEST_F(Cli, reader_that_goes_away_and_a_limit_of_files_lose_no_step) {
  const std::string folder = scratch_ / "pipe", out = scratch_ / "out";
  const auto status = [&](const std::string& command) {
    const int raw = std::system(command.c_str());
    return WIFEXITED(raw) ? WEXITSTATUS(raw) : -1;
  };
  EXPECT_EQ(
      status(fmt::format("bash -c 'set -o pipefail; {} train sine --device reference --steps 100000000 --json --out {} | head -n 1 >{}'",
                         LOCKSTEP_TOOL, folder, out)),
      130);
  EXPECT_TRUE(std::filesystem::exists(folder + "/checkpoint.safetensors"));
  const Outcome more = run("train --resume --quiet --steps 1 --out " + folder);
  EXPECT_EQ(more.status, 0) << more.err;

  // Pictures are larger than the limit; losses and checkpoints of this model are not.
  const std::string limited = scratch_ / "limited";
  EXPECT_EQ(status(fmt::format("bash -c 'ulimit -f 8; {} train kan --device reference --steps 5 --quiet --out {} >{} 2>&1'", LOCKSTEP_TOOL,
                               limited, out)),
            130)
      << *io::readTextFile(out);
  EXPECT_TRUE(std::filesystem::exists(limited + "/checkpoint.safetensors")) << *io::readTextFile(out);
}

TEST_F(Cli, train_without_a_name_lists_the_samples) {
  const Outcome none = run("train");
  EXPECT_EQ(none.status, 2);
  const Outcome help = run("train --help");
  EXPECT_EQ(help.status, 0);
  for (const char* sample : {"addition ", "sine ", "tic-tac-toe "}) {
    EXPECT_NE(none.err.find("note: " + std::string(sample)), std::string::npos) << none.err;
    EXPECT_NE(help.out.find("  " + std::string(sample)), std::string::npos) << help.out;
  }
}

TEST_F(Cli, checkpoint_of_another_model_is_incompatible) {
  const std::string sine = scratch_ / "sine", kan = scratch_ / "kan";
  for (const std::string name : {"sine", "kan"}) {
    ASSERT_EQ(run("train " + name + " --device reference --steps 1 --quiet --out " + (scratch_ / name).string()).status, 0);
  }
  std::filesystem::remove_all(sine + "/checkpoints");
  std::filesystem::copy(kan + "/checkpoints", sine + "/checkpoints");
  const Outcome outcome = run("train --resume --steps 2 --out " + sine);
  EXPECT_EQ(outcome.status, 8) << outcome.err;
  EXPECT_NE(outcome.err.find("error: checkpoint."), std::string::npos) << outcome.err;
}

/// The table of docs/errors.md and the manual have the same codes in the same words.
TEST_F(Cli, exit_codes_are_those_of_the_page) {
  const std::string page = *io::readTextFile(LOCKSTEP_SOURCE_DIR "/docs/errors.md"), manual = run("manual").out;
  std::string rest = manual.substr(manual.find(".SH EXIT STATUS\n"));
  size_t count = 0;
  for (size_t at = rest.find(".B "); at != std::string::npos; at = rest.find(".B ", at + 1), ++count) {
    const size_t line = rest.find('\n', at), end = rest.find('\n', line + 1);
    const std::string row = "| " + rest.substr(at + 3, line - at - 3) + " | " + rest.substr(line + 1, end - line - 1) + " |";
    EXPECT_NE(page.find(row + "\n"), std::string::npos) << row;
  }
  EXPECT_EQ(count, 10u);
}

/// One step of y = relu(x w1 + b1) w2 + b2 on a sample whose unit is on in exact arithmetic, and at 0 once x w1 is rounded to f32.
io::TensorFile unitAtZero() {
  float w1 = 0.7F, x = 1;
  while (static_cast<double>(w1) * x <= static_cast<double>(w1 * x)) x += 0.1F;
  const float b1 = -(w1 * x), w2 = 0.5F, b2 = 0.25F, y = 1, lr = 0.125F;
  const double hidden = static_cast<double>(w1) * x + b1, apart = hidden * w2 + b2 - y;
  const std::map<std::string, std::pair<float, double>> parameters = {
      {"l1.W", {w1, 2 * apart * w2 * x}}, {"l1.b", {b1, 2 * apart * w2}}, {"l2.W", {w2, 2 * apart * hidden}}, {"l2.b", {b2, 2 * apart}}};
  io::TensorFile golden;
  auto scalar = [](double value) { return std::vector<double>{value}; };
  for (const auto& [name, one] : parameters) {
    const auto [value, gradient] = one;
    const std::vector<int64_t> shape = name.ends_with("W") ? std::vector<int64_t>{1, 1} : std::vector<int64_t>{1};
    golden.tensors["init/" + name] = io::Array::fromFloats(shape, {&value, 1});
    golden.tensors["grad1/" + name] = io::Array::fromDoubles(shape, scalar(gradient));
    golden.tensors["final/" + name] = io::Array::fromDoubles(shape, scalar(value - lr * gradient));
  }
  golden.tensors["batch0001/x"] = io::Array::fromFloats({1, 1}, {&x, 1});
  golden.tensors["batch0001/y"] = io::Array::fromFloats({1, 1}, {&y, 1});
  golden.tensors["losses"] = io::Array::fromDoubles({1}, scalar(apart * apart));
  golden.metadata["mlp_sin"] = R"({"optimizer": {"kind": "sgd", "lr": 0.125}})";
  return golden;
}

TEST_F(Cli, training_may_differ_as_far_as_roundings_move_it) {
  const std::string path = scratch_ / "train_mlp_sin.safetensors";
  io::TensorFile golden = unitAtZero();
  ASSERT_TRUE(io::writeSafetensors(path, golden).ok());
  EXPECT_EQ(run("verify golden " + path + " --device evaluate").status, 0);
  const Outcome near = run("verify golden " + path + " --device reference");
  EXPECT_EQ(near.status, 0) << near.out;
  EXPECT_NE(near.out.find("roundings alone"), std::string::npos) << near.out;  // else the unit was on here too and nothing is shown

  golden.tensors["grad1/l2.b"] = io::Array::fromDoubles({1}, std::vector<double>{-1.51});  // -1.5; no rounding moves it
  ASSERT_TRUE(io::writeSafetensors(path, golden).ok());
  const Outcome wrong = run("verify golden " + path + " --device reference");
  EXPECT_EQ(wrong.status, 5) << wrong.out;
  EXPECT_NE(wrong.out.find("l2.b"), std::string::npos) << wrong.out;
}

TEST_F(Cli, opt_prints_what_it_read) {
  const std::string text =
      "lockstep.graph 1\ngraph {\n  %x: f32[2,3] = input {dtype = f32, name = \"x\", shape = [2, 3]}\n  %1: f32[2,3] = relu %x\n  output "
      "result \"y\" %1\n}\n";
  const std::string path = file("g.graph", text);
  const Outcome once = run("opt " + path + " -o " + (scratch_ / "h.graph").string());
  ASSERT_EQ(once.status, 0) << once.err;
  const Outcome twice = run("opt " + (scratch_ / "h.graph").string());
  EXPECT_EQ(twice.status, 0);
  EXPECT_EQ(*io::readTextFile(scratch_ / "h.graph"), twice.out);
  EXPECT_NE(twice.out.find("relu"), std::string::npos);
  EXPECT_EQ(run("opt " + path + " --passes simplify").status, 0);
  EXPECT_NE(run("opt " + path + " --passes simplfy").status, 0);
  const Outcome bad = run("opt " + file("bad.graph", "lockstep.graph 1\ngraph {\n  %1: f32[2] = nonsense %x\n}\n"));
  EXPECT_EQ(bad.status, 4);
  EXPECT_NE(bad.err.find("bad.graph:3:"), std::string::npos) << bad.err;
}

TEST_F(Cli, limits_of_a_webgpu_profile_are_the_whole_table) {
  const std::string path = file("k.wgsl",
                                "@group(4) @binding(0) var<storage, read_write> x: array<f32>;\n"
                                "@compute @workgroup_size(1, 1, 65) fn main() { x[0] = 1.0; }\n");
  const Outcome webgpu = run("check " + path + " --limits webgpu_default");
  EXPECT_EQ(webgpu.status, 4);
  EXPECT_NE(webgpu.out.find("is 5, but webgpu_default allows at most 4 (maxBindGroups)"), std::string::npos) << webgpu.out;
  EXPECT_NE(webgpu.out.find("is 65, but webgpu_default allows at most 64 (maxComputeWorkgroupSizeZ)"), std::string::npos) << webgpu.out;
  EXPECT_EQ(run("check " + path + " --limits cpu").status, 0);
}

TEST_F(Cli, limits_of_a_device_are_those_it_runs_with) {
  const auto kernel = [](int x, int y, int z) {
    return fmt::format(
        "@group(0) @binding(0) var<storage, read_write> o: array<u32>;\n"
        "@compute @workgroup_size({}, {}, {}) fn main(@builtin(local_invocation_index) i: u32) {{ o[i] = i; }}\n",
        x, y, z);
  };
  const std::string most = file("most.wgsl", kernel(1, 1, 1024)), more = file("more.wgsl", kernel(2, 1, 1024));
  EXPECT_EQ(run("check " + most + " --limits reference").status, 0);
  const Outcome ran = run("run " + most + " --device reference --bind 0.0=zeros:4096 --out 0.0=-");
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_NE(ran.out.find("1022 1023"), std::string::npos);
  const Outcome refused = run("check " + more + " --limits reference");
  EXPECT_NE(refused.out.find("is 2048, but CPU reference allows at most 1024 (maxComputeInvocationsPerWorkgroup)"), std::string::npos)
      << refused.out;
  EXPECT_NE(run("run " + more + " --device reference --bind 0.0=zeros:8192")
                .err.find("2048 invocations in a workgroup are above the limit of 1024"),
            std::string::npos);
  const std::string immediate = file("immediate.wgsl",
                                     "struct S { a: mat4x4f, b: mat4x4f, c: mat4x4f, d: mat4x4f, e: f32 }\nvar<immediate> s: S;\n"
                                     "@compute @workgroup_size(1) fn main() { _ = s.e; }\n");
  EXPECT_NE(run("check " + immediate + " --limits reference").out.find("is 272, but CPU reference allows at most 256 (maxImmediateSize)"),
            std::string::npos);
}

TEST_F(Cli, opt_runs_kernel_passes_on_a_kernel_text) {
  const std::string path =
      file("k.kir",
           "# a comment\nlockstep.kernel 1\nvar @x: array<u32, 4> {access = read_write, binding = 0, group = 0, space = "
           "storage}\nfn @main() {workgroup_size = [1, 1, 1]} {\n  %a: u32 = add 1u, 2u\n  %p: ptr<storage, u32, read_write> "
           "= access @x, 1u\n  store %p, %a\n}\n");
  EXPECT_NE(run("opt " + path).out.find("add 1u, 2u"), std::string::npos);
  const Outcome folded = run("opt " + path + " --passes foldConstants,removeDead");
  EXPECT_EQ(folded.status, 0) << folded.err;
  EXPECT_EQ(folded.out.find("add"), std::string::npos) << folded.out;
  EXPECT_NE(folded.out.find(", 3u"), std::string::npos) << folded.out;
  const Outcome unknown = run("opt " + path + " --passes simplify");
  EXPECT_NE(unknown.status, 0);
  EXPECT_NE(unknown.err.find("foldConstants"), std::string::npos) << unknown.err;
}

TEST_F(Cli, mistakes_in_texts_have_their_line_in_the_file) {
  // Each is read, and then refused by its validator, which has no lines of the file.
  const std::string graph = file("bad.graph",
                                 "# a comment\nlockstep.graph 1\n\nparameter w: f32[2,3] {decay = true}\ngraph {\n\n"
                                 "  %w: f32[2,3] = parameter {dtype = f32, name = \"w\", shape = [2, 3]}\n"
                                 "  %x: f32[3,3] = input {dtype = f32, name = \"x\", shape = [3, 3]}\n"
                                 "  %y: f32[2,2] = matmul %w, %x\n  output result \"y\" %y\n}\n");
  const std::string inputs = scratch_ / "none.safetensors";
  ASSERT_TRUE(io::writeSafetensors(inputs, {}).ok());
  EXPECT_TRUE(run("opt " + graph).err.starts_with(graph + ":9: error: graph.type")) << run("opt " + graph).err;
  EXPECT_TRUE(run("run " + graph + " --inputs " + inputs).err.starts_with(graph + ":9: error: graph.type"));
  // Attributes in another order: the line is quoted as it would be printed.
  const std::string unsorted = file("unsorted.graph",
                                    "lockstep.graph 1\ngraph {\n  %x: f32[2] = input {name = \"x\", dtype = f32, shape = [3]}\n"
                                    "  output result \"x\" %x\n}\n");
  EXPECT_TRUE(run("opt " + unsorted).err.starts_with(unsorted + ": error: graph.type: ")) << run("opt " + unsorted).err;
  EXPECT_NE(run("opt " + unsorted).err.find("note: in the order of the printer it is `%x: f32[2] = input {dtype = f32,"),
            std::string::npos);
  const std::string program = file("bad.program",
                                   "lockstep.program 1\n# a comment\nprofile portable\narena @a: input {size = 256}\n\n"
                                   "buffer %x: f32[8] input {arena = @a, offset = 8, size = 32}\ninput \"x\" %x\nend\n");
  EXPECT_TRUE(run("opt " + program).err.starts_with(program + ":6: error: program.buffer")) << run("opt " + program).err;
  EXPECT_TRUE(run("run " + program + " --inputs " + inputs).err.starts_with(program + ":6: error: program.buffer"));
  const std::string kernel = file("bad.kir",
                                  "# a comment\nlockstep.kernel 1\n\nfn @main() {workgroup_size = [1, 1, 1]} {\n"
                                  "    %a: u32 = add 1u, 2.0f\n}\n");
  for (const char* verb : {"opt ", "run ", "compile -o x.wgsl "}) {
    const Outcome outcome = run(verb + kernel);
    EXPECT_TRUE(outcome.err.starts_with(kernel + ":5:5: error: kernel.type")) << outcome.err;
  }
}

}  // namespace
}  // namespace lockstep
