// SPDX-License-Identifier: Apache-2.0
// Kills a process that trains and saves in a loop, at random moments, and checks after each kill that the run can go on: every checkpoint
// that is there loads, none is lost, and nothing is left behind. usage: checkpoint_kills [KILLS] [SEED]   (200 kills)
#include <fmt/format.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <thread>

#include "frontend/io/safetensors.h"
#include "frontend/lockstep.h"
#include "frontend/train/checkpoint_folder.h"

namespace {

namespace fs = std::filesystem;
constexpr int64_t kWidth = 192;  // 37 000 parameters, so that a file takes long enough to write

struct Model : ls::Module {
  ls::nn::Linear l{*this, "l", kWidth, kWidth};
};

ls::ModelTrainer<Model> makeTrainer() {
  return ls::compile<Model>({.inputs = {{"x", ls::f32(1, kWidth)}},
                             .loss = [](const Model& model, const ls::Inputs& in) { return ls::mean(ls::square(model.l(in["x"]))); },
                             .optimizer = ls::adam(),
                             .seed = 1,
                             .device = "reference"});
}

/// Trains and saves until it is killed; one byte to stdout says that it has begun to.
[[noreturn]] void writeForever(const fs::path& folder) {
  auto trainer = makeTrainer();
  ls::CheckpointFolder checkpoints(folder);
  (void)checkpoints.resume(trainer);
  (void)!::write(STDOUT_FILENO, "r", 1);
  std::vector<float> x(kWidth, 1.0f);
  while (true) {
    trainer.step({{"x", x}});
    checkpoints.save(trainer);
  }
}

/// A child process that runs this program with --write.
class Writer {
 public:
  explicit Writer(const fs::path& folder) {
    int ends[2];
    if (::pipe(ends) != 0) throw std::runtime_error("pipe failed");
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    posix_spawn_file_actions_addclose(&actions, ends[0]);
    std::string program = "/proc/self/exe", flag = "--write", path = folder.string();
    char* arguments[] = {program.data(), flag.data(), path.data(), nullptr};
    if (::posix_spawn(&pid_, program.c_str(), &actions, nullptr, arguments, environ) != 0) throw std::runtime_error("spawn failed");
    posix_spawn_file_actions_destroy(&actions);
    ::close(ends[1]);
    out_ = ends[0];
  }
  ~Writer() { ::close(out_); }
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  void waitUntilItSaves() {
    char byte = 0;
    (void)!::read(out_, &byte, 1);
  }
  void kill() {
    ::kill(pid_, SIGKILL);
    int status = 0;
    ::waitpid(pid_, &status, 0);
    if (!WIFSIGNALED(status)) throw std::runtime_error(fmt::format("the writer ended by itself with status {}", status));
  }

 private:
  pid_t pid_ = 0;
  int out_ = -1;
};

size_t leftovers(const fs::path& folder) {
  const auto is_left = [](const fs::directory_entry& entry) { return entry.path().string().find(".tmp-") != std::string::npos; };
  return static_cast<size_t>(std::ranges::count_if(fs::directory_iterator(folder), is_left));
}

/// What is wrong after a kill; empty when all is well. Loads the newest checkpoint into `trainer`.
std::string inspect(const fs::path& folder, ls::Trainer& trainer, uint64_t least_step) {
  ls::CheckpointFolder checkpoints(folder);
  if (leftovers(folder) != 0) return "a file of a killed writer is left";
  if (checkpoints.list().size() > 4) return "there are more checkpoints than are kept";
  for (const fs::path& path : checkpoints.list()) {
    if (!ls::io::readSafetensors(path).ok()) return fmt::format("'{}' cannot be read", path.string());
  }
  if (!checkpoints.resume(trainer)) return "there is no checkpoint";
  if (trainer.step_count() < least_step) return fmt::format("step {} is lost, the newest is {}", least_step, trainer.step_count());
  return {};
}

int run(int kills, unsigned seed) {
  const fs::path folder = fs::temp_directory_path() / fmt::format("lockstep_kills_{}", ::getpid());
  fs::remove_all(folder);
  auto trainer = makeTrainer();
  ls::CheckpointFolder(folder).save(trainer);
  std::mt19937 random(seed);
  uint64_t step = 0;
  size_t interrupted = 0;
  for (int i = 0; i < kills; ++i) {
    Writer writer(folder);
    // Mostly while it saves, sometimes while it starts.
    if (i % 8 != 7) writer.waitUntilItSaves();
    std::this_thread::sleep_for(std::chrono::microseconds(std::uniform_int_distribution(0, 30000)(random)));
    writer.kill();
    interrupted += leftovers(folder);
    if (std::string problem = inspect(folder, trainer, step); !problem.empty()) {
      fmt::print(stderr, "after kill {} of {} (seed {}): {}; see {}\n", i + 1, kills, seed, problem, folder.string());
      return 1;
    }
    step = trainer.step_count();
  }
  fs::remove_all(folder);
  fmt::print("{} kills, {} of them inside a write: every checkpoint loads, the last one is of step {}\n", kills, interrupted, step);
  return 0;
}

}  // namespace

int main(int count, char** arguments) try {
  if (count == 3 && std::string_view(arguments[1]) == "--write") writeForever(arguments[2]);
  return run(count > 1 ? std::atoi(arguments[1]) : 200, count > 2 ? static_cast<unsigned>(std::atoi(arguments[2])) : 1);
} catch (const std::exception& error) {
  fmt::print(stderr, "{}\n", error.what());
  return 1;
}
