// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <charconv>

#include "ir/support/nearest.h"
#include "passes/kernel/kernel_pipeline.h"
#include "passes/pipeline.h"
#include "tools/options.h"
#include "tools/progress.h"
#include "tools/train_loop.h"
#include "tools/verb.h"

namespace lockstep::tools {
namespace {

// A signal handler can reach nothing else.
std::atomic<bool> interrupted{false};

/// The first Ctrl-C ends the run in order, the second one at once.
void onInterrupt(int) {
  interrupted.store(true);
  ::signal(SIGINT, SIG_DFL);
}

/// A name that is no pass at all is a typing mistake; whether a pass can be left out is the pipeline's to say.
Status checkPasses(const std::vector<std::string>& names) {
  std::vector<std::string_view> known;
  for (const passes::PassInfo& pass : passes::listPasses()) known.push_back(pass.name);
  for (const passes::KernelPassInfo& pass : passes::listKernelPasses()) known.push_back(pass.name);
  for (const std::string& name : names) {
    if (std::ranges::find(known, std::string_view(name)) == known.end()) {
      return usage("pass", fmt::format("there is no pass '{}'", name), suggest(name, known));
    }
  }
  return Success{};
}

Result<uint64_t> seedOf(const std::string& text, const Sample& sample) {
  if (text.empty()) return sample.default_seed;
  uint64_t seed = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seed);
  if (error != std::errc() || end != text.data() + text.size()) {
    return usage("seed", fmt::format("--seed '{}' is not a whole number of at least 0", text));
  }
  return seed;
}

}  // namespace

Result<ExitCode> trainVerb(Arguments arguments) {
  std::string name;
  SampleOptions sample_options;
  TrainSettings settings;
  int64_t steps = 0;
  std::string seed;  // as text, because the default is the sample's
  std::vector<std::string_view> names;
  std::string summary = "Trains a sample:";
  for (const Sample& sample : allSamples()) {
    names.push_back(sample.name);
    summary += fmt::format("\n  {:<12}{} ({} steps)", sample.name, sample.summary, sample.default_steps);
  }
  Options options("train", summary);
  options.argument(name, "NAME", "which sample", false);
  options.value(steps, "--steps", "training steps; 0: as many as the sample needs");
  options.value(seed, "--seed", "of parameters and data; without it the sample's own");
  options.value(sample_options.device, "--device", "auto, reference, vulkan, vulkan:N or vulkan:NAME");
  options.flag(settings.json, "--json", "one JSON object a report line, the last with \"final\": true");
  options.value(sample_options.dump_directory, "--dump-ir", "write the IR after each pass to this directory");
  options.list(sample_options.disabled_passes, "--disable-pass", "leave out an optional pass");
  options.value(sample_options.memory_limit, "--memory-limit", "bytes of temporaries of a step, at the cost of speed; 0: no limit");
  options.value(settings.out_directory, "--out", "write checkpoint.safetensors, losses.jsonl and loss.png to this directory");
  LS_TRY(const bool go, options.parse(arguments));
  if (!go) return ExitCode::Ok;

  if (names.empty()) return fail("train.samples", "this lockstep was built without samples");
  if (name.empty()) name = names.front();
  const auto sample = std::ranges::find(allSamples(), std::string_view(name), &Sample::name);
  if (sample == allSamples().end()) return usage("sample", fmt::format("there is no sample '{}'", name), suggest(name, names));
  if (steps < 0) return usage("steps", fmt::format("--steps {} is negative", steps));
  if (sample_options.memory_limit < 0) return usage("value", fmt::format("--memory-limit {} is negative", sample_options.memory_limit));
  LS_CHECK(checkPasses(sample_options.disabled_passes));
  sample_options.steps = steps == 0 ? sample->default_steps : steps;
  LS_TRY(sample_options.seed, seedOf(seed, *sample));
  settings.live = !settings.json && isTerminal(stderr);
  settings.interrupted = &interrupted;
  struct sigaction action{};
  action.sa_handler = onInterrupt;
  ::sigaction(SIGINT, &action, nullptr);
  return runTraining(*sample, sample_options, settings);
}

}  // namespace lockstep::tools
