// SPDX-License-Identifier: Apache-2.0
// The data of `lockstep explore` beside the dump that it was made from.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <regex>
#include <set>

#include "examples/models/samples.h"
#include "frontend/io/file.h"
#include "ir/program/program.h"
#include "passes/pipeline.h"
#include "passes/plan/command_work.h"
#include "tests/frontend/io/scratch.h"
#include "tools/explore/explore_data.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

size_t countOf(const std::string& text, const std::string& pattern) {
  const std::regex regex(pattern);
  return static_cast<size_t>(std::distance(std::sregex_iterator(text.begin(), text.end(), regex), std::sregex_iterator()));
}

/// The dump of a sample's step on the reference.
class ExploreData : public ::testing::Test {
 protected:
  ExploreData() : scratch_("explore-data"), folder_(scratch_ / "ir") {}
  template <class Model>
  void dump(CompileSpec<Model> spec) {
    spec.device = "reference";
    spec.dump_ir = folder_.string();
    compile(std::move(spec));
  }
  [[nodiscard]] Json data(std::vector<double> seconds = {}) const {
    const std::string text =
        *tools::exploreData(folder_, {.name = "model", .device = "", .seconds = std::move(seconds), .sources = {LOCKSTEP_SOURCE_DIR}});
    return Json::parse(text);
  }
  [[nodiscard]] program::Program lastProgram() const {
    fs::path last;
    for (const auto& entry : fs::directory_iterator(folder_)) {
      if (entry.path().extension() == ".program") last = std::max(last, entry.path());
    }
    return program::parse(*io::readTextFile(last)).orThrow();
  }

  void everyGroupHasItsDispatch();

  testing::ScratchDirectory scratch_;
  fs::path folder_;
};

TEST_F(ExploreData, stages_are_those_of_the_dump) {
  dump(examples::sineSpec());
  const Json got = data();
  const std::vector<std::string> names{"trace",    "checkIndices",    "recognise",  "grad", "optimizer",  "decompose",
                                       "simplify", "splitReductions", "splitScans", "fuse", "packStores", "schedule"};
  ASSERT_GT(got["stages"].size(), names.size());
  for (size_t i = 0; i < names.size(); ++i) EXPECT_EQ(got["stages"][i]["name"], names[i]);
  for (const Json& stage : got["stages"]) {
    const std::string text = stage["text"];
    EXPECT_EQ(text, *io::readTextFile(folder_ / stage["file"].get<std::string>()));
    if (stage["form"] == "graph") {
      EXPECT_EQ(stage["size"], countOf(text, "\n *%[^\n]* = ")) << stage["name"];
    } else {
      EXPECT_EQ(stage["size"], countOf(text, "\n  (dispatch|copy|fill) ")) << stage["name"];
    }
    if (stage["name"] == "trace") continue;
    EXPECT_GE(stage["seconds"], 0) << stage["name"];
    EXPECT_FALSE(stage["summary"].get<std::string>().empty()) << stage["name"];
  }
  EXPECT_FALSE(got["stages"][7]["changed"]);
  EXPECT_TRUE(got["stages"][9]["changed"]);
}

TEST_F(ExploreData, commands_have_their_work_and_the_least_time_for_it) {
  dump(examples::sineSpec());
  const Json got = data();
  const program::Program last = lastProgram();
  std::optional<program::Program> planned;
  for (const Json& stage : got["stages"]) {
    if (stage["name"] == "planBuffers") planned = program::parse(stage["text"].get<std::string>()).orThrow();
  }
  ASSERT_TRUE(planned.has_value());
  const std::vector<passes::CommandWork> want = passes::countWork(*planned, last);
  ASSERT_EQ(got["commands"].size(), want.size());
  uint64_t operations = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    const Json& command = got["commands"][i];
    EXPECT_EQ(command["bytes"], want[i].bytes);
    EXPECT_EQ(command["operations"], want[i].operations.value());
    // The rates of the CPU reference.
    EXPECT_GE(command["least_seconds"].get<double>(), 0.99 * static_cast<double>(want[i].bytes) / 3.7e9);
    operations += want[i].operations.value();
  }
  EXPECT_GT(operations, 0u);
}

TEST_F(ExploreData, plan_is_that_of_the_last_program) {
  dump(examples::sineSpec());
  const Json got = data();
  const program::Program want = lastProgram();
  EXPECT_EQ(got["levels"], want.levelCount());
  ASSERT_EQ(got["commands"].size(), want.commands.size());
  ASSERT_EQ(got["kernels"].size(), want.kernels.size());
  ASSERT_EQ(got["buffers"].size(), want.buffers.size());
  ASSERT_EQ(got["arenas"].size(), want.arenas.size());
  for (size_t i = 0; i < want.commands.size(); ++i) {
    EXPECT_EQ(got["commands"][i]["label"], want.commands[i].label);
    EXPECT_EQ(got["commands"][i]["level"], want.commands[i].level);
    EXPECT_EQ(got["commands"][i]["accesses"].size(), program::accesses(want.commands[i]).size());
    EXPECT_FALSE(got["commands"][i].contains("seconds")) << "nothing was measured";
  }
  for (size_t i = 0; i < want.buffers.size(); ++i) {
    const Json& buffer = got["buffers"][i];
    EXPECT_EQ(buffer["name"], want.buffers[i].name);
    EXPECT_LE(buffer["offset"].get<uint64_t>() + buffer["size"].get<uint64_t>(), got["arenas"][buffer["arena"].get<size_t>()]["size"]);
  }
  for (const Json& kernel : got["kernels"]) {
    EXPECT_NE(kernel["wgsl"].get<std::string>().find("@compute"), std::string::npos);
    EXPECT_TRUE(kernel["kir"].get<std::string>().starts_with("lockstep.kernel"));
    EXPECT_FALSE(kernel.contains("spvasm")) << "the reference runs kernels as they are";
  }
}

/// Each group became a dispatch whose label has its ops, no dispatch is left over, and the buffers are those that it writes.
void ExploreData::everyGroupHasItsDispatch() {
  const Json got = data();
  std::set<size_t> reached;
  size_t grouped = 0;
  for (const Json& stage : got["stages"]) {
    if (stage["form"] == "graph") grouped = countOf(stage["text"], " = group ");
  }
  ASSERT_EQ(got["groups"].size(), grouped);
  for (const Json& group : got["groups"]) {
    EXPECT_FALSE(group["commands"].empty());
    for (const size_t command : group["commands"]) reached.insert(command);
    for (const Json& buffer : group["buffers"]) EXPECT_TRUE(buffer.is_number());
  }
  for (size_t i = 0; i < got["commands"].size(); ++i) {
    EXPECT_TRUE(got["commands"][i]["kernel"].is_null() || reached.contains(i)) << got["commands"][i]["label"];
  }
}

TEST_F(ExploreData, every_group_of_sine_has_its_dispatch) {
  dump(examples::sineSpec());
  everyGroupHasItsDispatch();
}

// Results in the bytes of operands, many equal groups, merged dispatches.
TEST_F(ExploreData, every_group_of_a_transformer_has_its_dispatch) {
  dump(examples::makemoreSpec());
  everyGroupHasItsDispatch();
}

TEST_F(ExploreData, places_name_lines_of_the_model) {
  dump(examples::sineSpec());
  const Json got = data();
  size_t matmuls = 0;
  for (const Json& place : got["stages"][0]["places"]) {
    const std::string file = place[1];
    EXPECT_TRUE(file.starts_with("examples/models/")) << file;
    EXPECT_TRUE(got["sources"][file].contains(std::to_string(place[2].get<int>()))) << place;
    std::istringstream text(got["stages"][0]["text"].get<std::string>());
    std::string line;
    for (size_t i = 0; i <= place[0].get<size_t>(); ++i) std::getline(text, line);
    EXPECT_NE(line.find(" = "), std::string::npos) << line;
    if (line.find("= matmul") == std::string::npos) continue;
    ++matmuls;
    EXPECT_NE(got["sources"][file][std::to_string(place[2].get<int>())].get<std::string>().find("layers[i]"), std::string::npos);
  }
  EXPECT_EQ(matmuls, 3u);
}

TEST_F(ExploreData, times_are_by_command) {
  dump(examples::sineSpec());
  std::vector<double> seconds(lastProgram().commands.size());
  for (size_t i = 0; i < seconds.size(); ++i) seconds[i] = static_cast<double>(i) + 0.5;
  const Json got = data(seconds);
  for (size_t i = 0; i < seconds.size(); ++i) EXPECT_EQ(got["commands"][i]["seconds"], seconds[i]);
}

TEST_F(ExploreData, bad_folders_are_refused) {
  const auto codeOf = [&] {
    const auto result = tools::exploreData(folder_, {.name = "model"});
    return result.ok() ? "" : result.diagnostics().front().code;
  };
  EXPECT_EQ(codeOf(), "explore.dump");
  dump(examples::sineSpec());
  EXPECT_EQ(codeOf(), "");
  for (const auto& entry : fs::directory_iterator(folder_)) {
    if (entry.path().extension() == ".wgsl") fs::remove(entry.path());
  }
  EXPECT_EQ(codeOf(), "explore.dump");
  ASSERT_TRUE(io::writeFileAtomically(folder_ / "99-bad.program", std::string_view("lockstep.program 1\nnonsense\n")).ok());
  EXPECT_EQ(codeOf(), "text.syntax");
}

/// The sources that the page gets for a dump whose first node claims to come from line 1 of `file`.
class ExploreSources : public ExploreData {
 protected:
  ExploreSources() : sources_(scratch_ / "sources") {
    dump(examples::sineSpec());
    for (const char* folder : {"sources/models", "sources/.hidden", "elsewhere"}) fs::create_directories(scratch_ / folder);
    for (const char* file : {"sources/models/a.cpp", "sources/.hidden/a.cpp", "sources/key.pem", "elsewhere/secret.cpp"}) {
      EXPECT_TRUE(io::writeFileAtomically(scratch_ / file, std::string_view("first line\n")).ok());
    }
    fs::create_symlink(scratch_ / "elsewhere", sources_ / "out");
    fs::create_symlink(scratch_ / "elsewhere/secret.cpp", sources_ / "out.cpp");
    fs::create_symlink("a.cpp", sources_ / "models/in.cpp");
    EXPECT_EQ(::mkfifo((sources_ / "fifo.cpp").c_str(), 0600), 0);
    EXPECT_TRUE(io::writeFileAtomically(sources_ / "large.cpp", std::string_view("x")).ok());
    fs::resize_file(sources_ / "large.cpp", uint64_t{1} << 40u);
  }
  [[nodiscard]] std::set<std::string> sourcesFor(const std::string& file) {
    const fs::path located = folder_ / "00-trace.located";
    std::string text = *io::readTextFile(located);
    const size_t at = text.find(" @ \"");
    text.replace(at, text.find('\n', at) - at, " @ \"" + file + "\":1:1");
    EXPECT_TRUE(io::writeFileAtomically(located, std::string_view(text)).ok());
    const Json got = Json::parse(*tools::exploreData(folder_, {.name = "model", .sources = {sources_}}));
    std::set<std::string> files;
    for (const auto& [name, lines] : got["sources"].items()) files.insert(name);
    return files;
  }
  fs::path sources_;
};

TEST_F(ExploreSources, files_below_the_folder_are_shown) {
  EXPECT_EQ(sourcesFor("models/a.cpp"), std::set<std::string>{"models/a.cpp"});
  EXPECT_EQ(sourcesFor("models/in.cpp"), std::set<std::string>{"models/in.cpp"});
  const std::string whole = (fs::canonical(sources_) / "models/a.cpp").string();
  EXPECT_EQ(sourcesFor(whole), std::set<std::string>{whole});
}

TEST_F(ExploreSources, other_files_are_not) {
  const std::string elsewhere = fs::canonical(scratch_ / "elsewhere/secret.cpp").string();
  for (const std::string& file :
       {elsewhere, std::string("../elsewhere/secret.cpp"), std::string("models/../../elsewhere/secret.cpp"), std::string("out/secret.cpp"),
        std::string("out.cpp"), std::string("fifo.cpp"), std::string("large.cpp"), std::string(".hidden/a.cpp"), std::string("key.pem"),
        std::string("/etc/passwd"), std::string("/dev/zero")}) {
    EXPECT_TRUE(sourcesFor(file).empty()) << file;
  }
}

TEST_F(ExploreData, files_of_a_dump_are_regular_files_in_its_folder) {
  const auto codeOf = [&] {
    const auto result = tools::exploreData(folder_, {.name = "model"});
    return result.ok() ? "" : result.diagnostics().front().code;
  };
  dump(examples::sineSpec());
  ASSERT_EQ(codeOf(), "");
  const std::string kernel = lastProgram().kernels.front().name + ".wgsl";
  fs::rename(folder_ / kernel, scratch_ / "elsewhere.wgsl");
  fs::create_symlink(scratch_ / "elsewhere.wgsl", folder_ / kernel);
  EXPECT_EQ(codeOf(), "file.read");
  fs::remove(folder_ / kernel);
  ASSERT_EQ(::mkfifo((folder_ / kernel).c_str(), 0600), 0);
  EXPECT_EQ(codeOf(), "file.read");
}

TEST_F(ExploreData, kernels_are_not_named_by_paths) {
  dump(examples::sineSpec());
  program::Program program = lastProgram();
  ASSERT_TRUE(io::writeFileAtomically(scratch_ / "secret.kir", std::string_view("a")).ok());
  ASSERT_TRUE(io::writeFileAtomically(scratch_ / "secret.wgsl", std::string_view("b")).ok());
  program.kernels.front().name = "../secret";
  ASSERT_TRUE(io::writeFileAtomically(folder_ / "99-last.program", std::string_view(program::print(program))).ok());
  const auto result = tools::exploreData(folder_, {.name = "model"});
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.diagnostics().front().code, "explore.dump");
}

TEST_F(ExploreData, old_dumps_have_no_times_and_places) {
  dump(examples::sineSpec());
  fs::remove(folder_ / "passes.txt");
  for (const auto& entry : fs::directory_iterator(folder_)) {
    if (entry.path().extension() == ".located") fs::remove(entry.path());
  }
  const Json got = data();
  EXPECT_FALSE(got["stages"][1].contains("seconds"));
  EXPECT_TRUE(got["stages"][1]["places"].empty());
}

TEST(ExplorePage, data_cannot_end_its_element) {
  const std::string page = tools::explorePage("a <b> & c", R"({"text":"</script><!--\u00e4/*style*/"})");
  EXPECT_EQ(countOf(page, "</script>"), 2u);
  EXPECT_NE(page.find(R"(\u003c/script>)"), std::string::npos);
  EXPECT_NE(page.find("a &lt;b> &amp; c"), std::string::npos);
  EXPECT_EQ(page.find("<!--title-->"), std::string::npos);
  EXPECT_EQ(countOf(page, "http://(?!www.w3.org/2000/svg)|https://"), 0u) << "the page needs no network";
  EXPECT_LT(page.size(), 200000u);
}

}  // namespace
}  // namespace lockstep
