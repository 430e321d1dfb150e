// SPDX-License-Identifier: Apache-2.0
#include "tests/faults/training_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <regex>

#include "frontend/io/file.h"
#include "frontend/io/sealed.h"

namespace lockstep::testing {
namespace {

namespace fs = std::filesystem;

constexpr const char *kLosses = "losses.jsonl", *kMetrics = "metrics.jsonl", *kCheckpoints = "checkpoints",
                     *kLast = "checkpoint.safetensors";

bool isJson(std::string_view text) { return nlohmann::json::parse(text, nullptr, false).is_object(); }

uint64_t stepOf(const io::TensorFile& checkpoint) { return std::stoull(checkpoint.metadata.at("lockstep.step")); }

/// Its form; the contents of checkpoints and lines are looked at elsewhere.
std::string problemOf(const fs::path& path, const std::string& name) {
  static const std::regex known(
      R"(lock|config\.json|losses\.jsonl|metrics\.jsonl|loss\.png|report\.html|checkpoint\.safetensors|checkpoints/step-\d{12}\.safetensors|exhibits/\d{6}-\w+\.(png|txt))");
  if (!std::regex_match(name, known)) return fmt::format("'{}' is left behind", name);
  const std::string text = *io::readTextFile(path);
  if (name == "config.json" && !isJson(text)) return "config.json is damaged";
  if (name.ends_with(".html") && !text.ends_with("</html>\n")) return fmt::format("'{}' is cut off", name);
  if (name.ends_with(".png") && text.find("IEND") == std::string::npos) return fmt::format("'{}' is cut off", name);
  if (name.ends_with(".safetensors")) {
    if (const auto read = io::readSealed(path); !read.ok()) return fmt::format("'{}': {}", name, read.diagnostics().front().message);
  }
  return {};
}

std::string checkLines(const fs::path& folder, const WholeRun& whole, const Expected& expected) {
  const std::vector<std::string> losses = completeLines(folder / kLosses);
  if (losses.size() < expected.reached) return fmt::format("{} losses were there, {} are left", expected.reached, losses.size());
  if (losses.size() > whole.losses.size() || !std::equal(losses.begin(), losses.end(), whole.losses.begin())) return "other losses";
  for (const std::string& line : completeLines(folder / kMetrics)) {
    if (!isJson(line)) return "metrics.jsonl is damaged";
  }
  for (const char* name : {kLosses, kMetrics}) {
    std::error_code absent;
    if (expected.may_end_within || fs::file_size(folder / name, absent) == 0 || absent) continue;
    if (!io::readTextFile(folder / name)->ends_with('\n')) return fmt::format("{} ends within a line", name);
  }
  return {};
}

}  // namespace

uint64_t savedStep(const fs::path& folder) {
  uint64_t newest = 0;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(folder / kCheckpoints, none)) {
    if (entry.path().extension() == ".safetensors") newest = std::max(newest, stepOf(*io::readSealed(entry.path())));
  }
  if (fs::exists(folder / kLast)) newest = std::max(newest, stepOf(*io::readSealed(folder / kLast)));
  return newest;
}

std::vector<std::string> completeLines(const fs::path& path) {
  std::vector<std::string> lines;
  const auto text = io::readTextFile(path);
  if (!text.ok()) return lines;
  for (size_t start = 0, end = 0; (end = text->find('\n', start)) != std::string::npos; start = end + 1) {
    lines.push_back(text->substr(start, end - start));
  }
  return lines;
}

WholeRun readWholeRun(const fs::path& folder) {
  return {.losses = completeLines(folder / kLosses), .checkpoint = io::readSealed(folder / kLast).orThrow()};
}

std::string damageOf(const fs::path& folder, const WholeRun& whole, const Expected& expected) {
  if (!fs::exists(folder)) return expected.reached == 0 ? "" : "the folder is gone";
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_directory()) continue;
    static const std::regex part(R"(.*\.tmp-\d+-\d+)");
    if (expected.may_leave_parts && std::regex_match(entry.path().filename().string(), part)) continue;
    if (std::string problem = problemOf(entry.path(), fs::relative(entry.path(), folder).generic_string()); !problem.empty())
      return problem;
  }
  if (expected.reached != 0 && !fs::exists(folder / "config.json")) return "config.json is gone";
  if (const uint64_t newest = savedStep(folder); newest < expected.reached) {
    return fmt::format("step {} was saved, the newest checkpoint is of step {}", expected.reached, newest);
  }
  return checkLines(folder, whole, expected);
}

std::string differenceOf(const fs::path& folder, const WholeRun& whole) {
  const WholeRun run = readWholeRun(folder);
  if (run.losses != whole.losses) return "other losses than without the fault";
  if (run.checkpoint.tensors != whole.checkpoint.tensors) return "other parameters than without the fault";
  return {};
}

}  // namespace lockstep::testing
