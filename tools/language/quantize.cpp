// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <utility>

#include "frontend/io/file.h"
#include "frontend/io/jsonl.h"
#include "frontend/io/regular_file.h"
#include "frontend/llm/stored_weights.h"
#include "tools/language/weight_choices.h"
#include "tools/verb.h"

namespace lockstep::tools {
namespace {

namespace fs = std::filesystem;

/// What a tokenizer of Hugging Face may have beside the model.
constexpr std::array kTokenizerFiles{
    "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json", "vocab.json", "vocab.txt",
    "merges.txt",     "tokenizer.model",       "chat_template.jinja",     "chat_template.json"};

constexpr uint64_t kMostCopiedBytes = uint64_t{1} << 30;

bool isThere(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(fs::symlink_status(path, ignored));
}

/// Files in it are written to a folder beside its place, which it takes as a whole.
class FolderToBe {
 public:
  static Result<FolderToBe> make(const fs::path& place) {
    FolderToBe made(place);
    if (place.has_parent_path()) LS_CHECK(io::makeDirectories(place.parent_path()));
    std::error_code error;
    if (!fs::create_directory(made.path_, error))
      return fail("file.directory",
                  fmt::format("cannot make the folder '{}': {}", made.path_.string(), error ? error.message() : "it is there"), {},
                  "choose a place where you may write");
    made.owned_ = true;
    return made;
  }
  FolderToBe(FolderToBe&& other) noexcept
      : place_(std::move(other.place_)), path_(std::move(other.path_)), owned_(std::exchange(other.owned_, false)) {}
  FolderToBe& operator=(FolderToBe&&) = delete;
  ~FolderToBe() {
    std::error_code ignored;
    if (owned_) fs::remove_all(path_, ignored);
  }
  [[nodiscard]] const fs::path& path() const { return path_; }
  /// What was there goes when the new folder is in its place.
  Status takePlace() {
    const fs::path before = beside(place_, "old");
    std::error_code error;
    const bool replaces = isThere(place_);
    if (replaces) fs::rename(place_, before, error);
    if (!error) {
      fs::rename(path_, place_, error);
      std::error_code ignored;
      if (error && replaces) fs::rename(before, place_, ignored);
    }
    if (error)
      return fail("file.directory", fmt::format("cannot make the folder '{}': {}", place_.string(), error.message()), {},
                  "choose a place where you may write");
    owned_ = false;
    if (replaces) fs::remove_all(before, error);
    return Success{};
  }

 private:
  explicit FolderToBe(const fs::path& place) : place_(place), path_(beside(place, "new")) {}
  static fs::path beside(const fs::path& place, const char* what) {
    return place.parent_path() / fmt::format(".{}.{}-{}", place.filename().string(), what, ::getpid());
  }
  fs::path place_, path_;
  bool owned_ = false;
};

struct QuantizeChoices {
  std::string folder, out, weights = "int4";
  bool replace = false, json = false;
};

/// Only what this verb wrote is replaced: another folder may be all that its owner has.
Status checkPlace(const fs::path& out, bool replace) {
  if (!isThere(out)) return Success{};
  const Result<llm::LanguageConfig> there = llm::LanguageConfig::load(out);
  const bool is_ours = there.ok() && !there->weights.isF32();
  if (is_ours && replace) return Success{};
  return fail("quantize.exists", fmt::format("'{}' exists already", out.string()), {},
              is_ours ? "choose another folder, or add --replace" : "choose another folder; nothing was changed");
}

Status copyTokenizer(const fs::path& from, const fs::path& to) {
  for (const char* name : kTokenizerFiles) {
    if (!isThere(from / name)) continue;
    LS_TRY(const std::string bytes, io::readRegularTextFile(from / name, kMostCopiedBytes));
    LS_CHECK(io::writeFileAtomically(to / name, std::string_view(bytes)));
  }
  return Success{};
}

}  // namespace

Result<ExitCode> quantizeVerb(Arguments arguments) {
  QuantizeChoices choices;
  Options options("lockstep quantize",
                  "Writes a folder with a language model whose matrices have fewer bits, and with its tokenizer. 'generate', 'chat' and "
                  "'eval' take it like any other, and give what they give with the model itself and the same --weights.");
  options.argument(choices.folder, "DIR", "a folder with config.json and weights as safetensors");
  options.value(choices.out, "--out", "the folder to make");
  options.value(choices.weights, "--weights", "f16, bf16, int8, int4 or int4:128");
  options.choices("--weights", {"f16", "bf16", "int8", "int4", "int4:128"});
  options.flag(choices.replace, "--replace", "in place of a folder that this verb made before");
  options.flag(choices.json, "--json", "one JSON object for scripts");
  LS_TRY(const bool go, options.parse(arguments));
  if (!go) return ExitCode::Ok;
  if (choices.out.empty()) return usage("value", "--out is required", "see 'lockstep quantize --help'");
  LS_TRY(const nn::WeightFormat format, console::asUsage(nn::WeightFormat::parse(choices.weights)));
  if (format.isF32()) return usage("value", "--weights f32 leaves a model as it is", "give another format");

  fs::path out = fs::path(choices.out).lexically_normal();
  if (!out.has_filename()) out = out.parent_path();
  LS_CHECK(checkPlace(out, choices.replace));
  LS_TRY(const llm::LanguageConfig read, llm::LanguageConfig::load(choices.folder));
  if (!read.weights.isF32()) {
    return fail("language_model.weights", fmt::format("{} has its weights as {} already", choices.folder, toString(read.weights)), {},
                "give the folder that it was made from");
  }
  LS_TRY(const llm::LanguageConfig config, llm::withFormat(read, format));
  fmt::print(stderr, "reading {}\n", choices.folder);
  LS_TRY(const io::TensorFile stored, llm::loadStoredWeights(config, choices.folder));
  LS_TRY(FolderToBe made, FolderToBe::make(out));
  LS_CHECK(llm::saveStoredWeights(made.path(), config, stored));
  LS_CHECK(copyTokenizer(choices.folder, made.path()));
  LS_CHECK(made.takePlace());

  const auto parameters = static_cast<uint64_t>(llm::parameterCount(config));
  const uint64_t bytes = llm::byteCount(stored);
  if (choices.json) {
    fmt::print("{}\n", io::Json::object()
                           .add("folder", out.string())
                           .add("weights", toString(format))
                           .add("parameters", parameters)
                           .add("bytes", bytes)
                           .text());
  } else {
    fmt::print("{}: {:.3g} million parameters in {:.3g} MB, {:.2f} bytes each, as {}\n", out.string(),
               static_cast<double>(parameters) / 1e6, static_cast<double>(bytes) / 1e6,
               static_cast<double>(bytes) / static_cast<double>(parameters), toString(format));
  }
  return ExitCode::Ok;
}

}  // namespace lockstep::tools
