// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/seeds.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "experiment/run_folder.h"
#include "frontend/io/file.h"
#include "frontend/io/mbjs.h"
#include "frontend/io/npy.h"
#include "frontend/io/npz.h"
#include "frontend/io/safetensors.h"
#include "frontend/io/sealed.h"
#include "tests/fuzz/small_model.h"
#include "tests/tools/profile/sample_profile.h"
#ifdef LOCKSTEP_VULKAN
#include "backends/vulkan/pipeline_cache.h"
#endif

namespace lockstep::fuzz {
namespace {

namespace fs = std::filesystem;
using Bytes = std::vector<std::byte>;

class Seeds {
 public:
  explicit Seeds(fs::path folder) : folder_(std::move(folder)) {}

  /// The path of a seed of an entry.
  [[nodiscard]] fs::path path(const std::string& entry, const std::string& name) const {
    fs::create_directories(folder_ / entry);
    return folder_ / entry / (name + "." + entry);
  }
  void add(const std::string& entry, const std::string& name, std::span<const std::byte> bytes) const {
    (void)io::writeFileAtomically(path(entry, name), bytes).orThrow();
  }
  void add(const std::string& entry, const std::string& name, std::string_view text) const {
    add(entry, name, std::as_bytes(std::span(text)));
  }
  [[nodiscard]] fs::path scratch(const std::string& name) const { return folder_ / ("scratch-" + name); }

 private:
  fs::path folder_;
};

void must(Status status) { (void)std::move(status).orThrow(); }

const std::array<float, 6> kNumbers{1, 2, 3, 4, 5, -0.5f};

void addArrays(const Seeds& seeds) {
  const std::array<int32_t, 2> whole{1, -2};
  const io::Arrays arrays{{"a", io::Array::fromFloats({2, 3}, kNumbers)},           {"b", io::Array::fromInts({2}, whole)},
                          {"c", io::Array::zeros(io::ElementType::I64, {1, 0, 2})}, {"d", io::Array::zeros(io::ElementType::Bool, {})},
                          {"e", io::Array::zeros(io::ElementType::F16, {3})},       {"f", io::Array::zeros(io::ElementType::U8, {1, 5})}};
  for (const auto& [name, array] : arrays) seeds.add("npy", name, io::formatNpy(array));
  seeds.add("npz", "stored", io::formatNpz(arrays).orThrow());
  seeds.add("npz", "deflated", io::formatNpz(arrays, io::NpzCompression::Deflated).orThrow());
}

/// Of width 2: a mamba1 of inner 2, two states and rank 1, and attention with a feed-forward part.
void addMbjs(const Seeds& seeds) {
  const auto tensor = [](std::vector<int64_t> shape) { return io::Array::zeros(io::ElementType::F32, std::move(shape)); };
  io::MbjsFile file{.version = 1,
                    .layers = {io::MbjsLayer::Mamba1},
                    .tensors = {{"embedding", tensor({3, 2})},
                                {"layers.0.wInProj", tensor({4, 2})},
                                {"layers.0.bInProj", tensor({4})},
                                {"layers.0.wConv", tensor({2, 2})},
                                {"layers.0.bConv", tensor({2})},
                                {"layers.0.wXProj", tensor({5, 2})},
                                {"layers.0.bXProj", tensor({5})},
                                {"layers.0.wDtProj", tensor({2, 1})},
                                {"layers.0.bDtProj", tensor({2})},
                                {"layers.0.A_log", tensor({2, 2})},
                                {"layers.0.D_vec", tensor({2})},
                                {"layers.0.wOutProj", tensor({2, 2})},
                                {"layers.0.bOutProj", tensor({2})},
                                {"layers.0.normWeight", tensor({2})},
                                {"final_norm", tensor({2})}}};
  seeds.add("mbjs", "one", io::formatMbjs(file).orThrow());
  file.layers.push_back(io::MbjsLayer::Attention);
  file.tensors.insert({{"layers.1.wQKV", tensor({6, 2})},
                       {"layers.1.bQKV", tensor({6})},
                       {"layers.1.wO", tensor({2, 2})},
                       {"layers.1.bO", tensor({2})},
                       {"layers.1.normWeight", tensor({2})},
                       {"layers.1.wFfn1", tensor({8, 2})},
                       {"layers.1.bFfn1", tensor({8})},
                       {"layers.1.wFfn2", tensor({2, 8})},
                       {"layers.1.bFfn2", tensor({2})}});
  for (const uint32_t version : {2u, 3u}) {
    file.version = version;
    seeds.add("mbjs", version == 2 ? "two" : "three", io::formatMbjs(file).orThrow());
  }
}

void addPictures(const Seeds& seeds) {
  const std::array<uint8_t, 20> picture{0, 0, 8, 3, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 2, 1, 2, 3, 4};
  seeds.add("idx", "plain", std::as_bytes(std::span(picture)));
  const gzFile file = gzopen(seeds.path("idx", "packed").c_str(), "wb");
  gzwrite(file, picture.data(), picture.size());
  gzclose(file);
}

void addGolden(const Seeds& seeds) {
  const io::Array a = io::Array::fromFloats({2, 3}, kNumbers), one = io::Array::fromFloats({1}, std::span(kNumbers).first(1));
  seeds.add(
      "golden", "ops",
      io::formatSafetensors(
          {.tensors =
               {{"add.same/in/a", a}, {"add.same/in/b", a}, {"add.same/out/y", a}, {"add.same/cotangent/y", a}, {"add.same/grad/a", a}},
           .metadata = {{"add.same", R"({"op": "add", "attrs": {"axis": 1, "x": 0.5, "l": [1, 2]}})"}}}));
  seeds.add(
      "golden", "training",
      io::formatSafetensors(
          {.tensors = {{"init/w", a}, {"batch0001/x", a}, {"grad1/w", a}, {"final/w", a}, {"losses", one}},
           .metadata = {{"input", R"json({"optimizer": {"kind": "sgd", "lr_of_step_1_based": "0.1 * min(step / 10, 1)", "momentum": 0.9,
                                          "nesterov": true, "weight_decay": 0.0005}})json"}}}));
}

void addTexts(const Seeds& seeds) {
  seeds.add("rate", "decay", "0.005 + (0.0005 - 0.005) * min(step / 1500, 1)");
  seeds.add("rate", "signs", "-max(1e-3, -step*2)/(3--4)");
  seeds.add(
      "language", "llama",
      R"({"model_type": "llama", "vocab_size": 24, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "eos_token_id": [1, 2],
                "rope_scaling": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                                 "original_max_position_embeddings": 16}})");
  seeds.add("language", "gemma",
            R"({"model_type": "gemma2", "hidden_size": 16, "num_hidden_layers": 2, "head_dim": 8, "sliding_window": 4,
                "layer_types": ["full_attention", "sliding_attention"], "final_logit_softcapping": 30.0, "dtype": "bfloat16"})");
  seeds.add(
      "language", "mamba",
      R"({"model_type": "mamba2", "hidden_size": 16, "num_heads": 4, "head_dim": 8, "n_groups": 1, "time_step_limit": [0.0, Infinity]})");
  seeds.add("profile", "toy", tools::profileJson(tools::sampleProfile()));
  seeds.add(
      "cases", "scalars",
      R"({"params": ["u32", "f32"], "ret": "f16", "cases": [[[1, "f7fc00000"], {"v": "h3c00"}], [[5, "f40200000"], {"i": [-1, "Infinity"]}]]})");
  seeds.add("cases", "nested",
            R"({"params": ["mat2x4<abstract-float>", "array<vec3<bool>, 2>"], "ret": "vec2<i32>", "cases": [)"
            R"([[[["d3ff0000000000000", "d0000000000000001", "dfff0000000000000", "d8000000000000000"],)"
            R"( ["d0000000000000000", "d0000000000000000", "d0000000000000000", "d7ff8000000000000"]], [[0, 1, 0], [1, 0, true]]],)"
            R"( {"any": [{"a": [{"v": 1}, {"skip": 1}]}, {"v": [-2147483648, 7]}]}]]})");
  constexpr std::string_view kKernel =
      R"("wgsl": "@group(0) @binding(0) var<storage, read_write> o: array<u32>; @compute @workgroup_size(1) fn main() { o[0] = 7; }"})";
  seeds.add("line", "verdict", R"(0{"q": "webgpu:shader,a:b", "ok": true, "code": "@compute @workgroup_size(1) fn main() {}"})");
  seeds.add(
      "line", "expression",
      R"(1{"q": "webgpu:shader,execution,next", "src": "storage_r", "vec": 1, "h": "next", "batch": 2, "inStride": 4, "inOff": [0],)"
      R"( "outStride": 4, "mods": [{"first": 0, "n": 2, "wgsl": "@group(0) @binding(0) var<storage, read_write> o: array<u32, 2>;)"
      R"( @group(0) @binding(1) var<storage> i: array<u32, 2>; @compute @workgroup_size(1) fn main() { o[0] = i[0] + 1; o[1] = i[1] + 1; }"}]})");
  seeds.add("line", "program",
            R"(2{"q": "a", "fam": "b", "wgs": [1, 1, 1], "constants": {"k": 2}, "bufs": [{"size": 16, "in": "0", "out": "="}],)"
            R"( "binds": [{"group": 0, "binding": 0, "buf": 0, "offset": 0, "size": 16}], )" +
                std::string(kKernel));
  seeds.add("line", "consensus",
            R"(3{"f": "a/b", "en": "main", "size": 16, "binds": [[0, 0]], "out": {"Z": {}, "I": {"0,0": "0"}}, )" + std::string(kKernel));
}

/// The files of a folder in one text (files.h), those that are wanted.
template <class Wanted>
std::string sections(const fs::path& folder, const Wanted& wanted) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.is_regular_file() && wanted(entry.path())) files.push_back(entry.path());
  }
  std::ranges::sort(files);
  std::string text;
  for (const fs::path& file : files) {
    text += "==== " + file.filename().string() + "\n" + io::readTextFile(file).orThrow();
    if (!text.ends_with('\n')) text += '\n';
  }
  return text;
}

void addRun(const Seeds& seeds) {
  const experiment::RunFolder folder(seeds.scratch("run"));
  must(folder.begin({.recipe = "sine", .seed = 7, .steps = 100, .data = "", .device = "auto"}, experiment::RunRecord{}));
  must(folder.addLosses(0, std::span(kNumbers).first(3)));
  must(folder.addReport({.step = 2, .metrics = {{"accuracy", 0.5}}, .lr = 0.1, .grad_norm = 1.5, .seconds = 0.25}));
  must(folder.addReport({.step = 3, .lr = 0.1, .seconds = 0.5}));
  seeds.add("run", "three_steps", sections(folder.path(), [](const fs::path&) { return true; }));
}

void addModel(const Seeds& seeds) {
  const fs::path dump = seeds.scratch("dump"), file = seeds.scratch("checkpoint");
  Trainer trainer = compileSmallModel(dump.string());
  trainer.save(file, {{"epoch", int64_t{3}}, {"file", "b.txt"}});
  // Without its checksum, which would refuse every change.
  seeds.add("checkpoint", "small", io::formatSafetensors(io::readSealed(file).orThrow()));
  // The first and the last stage with the kernels of the last one.
  const auto isShown = [](const fs::path& path) {
    const std::string name = path.filename().string();
    return name.starts_with("00-") || name.find("-kernels.") != std::string::npos || name.ends_with(".wgsl") || name.ends_with(".kir") ||
           name == "passes.txt";
  };
  seeds.add("dump", "small", sections(dump, isShown));
  const std::vector<fs::path> files = io::listFolder(dump).orThrow();
  const auto copy = [&](const std::string& entry, const std::string& ending) {
    for (const fs::path& file : files) {
      if (file.filename().string().ends_with(ending)) seeds.add(entry, file.filename().string(), io::readTextFile(file).orThrow());
    }
  };
  // Stages that can go on from there, none twice.
  for (const char* stage : {"-trace.graph", "-simplify.graph", "-fuse.graph"}) copy("compile", stage);
  for (const char* stage : {"-schedule.program", "-planBuffers.program", "-kernels.program"}) copy("execute", stage);
}

void addCache(const Seeds& seeds) {
#ifdef LOCKSTEP_VULKAN
  const std::string data = "what a driver would keep";
  if (!vulkan::writePipelineCache(seeds.path("cache", "small"), std::as_bytes(std::span(data)))) throw std::logic_error("no cache");
#else
  seeds.add("cache", "none", "");
#endif
}

/// The kernels of the sanitizer's tests: "== name" begins one.
void addKernels(const Seeds& seeds) {
  for (const char* file : {"races.txt", "memory.txt", "rounds.txt", "numbers.txt", "rounding.txt", "schedules.txt"}) {
    std::istringstream lines(io::readTextFile(fs::path(LOCKSTEP_SOURCE_DIR) / "tests/sanitize" / file).orThrow());
    std::string name, text;
    const auto end = [&] {
      if (!name.empty()) seeds.add("sanitize", name, text);
    };
    for (std::string line; std::getline(lines, line);) {
      if (!line.starts_with("== ")) {
        text += line + "\n";
        continue;
      }
      end();
      name = line.substr(3, line.find(' ', 3) - 3);
      text.clear();
    }
    end();
  }
}

}  // namespace

void writeSeeds(const fs::path& folder) {
  fs::remove_all(folder);
  const Seeds seeds(folder);
  addArrays(seeds);
  addMbjs(seeds);
  addPictures(seeds);
  addGolden(seeds);
  addTexts(seeds);
  addRun(seeds);
  addModel(seeds);
  addCache(seeds);
  addKernels(seeds);
}

}  // namespace lockstep::fuzz
