// SPDX-License-Identifier: Apache-2.0
// The page of `lockstep explore` in a browser: with "#test" its own script clicks through all views and says what it counted.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/browser/browser.h"
#include "tests/tools/cli/process.h"

namespace lockstep {
namespace {

using Json = nlohmann::json;
using testing::Browser;
using testing::Outcome;

Json ask(Browser& browser, const std::string& expression) { return Json::parse(browser.evaluate(expression)); }

class ExplorePage : public ::testing::Test {
 protected:
  ExplorePage() : scratch_("explore-page") {}
  void SetUp() override {
    if (!Browser::exists()) GTEST_SKIP() << "there is no chromium (Debian package chromium)";
  }
  /// What the page says of itself: "ok {...}" or "failed ...".
  std::string verdict(const std::string& page) {
    Browser browser(scratch_);
    browser.open("file://" + page + "#test");
    return ask(browser, "document.getElementById('result')?.textContent ?? 'no result'");
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
  EXPECT_GT(counts["members"], 40) << "each says its group, and its source line if it has one";
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

/// The pages of docs/images, and those of a phone.
TEST_F(ExplorePage, fits_every_screen) {
  const std::string page = scratch_ / "sine.html";
  make("--out " + page);
  Browser browser(scratch_);
  struct View {
    std::string name, address;
  };
  for (const View& view : std::vector<View>{{"diff", "stage=fuse&view=diff"},
                                            {"dispatches", "stage=fuse&view=dispatches&sel=command:1"},
                                            {"memory", "stage=fuse&view=memory"},
                                            {"source", "stage=fuse&view=source"}}) {
    for (const testing::Screen& screen : testing::kScreens) {
      browser.resize(screen);
      browser.open("file://" + page + "#" + view.address);
      EXPECT_EQ(ask(browser, "[innerWidth, document.documentElement.scrollWidth]"), Json({screen.width, screen.width})) << view.name;
      EXPECT_GE(ask(browser, "document.getElementById('main').getBoundingClientRect().height").get<double>(), 250) << view.name;
      browser.capture(testing::pictureFile(scratch_, "explore-" + view.name + "-" + screen.name() + ".png"));
      EXPECT_EQ(Json(browser.complaints()).dump(), "[]");
      EXPECT_EQ(Json(browser.requests()).dump(), "[]") << "the page needs nothing else";
    }
  }
}

}  // namespace
}  // namespace lockstep
