// SPDX-License-Identifier: Apache-2.0
// The page of a run in a browser: a short training of `sine`, its report.html opened from disk and used as a reader would.
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>

#include "experiment/report.h"
#include "tests/browser/browser.h"
#include "tests/tools/cli/process.h"

namespace lockstep {
namespace {

using Json = nlohmann::json;
using testing::Browser;

constexpr int kSteps = 60;

Json ask(Browser& browser, const std::string& expression) { return Json::parse(browser.evaluate(expression)); }

class ReportPage : public ::testing::Test {
 protected:
  ReportPage() : scratch_("report-page") {}
  void SetUp() override {
    if (!Browser::exists()) GTEST_SKIP() << "there is no chromium (Debian package chromium)";
    const testing::Outcome outcome = testing::runTool(
        scratch_, "train sine --device reference --steps " + std::to_string(kSteps) + " --out " + (scratch_ / "run").string());
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    std::istringstream lines(*io::readTextFile(scratch_ / "run/losses.jsonl"));
    for (std::string line; std::getline(lines, line);) losses_.push_back(Json::parse(line)["loss"]);
    ASSERT_EQ(losses_.size(), size_t{kSteps});
  }
  [[nodiscard]] std::string page() const { return "file://" + (scratch_ / "run/report.html").string(); }
  /// The number that the page shows for a loss: four digits.
  static std::string shown(Browser& browser, double loss) { return ask(browser, "short(" + Json(loss).dump() + ")"); }

  testing::ScratchDirectory scratch_;
  std::vector<double> losses_;
};

TEST_F(ReportPage, chart_reads_as_losses_jsonl_and_can_be_used) {
  Browser browser(scratch_);
  browser.open(page());
  const auto text = [&](const std::string& selector) {
    return ask(browser, "document.querySelector(" + Json(selector).dump() + ").textContent").get<std::string>();
  };
  EXPECT_EQ(text("h1"), "sine");
  EXPECT_EQ(text(".card:nth-child(1) b"), std::to_string(kSteps));
  EXPECT_EQ(text(".card:nth-child(2) b"), shown(browser, losses_.back()));
  EXPECT_NEAR(std::stod(text(".card:nth-child(2) b")), losses_.back(), 5e-4 * losses_.back());

  // Every point of the curve is where the axis has its loss.
  const Json curve = ask(browser, "[...document.querySelector('#loss .curve').points].map((p) => lossAt(p.y))");
  ASSERT_EQ(curve.size(), losses_.size());
  for (size_t i = 0; i < losses_.size(); ++i) EXPECT_NEAR(curve[i].get<double>(), losses_[i], 5e-3 * losses_[i]) << "step " << i + 1;

  // The pointer over a step says its number and its loss.
  browser.middleOf("#loss");
  for (const int step : {1, 20, kSteps}) {
    const Json at = ask(browser, "pointOf(" + std::to_string(step) + ")");
    browser.move(at[0], at[1]);
    EXPECT_EQ(text("#loss-note").find("step " + std::to_string(step) + ": loss " + shown(browser, losses_[static_cast<size_t>(step) - 1])),
              0u)
        << text("#loss-note");
  }

  // Drag, and the steps between stay; a double click, and all are back.
  const Json from = ask(browser, "pointOf(20)"), to = ask(browser, "pointOf(40)");
  browser.drag(from[0], from[1], to[0], to[1]);
  EXPECT_EQ(ask(browser, "document.querySelector('#loss .curve').points.length"), 21);
  EXPECT_EQ(ask(browser, "range").dump(), "[20,40]");
  browser.click(to[0], to[1], 2);
  EXPECT_EQ(ask(browser, "document.querySelector('#loss .curve').points.length"), kSteps);

  // A linear axis has the same losses at other places.
  const std::string before = ask(browser, "document.querySelector('#loss .curve').getAttribute('points')");
  const auto [x, y] = browser.middleOf("#log");
  browser.click(x, y);
  EXPECT_NE(ask(browser, "document.querySelector('#loss .curve').getAttribute('points')"), before);
  EXPECT_NEAR(ask(browser, "lossAt(document.querySelector('#loss .curve').points[9].y)").get<double>(), losses_[9], 5e-3 * losses_[0]);
  // Without smoothing both lines are one.
  ask(browser, "byId('smooth').value = 0, byId('smooth').oninput()");
  EXPECT_EQ(ask(browser, "document.querySelector('#loss .curve').getAttribute('points')"),
            ask(browser, "document.querySelector('#loss .smooth').getAttribute('points')"));

  EXPECT_EQ(Json(browser.complaints()).dump(), "[]");
  EXPECT_EQ(Json(browser.requests()).dump(), "[]") << "the page needs nothing else";
}

TEST_F(ReportPage, model_and_memory_say_what_they_show) {
  Browser browser(scratch_);
  browser.open(page());
  const Json data = ask(browser, "data");
  const Json names = ask(browser, "[...document.querySelectorAll('#model .name')].map((node) => node.textContent)");
  EXPECT_EQ(names.size(), data["model"]["boxes"].size());
  for (const char* name : {"x", "y", "l1", "l2", "l3"}) EXPECT_NE(names.dump().find(Json(name).dump()), std::string::npos) << names;
  EXPECT_EQ(ask(browser, "document.querySelectorAll('#model .edge').length"), data["model"]["edges"].size());

  ASSERT_GT(data["memory"].size(), 0u);
  EXPECT_EQ(ask(browser, "document.querySelectorAll('#memory .buffer').length"), data["memory"].size());
  const auto [x, y] = browser.middleOf("#memory .buffer");
  browser.move(x, y);
  const std::string note = ask(browser, "byId('memory-note').textContent");
  EXPECT_EQ(note.find(data["memory"][0]["name"].get<std::string>() + ": "), 0u) << note;
  EXPECT_EQ(Json(browser.complaints()).dump(), "[]");
}

/// A run with measurements of several kinds.
std::string pageOfMetrics() {
  experiment::ReportData data;
  data.recipe = "made";
  data.running = true;
  data.history.losses = {4, 3, 2, 1};
  data.facts.outline.boxes = {{"x", "input", "f32[2]", 0}};
  const std::vector<double> exact{0.01, 0.4, 0.9}, error{100, 10, 1};
  for (int64_t i = 0; i < 3; ++i) {
    data.history.reports.push_back({.step = i + 1,
                                    .metrics = {{"train_exact", exact[static_cast<size_t>(i)]},
                                                {"heldout_exact", exact[static_cast<size_t>(i)] / 2},
                                                {"test_loss", 5 - static_cast<double>(i)},
                                                {"worst_error", error[static_cast<size_t>(i)]}},
                                    .lr = 0.5,
                                    .grad_norm = 2});
    data.exhibits.push_back({.step = i + 1, .name = "lines", .text = "made at " + std::to_string(i + 1)});
  }
  return experiment::reportPage(data);
}

TEST_F(ReportPage, metrics_have_the_charts_that_suit_them) {
  ASSERT_TRUE(io::writeFileAtomically(scratch_ / "metrics.html", std::string_view(pageOfMetrics())).ok());
  Browser browser(scratch_);
  browser.open("file://" + (scratch_ / "metrics.html").string());
  // What was measured on the training data and on held-out data shares a chart; a measured loss is in the chart of the loss.
  EXPECT_EQ(ask(browser, "[...document.querySelectorAll('#metrics svg')].map((svg) => svg.dataset.metric)"),
            Json({"exact", "worst_error", "gradient norm"}));
  EXPECT_EQ(ask(browser, "document.querySelectorAll('#metrics svg[data-metric=exact] .metric').length"), 2);
  EXPECT_EQ(ask(browser, "document.querySelectorAll('#loss .metric').length"), 1);
  EXPECT_EQ(ask(browser, "byId('loss-keys').textContent.trim()"), "test_loss");
  // A share is not drawn on a logarithmic axis, however far it rose; an error that falls a hundredfold is.
  const auto titles = [&](const std::string& metric) {
    return ask(browser,
               "[...document.querySelectorAll('#metrics svg[data-metric=" + metric + "] text')].map((node) => node.textContent).join()")
        .get<std::string>();
  };
  EXPECT_EQ(titles("exact").find("logarithmic"), std::string::npos) << titles("exact");
  EXPECT_NE(titles("worst_error").find("worst_error (logarithmic)"), std::string::npos) << titles("worst_error");
  // Every exhibit is in the page, the last one is shown first.
  EXPECT_EQ(ask(browser, "document.querySelector('figure pre').textContent"), "made at 3");
  EXPECT_EQ(ask(browser, "document.querySelector('figcaption').textContent"), "lines, step 3");
  ask(browser, "document.querySelector('figcaption input').value = 0, document.querySelector('figcaption input').oninput(), 1");
  EXPECT_EQ(ask(browser, "document.querySelector('figure pre').textContent"), "made at 1");
  EXPECT_NE(ask(browser, "byId('subtitle').textContent").get<std::string>().find("still running"), std::string::npos);
  EXPECT_EQ(Json(browser.complaints()).dump(), "[]");
}

TEST_F(ReportPage, fits_every_screen) {
  Browser browser(scratch_);
  for (const testing::Screen& screen : testing::kScreens) {
    browser.resize(screen);
    browser.open(page());
    EXPECT_LE(ask(browser, "document.documentElement.scrollWidth").get<int>(), screen.width) << "the page is wider than the screen";
    // Letters of a chart keep their size, and none is outside of it.
    EXPECT_EQ(browser.evaluate("[...document.querySelectorAll('#loss text, #memory text, #metrics text')].filter((node) => {"
                               " const box = node.getBoundingClientRect(), chart = node.ownerSVGElement.getBoundingClientRect();"
                               " return box.height < 11 || box.left < chart.left - 1 || box.right > chart.right + 1; })"
                               ".map((node) => node.textContent)"),
              "[]")
        << screen.name();
    browser.capture(testing::pictureFile(scratch_, "report-" + screen.name() + ".png"), true);
    EXPECT_EQ(Json(browser.complaints()).dump(), "[]");
  }
}

}  // namespace
}  // namespace lockstep
