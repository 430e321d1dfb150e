// SPDX-License-Identifier: Apache-2.0
#include "frontend/train/checkpoint_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <ranges>

#include "frontend/io/file.h"
#include "frontend/io/sealed.h"
#include "frontend/trace/at_call.h"

namespace lockstep {

namespace {

constexpr std::string_view kPrefix = "step-", kEnding = ".safetensors";
constexpr size_t kDigits = 12;  // so that names sort as steps do

bool isCheckpoint(const std::filesystem::path& path) {
  const std::string name = path.filename().string();
  return name.starts_with(kPrefix) && name.ends_with(kEnding) && name.size() == kPrefix.size() + kDigits + kEnding.size();
}

}  // namespace

CheckpointFolder::CheckpointFolder(std::filesystem::path folder, size_t keep_last, Where where)
    : folder_(std::move(folder)), keep_last_(std::max<size_t>(keep_last, 1)) {
  detail::atCall(where, [&] {
    (void)io::makeDirectories(folder_).orThrow();
    (void)io::removeAbandonedWrites(folder_).orThrow();
  });
}

std::vector<std::filesystem::path> CheckpointFolder::list() const {
  std::vector<std::filesystem::path> found;
  for (std::filesystem::path& path : io::entriesOf(folder_)) {
    std::error_code unknown;
    if (isCheckpoint(path) && std::filesystem::is_regular_file(path, unknown)) found.push_back(std::move(path));
  }
  return found;
}

std::filesystem::path CheckpointFolder::save(const Trainer& trainer, const DataCursor& cursor, Where where) {
  const io::TensorFile file = trainer.checkpoint(cursor);
  prune({});  // a writer that was killed before it removed what is too many must not leave one more each time
  const std::filesystem::path path = folder_ / fmt::format("{}{:0>{}}{}", kPrefix, file.metadata.at("lockstep.step"), kDigits, kEnding);
  detail::atCall(where, [&] { (void)io::writeSealed(path, file).orThrow(); });
  // It was just synced; reading it once more would cost as much as writing it.
  std::error_code error;
  intact_[path] = {std::filesystem::last_write_time(path, error), std::filesystem::file_size(path, error)};
  prune(path);
  return path;
}

bool CheckpointFolder::isIntact(const std::filesystem::path& path) {
  std::error_code error;
  const Stamp now{std::filesystem::last_write_time(path, error), std::filesystem::file_size(path, error)};
  if (const auto known = intact_.find(path); known != intact_.end() && known->second == now) return true;
  intact_.erase(path);
  if (!io::readSealed(path).ok()) return false;
  intact_[path] = now;
  return true;
}

void CheckpointFolder::prune(const std::filesystem::path& newest) {
  std::vector<std::filesystem::path> others = list();
  std::erase(others, newest);
  size_t kept = newest.empty() ? 0 : 1;
  // Once enough newer ones are known to be intact, nothing depends on what is in an older one.
  for (const std::filesystem::path& path : others | std::views::reverse) {
    if (kept < keep_last_) {
      if (isIntact(path)) ++kept;
      continue;
    }
    if (path > newest && !isIntact(path)) continue;
    std::error_code ignored;  // one that cannot be removed is no reason to stop training
    std::filesystem::remove(path, ignored);
    intact_.erase(path);
  }
}

std::optional<std::filesystem::path> CheckpointFolder::latest() const {
  std::vector<std::filesystem::path> all = list();
  auto readable = std::find_if(all.rbegin(), all.rend(), [](const auto& path) { return io::readSealed(path).ok(); });
  return readable == all.rend() ? std::nullopt : std::optional(*readable);
}

std::optional<DataCursor> CheckpointFolder::resume(Trainer& trainer, Where where) const {
  const std::optional<std::filesystem::path> path = latest();
  if (path) return trainer.load(*path, where);
  const std::vector<std::filesystem::path> damaged = list();
  if (damaged.empty()) return std::nullopt;
  Diagnostic diagnostic{.code = "checkpoint.damaged",
                        .message = fmt::format("every checkpoint in '{}' is damaged", folder_.string()),
                        .where = {},
                        .notes = {},
                        .remedy = "move them elsewhere to begin afresh"};
  for (const std::filesystem::path& file : damaged) {
    const auto read = io::readSealed(file);
    if (!read) diagnostic.notes.push_back({fmt::format("{}: {}", file.filename().string(), read.diagnostics().front().message), {}});
  }
  detail::atCall(where, [&] { throw Error(std::move(diagnostic)); });
  return std::nullopt;
}

}  // namespace lockstep
