// SPDX-License-Identifier: Apache-2.0
// The driver itself: what a page does wrong is heard, or the tests beside this one would pass for any page.
#include "tests/browser/browser.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "frontend/io/file.h"

namespace lockstep::testing {
namespace {

TEST(Browser, hears_errors_and_requests_and_sends_the_pointer) {
  if (!Browser::exists()) GTEST_SKIP() << "there is no chromium (Debian package chromium)";
  const ScratchDirectory scratch("browser");
  const std::string page = (scratch / "page.html").string();
  ASSERT_TRUE(
      io::writeFileAtomically(
          page,
          std::string_view(R"(<!doctype html><meta name="viewport" content="width=device-width"><button id="b" onclick="++clicks">x</button>
    <img src="other.png"><script>let clicks = 0; console.error("logged"); setTimeout(() => missing(), 0);</script>)"))
          .ok());
  Browser browser(scratch);
  browser.open("file://" + page);
  const std::string complaints = nlohmann::json(browser.complaints()).dump();
  EXPECT_NE(complaints.find("logged"), std::string::npos) << complaints;
  EXPECT_NE(complaints.find("missing is not defined"), std::string::npos) << complaints;
  ASSERT_EQ(browser.requests().size(), 1u);
  EXPECT_TRUE(browser.requests()[0].ends_with("/other.png")) << browser.requests()[0];
  const auto [x, y] = browser.middleOf("#b");
  browser.click(x, y, 2);
  EXPECT_EQ(browser.evaluate("clicks"), "2");
  browser.resize({420, 800, true});
  EXPECT_EQ(browser.evaluate("[innerWidth, matchMedia('(prefers-color-scheme: dark)').matches]"), "[420,true]");
  EXPECT_THROW(browser.evaluate("nothing.here"), std::runtime_error);
}

}  // namespace
}  // namespace lockstep::testing
