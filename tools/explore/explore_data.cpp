// SPDX-License-Identifier: Apache-2.0
#include "tools/explore/explore_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <ranges>
#include <set>

#include "frontend/io/file.h"
#include "frontend/io/regular_file.h"
#include "passes/cost.h"
#include "passes/pipeline.h"
#include "passes/plan/command_work.h"
#include "tools/explore/explore_groups.h"

namespace lockstep::tools {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;
using program::Program;

constexpr int kContextLines = 2;  ///< of a source file, around a line that a value comes from

// A dump may be somebody else's, and the page is made to be passed on: it has what lies in the dump's folder, and of the user's files only
// lines of C++ sources.
constexpr uint64_t kMostDumpFile = uint64_t{256} << 20u, kMostSource = uint64_t{4} << 20u;
constexpr std::array<std::string_view, 10> kSourceEndings{".c", ".cc", ".cpp", ".cxx", ".h", ".hh", ".hpp", ".hxx", ".inl", ".ipp"};
constexpr int kMostLine = 1'000'000;

Result<std::string> readDumpFile(const fs::path& path) { return io::readRegularTextFile(path, kMostDumpFile, io::Links::Refuse); }

/// Whether something has this name, a link to nothing included.
bool isThere(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(fs::symlink_status(path, ignored));
}

struct Place {
  std::string file;
  int line = 0;
};

/// A file "06-simplify.graph" of the dump.
struct StageFile {
  std::string name, text;
  fs::path path;
  passes::Form stage;
};

std::vector<std::string> linesOf(const std::string& text) {
  std::vector<std::string> lines;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

Failure badDump(const fs::path& folder, const std::string& what) {
  return fail("explore.dump", fmt::format("'{}' {}", folder.string(), what), {},
              "name a folder that --dump-ir wrote, the folder of a language model with its config.json, or a sample");
}

bool isStage(const fs::path& path) {
  const std::string name = path.filename().string();
  return name.size() > 3 && name[2] == '-' && (path.extension() == ".graph" || path.extension() == ".program");
}

Result<std::vector<StageFile>> readStages(const fs::path& folder) {
  Result<std::vector<fs::path>> entries = io::listFolder(folder);
  if (!entries) return badDump(folder, "cannot be read");
  std::vector<fs::path> paths = std::move(*entries);
  std::erase_if(paths, [](const fs::path& path) { return !isStage(path); });
  if (paths.empty()) return badDump(folder, "has no stages");
  std::vector<StageFile> stages;
  for (const fs::path& path : paths) {
    LS_TRY(std::string text, readDumpFile(path));
    LS_TRY(passes::Form stage, passes::parseForm(text, path.string()));
    stages.push_back({path.stem().string().substr(3), std::move(text), path, std::move(stage)});
  }
  if (!std::holds_alternative<Program>(stages.back().stage)) return badDump(folder, "has no program");
  return stages;
}

/// Of a line `... @ "models/mlp.cpp":24:21`. The library's own headers are none of the user's places.
std::optional<Place> placeOf(const std::string& line) {
  const size_t at = line.rfind(" @ \"");
  if (at == std::string::npos) return std::nullopt;
  const size_t begin = at + 4, end = line.find('"', begin);
  if (end == std::string::npos || end + 2 > line.size()) return std::nullopt;
  Place place{.file = line.substr(begin, end - begin)};
  std::from_chars(line.data() + end + 2, line.data() + line.size(), place.line);
  if (place.line <= 0 || place.line > kMostLine || place.file.starts_with("/usr/")) return std::nullopt;
  return place;
}

class Gathering {
 public:
  Gathering(fs::path folder, const ExploreFacts& facts) : folder_(std::move(folder)), facts_(facts) {}

  Result<std::string> run() {
    LS_TRY(stages_, readStages(folder_));
    const auto& last = std::get<Program>(stages_.back().stage);
    Json data{{"format", 1}, {"name", facts_.name}, {"device", facts_.device}, {"profile", last.profile.name}};
    LS_TRY(data["stages"], stagesJson());
    data["groups"] = groupsJson(last);
    data["levels"] = last.levelCount();
    addArenas(data, last);
    data["commands"] = commandsJson(last);
    LS_TRY(data["kernels"], kernelsJson(last));
    data["sources"] = sourcesJson();
    return data.dump(-1, ' ', false, Json::error_handler_t::replace);
  }

 private:
  Result<Json> stagesJson() {
    LS_TRY(const auto records, readRecords());
    std::map<std::string, std::string_view> summaries{{"trace", "as the model's function made it"}};
    for (const passes::PassInfo& pass : passes::listPasses()) summaries.emplace(pass.name, pass.summary);
    Json out = Json::array();
    for (size_t i = 0; i < stages_.size(); ++i) {
      const StageFile& stage = stages_[i];
      const auto* graph = std::get_if<graph::Graph>(&stage.stage);
      Json item{{"name", stage.name}, {"file", stage.path.filename().string()}, {"form", graph != nullptr ? "graph" : "program"}};
      item["summary"] = summaries[stage.name];
      item["size"] = graph != nullptr ? graph->nodes.size() : std::get<Program>(stage.stage).commands.size();
      item["changed"] = i == 0 || stage.text != stages_[i - 1].text;
      if (const auto record = records.find(stage.name); record != records.end()) item.update(record->second);
      item["text"] = stage.text;
      if (graph != nullptr) {
        LS_TRY(item["places"], placesJson(stage));
      }
      out.push_back(std::move(item));
    }
    return out;
  }

  /// passes.txt by pass; a folder of an older version has none.
  [[nodiscard]] Result<std::map<std::string, Json>> readRecords() const {
    std::map<std::string, Json> records;
    if (!isThere(folder_ / "passes.txt")) return records;
    LS_TRY(const std::string text, readDumpFile(folder_ / "passes.txt"));
    for (const std::string& line : linesOf(text)) {
      std::vector<std::string> columns{""};
      for (const char c : line) c == '\t' ? void(columns.emplace_back()) : columns.back().push_back(c);
      if (columns.size() != 4) return badDump(folder_, "has a passes.txt without four columns");
      double seconds = 0;
      std::from_chars(columns[1].data(), columns[1].data() + columns[1].size(), seconds);
      records[columns[0]] = {{"seconds", seconds}, {"statistics", columns[3]}};
    }
    return records;
  }

  /// [[line of the stage, file, line of the file]], lines from 0 and 1. The located text has the same lines as the stage.
  Result<Json> placesJson(const StageFile& stage) {
    Json out = Json::array();
    const fs::path path = fs::path(stage.path).replace_extension(".located");
    if (!isThere(path)) return out;
    LS_TRY(const std::string text, readDumpFile(path));
    const std::vector<std::string> lines = linesOf(text);
    for (size_t i = 0; i < lines.size(); ++i) {
      const std::optional<Place> place = placeOf(lines[i]);
      if (!place) continue;
      out.push_back({i, place->file, place->line});
      for (int line = place->line - kContextLines; line <= place->line + kContextLines; ++line) wanted_[place->file].insert(line);
    }
    return out;
  }

  [[nodiscard]] Json groupsJson(const Program& last) const {
    Json out = Json::array();
    const auto scheduled = std::ranges::find_if(stages_, [](const StageFile& s) { return std::holds_alternative<Program>(s.stage); });
    if (scheduled == stages_.begin()) return out;
    for (const GroupPlace& place : placeGroups(std::get<graph::Graph>((scheduled - 1)->stage), std::get<Program>(scheduled->stage), last)) {
      Json buffers = Json::array();
      for (const program::BufferId id : place.buffers) buffers.push_back(id.valid() ? Json(id.index()) : Json());
      out.push_back({{"commands", place.commands}, {"buffers", std::move(buffers)}});
    }
    return out;
  }

  static void addArenas(Json& data, const Program& last) {
    data["arenas"] = Json::array();
    for (const program::Arena& arena : last.arenas) {
      data["arenas"].push_back({{"name", arena.name}, {"role", program::toString(arena.role)}, {"size", arena.size}});
    }
    data["buffers"] = Json::array();
    for (const program::Buffer& buffer : last.buffers) {
      data["buffers"].push_back({{"name", buffer.name},
                                 {"type", graph::toString(buffer.type)},
                                 {"role", program::toString(buffer.role)},
                                 {"arena", buffer.arena.valid() ? Json(buffer.arena.index()) : Json()},
                                 {"offset", buffer.offset},
                                 {"size", buffer.size}});
    }
  }

  /// What each command has to do; empty where the dump has no program whose kernels are still graphs.
  [[nodiscard]] std::vector<passes::CommandWork> workOf(const Program& last) const {
    for (const StageFile& stage : stages_ | std::views::reverse) {
      const auto* program = std::get_if<Program>(&stage.stage);
      if (program == nullptr) break;
      const auto is_graph = [](const program::Kernel& kernel) { return std::holds_alternative<program::SymbolicKernel>(kernel.code); };
      if (std::ranges::any_of(program->kernels, is_graph)) return passes::countWork(*program, last);
    }
    return {};
  }

  [[nodiscard]] Json commandsJson(const Program& last) const {
    Json out = Json::array();
    const std::vector<passes::CommandWork> work = workOf(last);
    const passes::cost::Rates rates = passes::cost::ratesOf(last.profile);
    for (size_t i = 0; i < last.commands.size(); ++i) {
      const program::Command& command = last.commands[i];
      Json item{{"label", command.label}, {"level", command.level}, {"kernel", nullptr}};
      if (const auto* dispatch = std::get_if<program::Dispatch>(&command.action)) {
        item["kernel"] = dispatch->kernel.index();
        item["groups"] = dispatch->groups;
      }
      Json accesses = Json::array();
      for (const program::Range& range : program::accesses(command)) {
        accesses.push_back({{"buffer", range.buffer.index()},
                            {"offset", range.offset},
                            {"size", range.size},
                            {"write", range.access != kernel::Access::Read}});
      }
      item["accesses"] = std::move(accesses);
      if (i < work.size()) {
        item["bytes"] = work[i].bytes;
        if (work[i].operations) item["operations"] = *work[i].operations;
        item["least_seconds"] = passes::cost::floorOf(work[i].bytes, work[i].operations.value_or(0), rates).seconds();
      }
      if (facts_.seconds.size() == last.commands.size()) item["seconds"] = facts_.seconds[i];
      out.push_back(std::move(item));
    }
    return out;
  }

  [[nodiscard]] Result<Json> kernelsJson(const Program& last) const {
    Json out = Json::array();
    for (const program::Kernel& kernel : last.kernels) {
      if (kernel.name != fs::path(kernel.name).filename().string() || kernel.name == "..") {
        return badDump(folder_, fmt::format("has a kernel whose name '{}' is a path", kernel.name));
      }
      Json item{{"name", kernel.name}};
      for (const std::string ending : {"kir", "wgsl", "spvasm"}) {
        const fs::path path = folder_ / (kernel.name + "." + ending);
        if (!isThere(path)) {
          if (ending == "spvasm") continue;
          return badDump(folder_, fmt::format("has no {}", path.filename().string()));
        }
        LS_TRY(item[ending], readDumpFile(path));
      }
      out.push_back(std::move(item));
    }
    return out;
  }

  /// {"models/mlp.cpp": {"24": "text of line 24"}}; without the files that are not there.
  [[nodiscard]] Json sourcesJson() const {
    Json out = Json::object();
    for (const auto& [file, numbers] : wanted_) {
      const std::optional<std::string> text = findSource(file);
      if (!text) continue;
      const std::vector<std::string> lines = linesOf(*text);
      for (const int number : numbers) {
        if (number >= 1 && static_cast<size_t>(number) <= lines.size()) out[file][std::to_string(number)] = lines[number - 1];
      }
    }
    return out;
  }

  [[nodiscard]] std::optional<std::string> findSource(const std::string& file) const {
    const bool source = std::ranges::find(kSourceEndings, fs::path(file).extension().string()) != kSourceEndings.end();
    for (const fs::path& folder : facts_.sources) {
      if (!source) break;
      if (auto text = io::readTextFileBelow(folder, file, kMostSource)) return *text;
    }
    const auto known = std::ranges::find(facts_.known, file, &SourceText::file);
    return known == facts_.known.end() ? std::nullopt : std::optional(std::string(known->text));
  }

  fs::path folder_;
  const ExploreFacts& facts_;
  std::vector<StageFile> stages_;
  std::map<std::string, std::set<int>> wanted_;  ///< lines of source files
};

}  // namespace

Result<std::string> exploreData(const fs::path& dump, const ExploreFacts& facts) { return Gathering(dump, facts).run(); }

}  // namespace lockstep::tools
