// SPDX-License-Identifier: Apache-2.0
// Saving and going on, resetting, and replacing the model.
#include <filesystem>
#include <fstream>

#include "frontend/io/file.h"
#include "frontend/io/sealed.h"
#include "tests/frontend/trainer_fixture.h"

namespace lockstep {
namespace {

class Checkpoints : public OnDevice {};
INSTANTIATE_TEST_SUITE_P(Devices, Checkpoints, testing::Values("reference", "vulkan"), deviceName);

/// A path that is free at the start and at the end of a test.
class ScratchPath {
 public:
  explicit ScratchPath(const std::string& name) : path_(std::filesystem::temp_directory_path() / ("lockstep_" + name)) { remove(); }
  ~ScratchPath() { remove(); }
  ScratchPath(const ScratchPath&) = delete;
  ScratchPath& operator=(const ScratchPath&) = delete;
  operator const std::filesystem::path&() const { return path_; }
  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }

 private:
  void remove() { std::filesystem::remove_all(path_); }
  std::filesystem::path path_;
};

void train(ModelTrainer<Mlp>& trainer, size_t from, size_t to) {
  for (size_t step = from; step < to; ++step) trainer.step(batchOf(dataOf(step)));
}

TEST_P(Checkpoints, saved_run_goes_on_byte_for_byte) {
  ScratchPath path(std::string("checkpoint_") + GetParam() + ".safetensors");
  CompileSpec<Mlp> spec = specFor(GetParam());
  spec.optimizer =
      adamw({.lr = schedule::warmup({.peak = 0.01, .steps = 3, .after = schedule::linear({.peak = 0.01, .final = 0, .steps = 20})}),
             .weight_decay = 0.1},
            {.clip_grad_norm = 1});
  auto trainer = compile<Mlp>(spec);
  train(trainer, 0, 5);
  trainer.save(path);
  train(trainer, 5, 9);
  spec.seed = 99;
  auto other = compile<Mlp>(spec);
  other.load(path);
  EXPECT_EQ(other.step_count(), 5u);
  EXPECT_EQ(other.seed(), 7u);
  train(other, 5, 9);
  EXPECT_EQ(io::formatSafetensors(other.checkpoint()), io::formatSafetensors(trainer.checkpoint()));
}

TEST_P(Checkpoints, dynamic_trainer_goes_on_before_its_first_program) {
  CompileSpec<Mlp> spec = specFor(GetParam());
  spec.inputs = {{"x", f32(dynamic, 1)}, {"y", f32(dynamic, 1)}};
  auto trainer = compile<Mlp>(spec), other = compile<Mlp>(spec);
  train(trainer, 0, 3);
  other.restore(trainer.checkpoint());
  EXPECT_EQ(other.checkpoint(), trainer.checkpoint());
  train(trainer, 3, 5);
  train(other, 3, 5);
  EXPECT_EQ(other.checkpoint(), trainer.checkpoint());
}

TEST_P(Checkpoints, averages_and_frozen_parameters_go_on_too) {
  CompileSpec<Mlp> spec = specFor(GetParam());
  spec.optimizer = adam({.lr = 0.01},
                        {.groups = {{.filter = [](const std::string& name) { return name == "l1.b"; }, .frozen = true}}, .ema_decay = 0.5});
  auto trainer = compile<Mlp>(spec), other = compile<Mlp>(spec);
  EXPECT_EQ(trainer.download_ema(), trainer.download());
  Forward average =
      trainer.attach({.inputs = {{"x", f32(1, 1)}}, .forward = [](const Mlp& m, const Inputs& in) { return m(in["x"]); }, .use_ema = true});
  const std::vector<float> x{0.5f};
  const float before = average.run({{"x", x}}).output.floats()[0];
  train(trainer, 0, 3);
  EXPECT_NE(trainer.download_ema(), trainer.download());
  EXPECT_NE(average.run({{"x", x}}).output.floats()[0], before);
  const io::TensorFile file = trainer.checkpoint();
  EXPECT_NE(file.find("ema/l1.b"), nullptr);
  EXPECT_EQ(file.find("m/l1.b"), nullptr);
  EXPECT_NE(file.find("m/l1.W"), nullptr);
  other.restore(file);
  train(trainer, 3, 5);
  train(other, 3, 5);
  EXPECT_EQ(other.checkpoint(), trainer.checkpoint());
  spec.optimizer.groups.clear();
  auto thawed = compile<Mlp>(spec);
  EXPECT_EQ(caught([&] { thawed.restore(file); }).code(), "checkpoint.parameter");
}

TEST_P(Checkpoints, average_needs_a_decay) {
  auto trainer = make();
  EXPECT_EQ(caught([&] { (void)trainer.download_ema(); }).code(), "parameters.ema");
  EXPECT_EQ(caught([&] {
              (void)trainer.attach(
                  {.inputs = {{"x", f32(1, 1)}}, .forward = [](const Mlp& m, const Inputs& in) { return m(in["x"]); }, .use_ema = true});
            }).code(),
            "parameters.ema");
}

TEST_P(Checkpoints, rebased_schedule_and_cursor_come_back) {
  auto trainer = make(), other = make();
  train(trainer, 0, 2);
  trainer.set_lr(schedule::multi_step({.peak = 0.5, .milestones = {2, 4}, .gamma = 0.1}));
  const DataCursor cursor{{"epoch", int64_t{3}}, {"file", "b \"quoted\".txt"}, {"empty", ""}};
  EXPECT_EQ(other.restore(trainer.checkpoint(cursor)), cursor);
  for (size_t step = 2; step < 7; ++step) {
    EXPECT_EQ(other.lr(), trainer.lr()) << step;
    train(trainer, step, step + 1);
    train(other, step, step + 1);
  }
  EXPECT_LT(other.lr(), 0.01);
}

TEST_P(Checkpoints, floats_of_16_bits_widen_to_the_states_that_are_f32) {
  auto trainer = make();
  train(trainer, 0, 2);
  io::TensorFile file = trainer.checkpoint();
  for (auto& [name, array] : file.tensors) array = io::Array::from(io::ElementType::BF16, array.shape, array.toDoubles());
  trainer.restore(io::parseSafetensors(io::formatSafetensors(file), "checkpoint").orThrow());
  for (const auto& [name, array] : trainer.checkpoint().tensors) {
    EXPECT_EQ(array.type, io::ElementType::F32) << name;
    EXPECT_EQ(array.toFloats(), file.tensors.at(name).toFloats()) << name;
  }
  for (const io::ElementType type : {io::ElementType::F64, io::ElementType::I8, io::ElementType::U8, io::ElementType::U16}) {
    file.tensors.at("l1.W") = io::Array::zeros(type, {1, 16});
    EXPECT_EQ(caught([&] { trainer.restore(file); }).code(), "checkpoint.shape") << toString(type);
  }
}

TEST_P(Checkpoints, incompatible_files_change_nothing_and_name_the_first_difference) {
  auto trainer = make();
  train(trainer, 0, 1);
  const io::TensorFile good = trainer.checkpoint();
  auto rejected = [&](const io::TensorFile& file, const std::string& code, const std::string& words = "") {
    Error error = caught([&] { trainer.restore(file); });
    EXPECT_EQ(error.code(), code);
    EXPECT_EQ(error.exitCode(), ExitCode::IncompatibleCheckpoint);
    EXPECT_NE(std::string(error.what()).find(words), std::string::npos) << error.what();
    EXPECT_EQ(trainer.checkpoint(), good);
  };
  auto with = [&](auto change) {
    io::TensorFile file = good;
    change(file);
    return file;
  };
  rejected(with([](auto& file) { file.tensors.erase("m/l1.W"); }), "checkpoint.missing", "'m/l1.W'");
  rejected(with([](auto& file) { file.tensors.emplace("extra", io::Array::zeros(io::ElementType::F32, {1})); }), "checkpoint.unknown");
  rejected(with([](auto& file) { file.tensors["l1.W"] = io::Array::zeros(io::ElementType::F32, {16, 1}); }), "checkpoint.shape");
  rejected(with([](auto& file) { file.metadata["lockstep.optimizer.name"] = "sgd"; }), "checkpoint.optimizer",
           "optimizer 'name' is sgd in the checkpoint and adam in the trainer");
  rejected(with([](auto& file) { file.metadata["lockstep.optimizer.beta1"] = "0.8"; }), "checkpoint.optimizer", "beta1");
  rejected(with([](auto& file) { file.metadata.erase("lockstep.parameter.l2.b"); }), "checkpoint.parameter", "absent in the checkpoint");
  rejected(with([](auto& file) { file.metadata["lockstep.parameter.l2.W"] = "f32[8,1] weight_decay 0 lr_factor 1"; }),
           "checkpoint.parameter", "f32[8,1]");
  rejected(with([](auto& file) { file.metadata.erase("lockstep.state.v"); }), "checkpoint.state", "'v'");
  rejected(with([](auto& file) { file.metadata["lockstep.state.v"] = "f32[1"; }), "checkpoint.metadata");
  rejected(with([](auto& file) { file.metadata["lockstep.step"] = "many"; }), "checkpoint.metadata");
  rejected(with([](auto& file) { file.metadata.erase("lockstep.schedule.kind"); }), "checkpoint.metadata");
  rejected(with([](auto& file) { file.metadata["lockstep.schedule.steps"] = "0"; }), "checkpoint.metadata");
  for (const char* step : {"9223372036854775808", "18446744073709551615", "9007199254740993", "-1"})
    rejected(with([&](auto& file) { file.metadata["lockstep.step"] = step; }), "checkpoint.metadata", "lockstep.step");
  for (const char* number : {"nan", "inf", "-1", "1e999"}) {
    for (const char* entry : {"peak", "final", "gamma"}) {
      const std::string key = std::string("lockstep.schedule.") + entry;
      rejected(with([&](auto& file) { file.metadata[key] = number; }), "checkpoint.metadata", key);
    }
  }
  for (const char* count : {"-1", "0", "9223372036854775807", "99999999999999999999"}) {
    for (const char* entry : {"steps", "every", "milestones"}) {
      const std::string key = std::string("lockstep.schedule.") + entry;
      rejected(with([&](auto& file) { file.metadata[key] = count; }), "checkpoint.metadata", key);
    }
  }
  for (const char* start : {"-9223372036854775808", "9223372036854775807"})
    rejected(with([&](auto& file) { file.metadata["lockstep.schedule.start_step"] = start; }), "checkpoint.metadata", "start_step");
  rejected(
      with([](auto& file) {
        std::string prefix = "lockstep.schedule.";
        for (int depth = 0; depth < 100; ++depth) {
          for (const auto& [key, text] : std::map<std::string, std::string>{
                   {"kind", "warmup"}, {"peak", "1"}, {"final", "0"}, {"gamma", "1"}, {"steps", "1"}, {"every", "1"}, {"milestones", ""}})
            file.metadata[prefix + key] = text;
          prefix += "after.";
        }
      }),
      "checkpoint.metadata", "nested");
  rejected(with([](auto& file) { file.metadata["lockstep.checkpoint"] = "1"; }), "checkpoint.version");
  rejected(with([](auto& file) { file.metadata.clear(); }), "checkpoint.metadata");
}

TEST_P(Checkpoints, checkpoint_of_another_optimizer_is_refused) {
  auto trainer = make();
  CompileSpec<Mlp> spec = specFor(GetParam());
  spec.optimizer = sgd({.lr = 0.1});
  auto other = compile<Mlp>(spec);
  Error error = caught([&] { other.restore(trainer.checkpoint()); });
  EXPECT_EQ(error.code(), "checkpoint.optimizer");
  EXPECT_EQ(error.exitCode(), ExitCode::IncompatibleCheckpoint);
}

TEST_P(Checkpoints, other_parameter_groups_are_refused) {
  CompileSpec<Mlp> spec = specFor(GetParam());
  auto trained = [&](const ParameterGroup& group) {
    spec.optimizer = adamw({.lr = 0.01}, {.groups = {group}});
    return compile<Mlp>(spec);
  };
  const NameFilter l2 = [](const std::string& name) { return name == "l2.W"; };
  auto trainer = trained({.filter = l2, .lr_factor = 0.5, .weight_decay = 0.25});
  const io::TensorFile file = trainer.checkpoint();
  EXPECT_EQ(file.metadata.at("lockstep.parameter.l2.W"), "f32[16,1] weight_decay 0.25 lr_factor 0.5");
  auto same = trained({.filter = l2, .lr_factor = 0.5, .weight_decay = 0.25});
  same.restore(file);
  const ParameterGroup others[] = {{.filter = l2, .lr_factor = 0.5, .weight_decay = 0.5},
                                   {.filter = l2, .lr_factor = 1, .weight_decay = 0.25},
                                   {.filter = [](const std::string&) { return true; }, .lr_factor = 0.5, .weight_decay = 0.25}};
  for (const ParameterGroup& group : others) {
    auto other = trained(group);
    const Error error = caught([&] { other.restore(file); });
    EXPECT_EQ(error.code(), "checkpoint.parameter");
    EXPECT_EQ(error.exitCode(), ExitCode::IncompatibleCheckpoint);
  }
  auto other = trained({.filter = l2, .lr_factor = 2, .weight_decay = 0.25});
  const std::string said = caught([&] { other.restore(file); }).what();
  EXPECT_NE(said.find("parameter 'l2.W' is f32[16,1] weight_decay 0.25 lr_factor 0.5 in the checkpoint and f32[16,1] weight_decay 0.25 "
                      "lr_factor 2 in the trainer"),
            std::string::npos)
      << said;
}

TEST_P(Checkpoints, reset_starts_the_same_run_again) {
  auto trainer = make();
  const io::TensorFile fresh = trainer.checkpoint();
  train(trainer, 0, 3);
  trainer.set_lr(0.5);
  trainer.reset();
  EXPECT_EQ(trainer.checkpoint(), fresh);
}

TEST_P(Checkpoints, reset_leaves_what_is_not_asked_for) {
  auto trainer = make();
  train(trainer, 0, 3);
  trainer.set_lr(0.5);
  const io::TensorFile trained = trainer.checkpoint();
  trainer.reset({.parameters = false, .step = false, .schedule = false});
  EXPECT_EQ(trainer.step_count(), 3u);
  EXPECT_EQ(trainer.lr(), 0.5);
  EXPECT_EQ(trainer.checkpoint().tensors.at("l1.W"), trained.tensors.at("l1.W"));
  EXPECT_EQ(trainer.checkpoint().tensors.at("m/l1.W"), io::Array::zeros(io::ElementType::F32, {1, 16}));
  trainer.restore(trained);
  trainer.reset({.optimizer = false, .step = false, .schedule = false});
  EXPECT_EQ(trainer.checkpoint().tensors.at("m/l1.W"), trained.tensors.at("m/l1.W"));
  EXPECT_NE(trainer.checkpoint().tensors.at("l1.W"), trained.tensors.at("l1.W"));
}

/// A model whose width is not part of its type.
struct Sized : Module {
  explicit Sized(int64_t width)
      : l1(*this, "l1", 1, width, {.init = init::randn(0.5)}), l2(*this, "l2", width, 1, {.init = init::randn(0.5)}) {}
  nn::Linear l1, l2;
  Tensor operator()(Tensor x) const { return l2(relu(l1(x))); }
};

ModelTrainer<Sized> sizedTrainer(const std::string& device) {
  return compile<Sized>({.inputs = {{"x", f32(kBatch, 1)}, {"y", f32(kBatch, 1)}},
                         .loss = [](const Sized& model, const Inputs& in) { return mean(square(model(in["x"]) - in["y"])); },
                         .optimizer = adam({.lr = 0.01}),
                         .seed = 1,
                         .device = device,
                         .make = [] { return std::make_unique<Sized>(8); }});
}

TEST_P(Checkpoints, replaced_model_starts_fresh_and_forwards_follow) {
  auto trainer = sizedTrainer(GetParam());
  Forward forward = trainer.attach({.inputs = {{"x", f32(2, 1)}}, .forward = [](const Sized& m, const Inputs& in) { return m(in["x"]); }});
  for (size_t step = 0; step < 3; ++step) trainer.step(batchOf(dataOf(step)));
  trainer.set_lr(0.5);
  std::vector<float> x{0.5f, 1.0f};
  const float before = forward.run({{"x", x}}).output.floats()[0];
  trainer.replace_model([] { return std::make_unique<Sized>(24); }, {.seed = 5});
  EXPECT_EQ(trainer.step_count(), 0u);
  EXPECT_EQ(trainer.seed(), 5u);
  EXPECT_EQ(trainer.lr(), 0.01);
  EXPECT_EQ(trainer.download().at("l1.W").size(), 24u);
  EXPECT_EQ(trainer.facts().parameters, 73);

  auto expected = [&](float input) {
    const ParameterValues p = trainer.download();
    double y = p.at("l2.b")[0];
    for (size_t i = 0; i < 24; ++i) y += std::max(0.0f, input * p.at("l1.W")[i] + p.at("l1.b")[i]) * p.at("l2.W")[i];
    return y;
  };
  const float after = forward.run({{"x", x}}).output.floats()[0];
  EXPECT_NE(after, before);
  EXPECT_NEAR(after, expected(0.5f), 1e-5);
  EXPECT_TRUE(trainer.step(batchOf(dataOf(0))).completed());
  EXPECT_NEAR(forward.run({{"x", x}}).output.floats()[1], expected(1.0f), 1e-5);
}

TEST_P(Checkpoints, failed_replacement_leaves_the_old_model) {
  auto trainer = sizedTrainer(GetParam());
  trainer.step(batchOf(dataOf(0)));
  const io::TensorFile before = trainer.checkpoint();
  EXPECT_EQ(caught([&] { trainer.replace_model([] { return std::make_unique<Sized>(4); }, {.optimizer = sgd()}); }).code(),
            "replace.optimizer");
  EXPECT_EQ(caught([&] { trainer.replace_model([] { return std::make_unique<Sized>(0); }); }).code(), "parameter.shape");
  EXPECT_EQ(caught([&] { trainer.replace_model([]() -> std::unique_ptr<Sized> { return nullptr; }); }).code(), "compile.function");
  EXPECT_EQ(trainer.checkpoint(), before);
  EXPECT_TRUE(trainer.step(batchOf(dataOf(1))).completed());
}

TEST_P(Checkpoints, open_tickets_survive_a_replacement) {
  auto trainer = sizedTrainer(GetParam());
  Data data = dataOf(0);
  const uint64_t ticket = trainer.enqueue(2, [&](size_t) { return batchOf(data); });
  trainer.replace_model([] { return std::make_unique<Sized>(4); });
  EXPECT_TRUE(trainer.wait(ticket).back().completed());
}

TEST(CheckpointFolders, last_ones_stay_and_the_newest_resumes) {
  ScratchPath folder("folder_keep");
  auto trainer = compile<Mlp>(specFor("reference"));
  CheckpointFolder checkpoints(folder, 2);
  EXPECT_FALSE(checkpoints.latest().has_value());
  EXPECT_FALSE(checkpoints.resume(trainer).has_value());
  for (size_t step = 0; step < 4; ++step) {
    train(trainer, step, step + 1);
    checkpoints.save(trainer, {{"step", static_cast<int64_t>(step + 1)}});
  }
  ASSERT_EQ(checkpoints.list().size(), 2u);
  EXPECT_EQ(checkpoints.list().front().filename(), "step-000000000003.safetensors");
  auto other = compile<Mlp>(specFor("reference"));
  EXPECT_EQ(checkpoints.resume(other), (DataCursor{{"step", int64_t{4}}}));
  EXPECT_EQ(other.checkpoint(), trainer.checkpoint());
}

/// The file with other bits in one byte.
void flip(const std::filesystem::path& path, size_t at) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(static_cast<std::streamoff>(at));
  const auto old = static_cast<char>(file.get());
  file.seekp(static_cast<std::streamoff>(at));
  file.put(static_cast<char>(old ^ 0x11));
}

TEST(Checkpoints, of_which_any_byte_has_changed_are_refused) {
  ScratchPath path("checkpoint_flipped.safetensors");
  auto trainer = compile<Mlp>(specFor("reference")), other = compile<Mlp>(specFor("reference"));
  train(trainer, 0, 1);
  trainer.save(path);
  const io::TensorFile saved = trainer.checkpoint();
  const size_t size = std::filesystem::file_size(path);
  size_t refused = 0;
  for (size_t at = 0; at < size; ++at) {
    flip(path, at);
    try {
      other.load(path);
      EXPECT_EQ(other.checkpoint(), saved) << at;  // the name of the entry, or a space of the header
    } catch (const Error& error) {
      ++refused;
    }
    flip(path, at);
  }
  EXPECT_GT(refused, size - 40);
  EXPECT_NO_THROW(other.load(path));
}

TEST(CheckpointFolders, checkpoint_with_a_changed_number_is_passed_over) {
  ScratchPath folder("folder_flipped");
  auto trainer = compile<Mlp>(specFor("reference"));
  CheckpointFolder checkpoints(folder);
  train(trainer, 0, 1);
  const std::filesystem::path good = checkpoints.save(trainer);
  train(trainer, 1, 2);
  const std::filesystem::path bad = checkpoints.save(trainer);
  EXPECT_EQ(checkpoints.latest(), bad);
  flip(bad, std::filesystem::file_size(bad) - 1);
  EXPECT_TRUE(io::readSafetensors(bad).ok());
  EXPECT_EQ(checkpoints.latest(), good);
  EXPECT_EQ(caught([&] { (void)trainer.load(bad); }).code(), "safetensors.checksum");
  // Where none is left, training must not begin anew beside them.
  flip(good, std::filesystem::file_size(good) - 1);
  const Error error = caught([&] { (void)checkpoints.resume(trainer); });
  EXPECT_EQ(error.code(), "checkpoint.damaged");
  EXPECT_EQ(error.diagnostics()[0].notes.size(), 2u);
  std::filesystem::remove(good);
  std::filesystem::remove(bad);
  EXPECT_EQ(checkpoints.resume(trainer), std::nullopt);
}

TEST(CheckpointFolders, newer_damaged_files_never_push_the_good_one_out) {
  ScratchPath folder("folder_pushed");
  auto trainer = compile<Mlp>(specFor("reference"));
  const std::filesystem::path good = CheckpointFolder(folder, 2).save(trainer);
  for (const char* name : {"step-000000000007.safetensors", "step-000000000008.safetensors", "step-000000000009.safetensors"})
    std::ofstream(folder / name) << "no checkpoint";
  CheckpointFolder checkpoints(folder, 2);
  EXPECT_EQ(checkpoints.latest(), good);
  train(trainer, 0, 1);
  const std::filesystem::path first = checkpoints.save(trainer);
  // The new one and the one before: the damaged ones do not count, and stay for the user to look at.
  EXPECT_EQ(checkpoints.list().size(), 5u);
  EXPECT_TRUE(std::filesystem::exists(good));
  train(trainer, 1, 2);
  const std::filesystem::path second = checkpoints.save(trainer);
  EXPECT_FALSE(std::filesystem::exists(good));
  EXPECT_TRUE(std::filesystem::exists(first));
  EXPECT_EQ(checkpoints.latest(), second);
  // An older one that was damaged in the meantime is not counted either.
  std::filesystem::resize_file(second, 100);
  train(trainer, 2, 3);
  const std::filesystem::path third = checkpoints.save(trainer);
  EXPECT_TRUE(std::filesystem::exists(first));
  EXPECT_EQ(checkpoints.latest(), third);
}

TEST(CheckpointFolders, opening_a_folder_removes_no_checkpoint) {
  ScratchPath folder("folder_opened");
  auto trainer = compile<Mlp>(specFor("reference"));
  CheckpointFolder many(folder, 5);
  for (size_t step = 0; step < 3; ++step) {
    train(trainer, step, step + 1);
    many.save(trainer);
  }
  EXPECT_EQ(CheckpointFolder(folder, 1).list().size(), 3u);
}

TEST(CheckpointFolders, files_of_the_user_stay) {
  ScratchPath folder("folder_mine");
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "notes.tmp-keep.txt") << "mine";
  std::ofstream(folder / "step-000000000001.safetensors.tmp-1-0") << "par";
  const CheckpointFolder checkpoints(folder);
  EXPECT_TRUE(std::filesystem::exists(folder / "notes.tmp-keep.txt"));
  EXPECT_FALSE(std::filesystem::exists(folder / "step-000000000001.safetensors.tmp-1-0"));
}

TEST(CheckpointFolders, damaged_files_and_strangers_are_passed_over) {
  ScratchPath folder("folder_damaged");
  auto trainer = compile<Mlp>(specFor("reference"));
  CheckpointFolder checkpoints(folder);
  const std::filesystem::path good = checkpoints.save(trainer);
  std::ofstream(folder / "step-000000000009.safetensors") << "no checkpoint";
  std::ofstream(folder / "notes.txt") << "mine";
  EXPECT_EQ(checkpoints.latest(), good);
}

TEST(CheckpointFolders, checkpoint_that_was_written_stays_even_below_older_ones) {
  ScratchPath folder("folder_older");
  auto trainer = compile<Mlp>(specFor("reference"));
  CheckpointFolder checkpoints(folder, 1);
  const io::TensorFile start = trainer.checkpoint();
  train(trainer, 0, 3);
  checkpoints.save(trainer);
  trainer.restore(start);
  const std::filesystem::path lower = checkpoints.save(trainer);
  EXPECT_TRUE(std::filesystem::exists(lower));
}

// The optimizer ran for some parameters and not for others, nobody knows which.
TEST(UncertainStates, are_not_saved_until_a_checkpoint_is_loaded) {
  struct Scale : Module {
    Parameter scale{*this, "scale", {4}};
  };
  const Kernel pick{{.name = "pick",
                     .source = R"(@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read> at: array<f32>;
@group(0) @binding(2) var<storage, read_write> y: array<f32>;
@compute @workgroup_size(4) fn main(@builtin(global_invocation_id) id: vec3u) { y[id.x] = x[u32(at[id.x])]; })",
                     .gradient = [](const BackwardCall& call) { return std::vector{call.cotangents[0], call.cotangents[0]}; }}};
  auto trainer = compile<Scale>({.inputs = {{"at", f32(4)}},
                                 .loss = [&](const Scale& model, const Inputs& in) { return sum(pick({model.scale, in["at"]})[0]); },
                                 .optimizer = sgd(),
                                 .device = "reference"});
  const Batch good{{"at", std::vector<float>{3, 2, 1, 0}}}, bad{{"at", std::vector<float>{3, 2, 1, 9}}};
  ASSERT_TRUE(trainer.step(good).completed());
  ScratchPath path("uncertain.safetensors");
  trainer.save(path);
  const std::vector<std::byte> saved = *io::readFile(path);
  ASSERT_FALSE(trainer.step(bad).completed());
  EXPECT_EQ(caught([&] { trainer.save(path); }).code(), "checkpoint.uncertain");
  EXPECT_EQ(*io::readFile(path), saved);
  trainer.load(path);
  EXPECT_EQ(trainer.step_count(), 1u);
  EXPECT_EQ(io::formatSafetensors(trainer.checkpoint()), io::formatSafetensors(*io::readSealed(path)));
  EXPECT_TRUE(trainer.step(good).completed());
  trainer.save(path);
  // What is wrong with a batch is noticed before anything runs.
  EXPECT_THROW(trainer.step({{"at", std::vector<float>(3)}}), Error);
  trainer.save(path);
}

}  // namespace
}  // namespace lockstep
