// SPDX-License-Identifier: Apache-2.0
// The page of `lockstep explore` in a browser: with "#test" its own script clicks through all views and says what it counted.
#include <gtest/gtest.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <regex>

#include "tests/cli/process.h"

namespace lockstep {
namespace {

using Json = nlohmann::json;
using testing::Outcome;

class ExplorePage : public ::testing::Test {
 protected:
  ExplorePage() : scratch_("explore-page") {}
  void SetUp() override {
    if (std::system("chromium --version >/dev/null 2>&1") != 0) GTEST_SKIP() << "there is no chromium (Debian package chromium)";
  }
  /// Runs the browser on a page; gives what it prints.
  std::string browse(const std::string& url, const std::string& options) {
    const std::string out = scratch_ / "browser.out";
    const std::string command =
        "HOME=" + (scratch_ / "").string() +
        " timeout 120 chromium --headless=new --no-sandbox --disable-gpu --user-data-dir=" + (scratch_ / "profile").string() +
        " --virtual-time-budget=20000 " + options + " '" + url + "' >" + out + " 2>/dev/null";
    EXPECT_EQ(std::system(command.c_str()), 0) << command;
    return *io::readTextFile(out);
  }
  /// What the page says of itself: "ok {...}" or "failed ...".
  std::string verdict(const std::string& page) {
    const std::string dom = browse("file://" + page + "#test", "--dump-dom");
    std::smatch match;
    return std::regex_search(dom, match, std::regex("<pre id=\"result\"[^>]*>([^<]*)</pre>")) ? match[1].str() : "no result";
  }
  void make(const std::string& options) {
    const Outcome outcome = testing::runTool(scratch_, "explore sine --device reference --sources " LOCKSTEP_SOURCE_DIR " " + options);
    ASSERT_EQ(outcome.status, 0) << outcome.err;
  }

  testing::ScratchDirectory scratch_;
};

TEST_F(ExplorePage, every_view_of_sine_works) {
  const std::string page = scratch_ / "sine.html", json = scratch_ / "sine.json";
  make("--out " + page);
  make("--json --out " + json);
  const Json data = Json::parse(*io::readTextFile(json));
  const std::string text = verdict(page);
  ASSERT_TRUE(text.starts_with("ok ")) << text;
  const Json counts = Json::parse(text.substr(3));
  EXPECT_EQ(counts["stages"], data["stages"].size());
  EXPECT_EQ(counts["boxes"], data["commands"].size());
  EXPECT_EQ(counts["groups"], data["groups"].size());
  EXPECT_EQ(counts["placed"], data["groups"].size());
  size_t unchanged = 0, temporaries = 0;
  for (const Json& stage : data["stages"]) unchanged += stage["changed"] == false;
  for (const Json& buffer : data["buffers"]) temporaries += buffer["role"] == "workspace";
  EXPECT_EQ(counts["unchanged"], unchanged);
  EXPECT_EQ(counts["buffers"], temporaries);
  EXPECT_GE(counts["edges"].get<size_t>(), data["commands"].size() - 1) << "every dispatch but the first reads what another one wrote";
  EXPECT_GT(counts["panels"], 400) << "one for each value of each graph";
  EXPECT_GT(counts["kernels"], 60) << "values in groups have a kernel";
  EXPECT_GT(counts["sources"], 40);
  EXPECT_EQ(counts["sourceLines"], 3u) << "layers, relu and the loss";
  EXPECT_GT(counts["hits"], 10) << "matmul is found";
}

TEST_F(ExplorePage, damaged_page_fails) {
  const std::string page = scratch_ / "sine.html";
  make("--out " + page);
  std::string text = *io::readTextFile(page);
  const std::string line = "function commandPanel({ index }) {";
  ASSERT_NE(text.find(line), std::string::npos);
  text.insert(text.find(line) + line.size(), "missing();");
  ASSERT_TRUE(io::writeFileAtomically(page, std::string_view(text)).ok());
  const std::string said = verdict(page);
  EXPECT_TRUE(said.starts_with("failed ReferenceError: missing is not defined")) << said;
}

TEST_F(ExplorePage, screenshot_is_a_picture) {
  const std::string page = scratch_ / "sine.html", picture = scratch_ / "page.png";
  make("--out " + page);
  browse("file://" + page + "#stage=fuse&view=dispatches&sel=command:1", "--window-size=1200,800 --screenshot=" + picture);
  const std::string bytes = *io::readTextFile(picture);
  EXPECT_TRUE(bytes.starts_with("\x89PNG"));
  EXPECT_GT(bytes.size(), 30000u) << "an empty page is smaller";
}

}  // namespace
}  // namespace lockstep
