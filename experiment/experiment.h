// SPDX-License-Identifier: Apache-2.0
// An experiment is a trainer with its data and with what is looked at while it trains; a recipe says how to make one. From these
// `lockstep train NAME` and ls::train() have reports, checkpoints, resumption, pictures and a page to show.
#pragma once

// Alone and first, so that its error is the first.
#include "ir/support/compiler.h"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "frontend/io/png.h"
#include "frontend/train/trainer.h"

namespace lockstep {

/// What the user chose, for the making of an experiment.
struct ExperimentOptions {
  int64_t steps = 0;            ///< how many there will be (schedules may depend on it)
  uint64_t seed = 42;           ///< of parameters and data
  std::string data = {};        ///< file or folder with real data, if Recipe::data allows it; empty: what ships with the recipe
  std::string from = {};        ///< folder with a model to begin with, if Recipe::model allows it; empty: random parameters
  std::string device = "auto";  ///< as in CompileSpec
  std::string dump_ir = {};
  int64_t dump_steps = 1;
  std::vector<std::string> disable = {};
  uint64_t memory_limit = 0;  ///< bytes of temporaries; 0: none
  Precision precision = {};   ///< as in CompileSpec

  /// The spec with these choices.
  template <class Model>
  [[nodiscard]] CompileSpec<Model> with(CompileSpec<Model> spec) const {
    spec.seed = seed;
    spec.device = device;
    spec.dump_ir = dump_ir;
    spec.dump_steps = dump_steps;
    spec.disable = disable;
    spec.memory_limit = memory_limit;
    spec.precision = precision;
    return spec;
  }
};

/// {{"heldout_exact", 0.97}}, in the order in which they are shown.
using Metrics = std::vector<std::pair<std::string, double>>;

/// What the model makes of something: lines of text, or a picture.
struct Exhibit {
  std::string name;  ///< "digits"; part of a file's name
  std::variant<std::string, io::Image> content;
};

/// Everything may throw Error. Calls come from one thread.
class Experiment {
 public:
  virtual ~Experiment() = default;
  [[nodiscard]] virtual Trainer& trainer() = 0;
  /// Data of step `step`, counted from 1; valid until the next call. It must depend on the seed, the step and (in a submission of one step)
  /// the parameters only: then a resumed run sees the same data.
  [[nodiscard]] virtual Batch batch(uint64_t step) = 0;
  /// Quality now, on data that was not trained on; may take a while.
  [[nodiscard]] virtual Metrics measure() { return {}; }
  [[nodiscard]] virtual std::vector<Exhibit> exhibits() { return {}; }
  /// Writes the model, as Recipe::model says, into a folder that is there and empty.
  [[nodiscard]] virtual Status saveModel(const std::filesystem::path& /*folder*/) { return Success{}; }
};

/// What a recipe promises: a metric, or "loss" (the mean over the last 20 steps), at a step or before it; looked at with each report.
struct Goal {
  std::string metric = {};  ///< empty: there is no goal
  enum class Kind : uint8_t { AtMost, AtLeast } kind = Kind::AtMost;
  double value = 0;
  int64_t by_step = 0;
};

struct Recipe {
  std::string name;
  std::string alias = {};  ///< another name; may be empty
  std::string summary;     ///< "a small network fits sin(x)"
  int64_t steps = 1000;
  uint64_t seed = 42;
  int64_t report_every = 100;  ///< steps between lines
  int64_t measure_every = 0;   ///< steps between measurements and exhibits, a multiple of report_every; 0: only at the end
  int64_t chunk = 10;          ///< steps in one submission, at most report_every
  Goal goal = {};
  std::string data = {};  ///< what --data names: "a folder with MNIST's four files"; empty: the recipe takes none
  /// What Experiment::saveModel() makes at the end, and --from names: "a folder with a language model of Hugging Face"; empty: nothing.
  std::string model = {};
  std::unique_ptr<Experiment> (*make)(const ExperimentOptions& options) = nullptr;
};

/// For Recipe::make, when E has a constructor from the options.
template <class E>
std::unique_ptr<Experiment> make_experiment(const ExperimentOptions& options) {
  return std::make_unique<E>(options);
}

}  // namespace lockstep
