// SPDX-License-Identifier: Apache-2.0
// The file of `lockstep profile --trace` in the viewer that Chromium brings along: the Performance panel of its developer tools, which
// shows any trace of the trace-event format.
#include <gtest/gtest.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "tests/browser/browser.h"
#include "tests/tools/cli/process.h"

namespace lockstep {
namespace {

using Json = nlohmann::json;
using testing::Browser;

/// Presses the buttons of a name that can be seen, in whatever part of the page they are.
const std::string kPressButton = R"(((name) => {
  const visit = (root) => root.querySelectorAll("*").forEach((node) => {
    if (node.shadowRoot) visit(node.shadowRoot);
    const shown = node.localName === "button" && node.getBoundingClientRect().width > 0;
    if (shown && [node.title, node.getAttribute("aria-label")].includes(name)) node.click();
  });
  visit(document);
}))";

Json ask(Browser& browser, const std::string& expression) { return Json::parse(browser.evaluate(expression)); }

class TraceView : public ::testing::Test {
 protected:
  TraceView() : scratch_("trace-view") {}
  /// The trace of one step; $LOCKSTEP_PICTURES has pictures of a device, tests need none.
  std::string makeTrace() {
    const std::string device = std::getenv("LOCKSTEP_PICTURES") ? "vulkan" : "reference", file = (scratch_ / "trace.json").string();
    const testing::Outcome outcome = testing::runTool(scratch_, "profile sine --device " + device + " --steps 5 --trace " + file);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    return *io::readTextFile(file);
  }
  testing::ScratchDirectory scratch_;
};

TEST_F(TraceView, chromium_shows_host_and_device_on_one_axis) {
  if (!Browser::exists()) GTEST_SKIP() << "there is no chromium (Debian package chromium)";
  const std::string text = makeTrace();
  const Json events = Json::parse(text)["traceEvents"];
  Browser browser(scratch_, "--remote-debugging-port=0");
  browser.open(browser.toolsAddress() + "/devtools/devtools_app.html?panel=timeline");
  const std::string panel = "globalThis.UI?.panels?.timeline";
  browser.waitFor(panel + "?.loadFromFile");
  ask(browser,
      "UI.panels.timeline.loadFromFile(new File([" + Json(text).dump() + "], 'trace.json', { type: 'application/json' })).then(() => 0)");
  browser.waitFor(panel + ".hasActiveTrace()");
  ask(browser, "globalThis.flame = UI.panels.timeline.getFlameChart(), 0");

  // What the panel read is what the file has: every span, under the names of its tracks.
  size_t spans = 0;
  for (const Json& event : events) spans += event["ph"] == "X";
  EXPECT_EQ(ask(browser, "UI.panels.timeline.getTraceEngineRawTraceEventsForLayoutTests().filter((e) => e.ph === 'X').length"), spans);
  browser.waitFor("flame.getMainDataProvider().timelineData().groups.length");
  const std::string groups = ask(browser, "flame.getMainDataProvider().timelineData().groups.map((group) => group.name)").dump();
  size_t tracks = 0;
  for (const Json& event : events) {
    const std::string kind = event["name"];
    if (event["ph"] != "M" || !kind.ends_with("_name")) continue;
    ++tracks;
    EXPECT_NE(groups.find(event["args"]["name"].get<std::string>()), std::string::npos) << event << groups;
  }
  EXPECT_EQ(Json::parse(groups).size(), tracks) << groups;

  // The picture has all tracks open and nothing beside them.
  browser.resize({1400, 640, false});
  ask(browser, kPressButton + "('Hide sidebar'), " + kPressButton + "('Close')");
  ask(browser, "flame.getMainFlameChart().bulkExpandGroups([..." + groups + ".keys()])");
  browser.waitFor("flame.getMainDataProvider().timelineData().groups.every((group) => group.expanded)");
  const std::string drawn = "flame.getMainDataProvider().timelineData().entryStartTimes.length";
  browser.waitFor(drawn + " >= " + std::to_string(spans));
  EXPECT_EQ(ask(browser, drawn), spans) << "none is left out";
  const std::string picture = testing::pictureFile(scratch_, "trace.png");
  ask(browser, "new Promise((done) => setTimeout(done, 1000))");  // it is drawn in frames of its own
  browser.capture(picture);
  EXPECT_TRUE(io::readTextFile(picture)->starts_with("\x89PNG"));
}

}  // namespace
}  // namespace lockstep
