// SPDX-License-Identifier: Apache-2.0
#include "experiment/report.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

namespace lockstep::experiment {
namespace {

ReportData data() {
  ReportData data;
  data.recipe = "sine";
  data.summary = "a \"small\" network </script><!--";
  data.seed = UINT64_MAX;
  data.facts.device = "reference";
  data.facts.temporaries = {{.name = "h", .offset = 256, .bytes = 1024, .first_level = 0, .last_level = 1}};
  data.facts.outline.boxes = {{"x", "input", "f32[2]", 0}, {"l", "matmul", "f32[2]", 6}};
  data.facts.outline.edges = {{0, 1}};
  data.history.losses = {2, NAN, 0.5f};
  data.history.reports = {{.step = 3, .metrics = {{"exact", 0.25}}, .lr = 0.5, .grad_norm = 2, .seconds = 1}};
  data.exhibits = {{.step = 3, .name = "lines", .text = "a\nb"},
                   {.step = 3, .name = "dot", .png = *io::formatPng(io::Image(2, 2, {1, 2, 3}))}};
  data.settings = {{"optimizer", "adam"}};
  data.step_seconds = 0.001;
  data.goal = "loss at most 1";
  data.goal_reached = true;
  return data;
}

/// What lies between the tags, after "<" was written back.
nlohmann::json dataOf(const std::string& page) {
  const std::string open = "id=\"data\">";
  const size_t begin = page.find(open) + open.size();
  return nlohmann::json::parse(page.substr(begin, page.find("</script>", begin) - begin));
}

TEST(Report, page_holds_all_data_and_nothing_in_it_ends_the_script) {
  const std::string page = reportPage(data());
  EXPECT_TRUE(page.starts_with("<!doctype html>"));
  EXPECT_TRUE(page.ends_with("</html>\n"));
  const nlohmann::json json = dataOf(page);
  EXPECT_EQ(json["summary"], data().summary);
  EXPECT_EQ(json["seed"], "18446744073709551615");
  EXPECT_EQ(json["losses"].dump(), "[2,null,0.5]");
  EXPECT_EQ(json["measurements"][0]["metrics"]["exact"], 0.25);
  EXPECT_EQ(json["measurements"][0]["lr"], 0.5);
  EXPECT_EQ(json["measurements"][0]["grad_norm"], 2);
  EXPECT_EQ(json["exhibits"][1]["text"], "a\nb");
  EXPECT_EQ(json["running"], false);
  EXPECT_EQ(json["memory"][0]["offset"], 256);
  EXPECT_EQ(json["model"]["boxes"][1]["parameters"], 6);
  EXPECT_EQ(json["model"]["edges"].dump(), "[[0,1]]");
  EXPECT_EQ(json["settings"]["optimizer"], "adam");
  EXPECT_EQ(json["goal"]["reached"], true);
  EXPECT_EQ(json["step_text"], "1.0 ms");
}

TEST(Report, pictures_are_png_in_base64) {
  const std::string picture = dataOf(reportPage(data()))["exhibits"][0]["image"];
  EXPECT_TRUE(picture.starts_with("iVBORw0KGgo")) << picture;  // the first bytes of every PNG file
  EXPECT_EQ(picture.size() % 4, 0u);
}

TEST(Report, many_exhibits_are_thinned_between_the_first_and_the_last) {
  ReportData many = data();
  many.exhibits.clear();
  for (int64_t step = 1; step <= 200; ++step) many.exhibits.push_back({.step = step, .name = "lines", .text = "x"});
  many.exhibits.push_back({.step = 7, .name = "once", .text = "y"});
  const nlohmann::json exhibits = dataOf(reportPage(many))["exhibits"];
  ASSERT_EQ(exhibits.size(), kShownExhibits + 1);
  EXPECT_EQ(exhibits[0]["step"], 1);
  EXPECT_EQ(exhibits[kShownExhibits - 1]["step"], 200);
  EXPECT_EQ(exhibits[kShownExhibits]["name"], "once");
}

TEST(Report, needs_nothing_from_a_network) {
  const std::string page = reportPage(data());
  for (const char* part : {"http:", "https:", "src=\"", "<link", "@import"}) {
    const size_t found = page.find(part);
    // The namespace of SVG is a name, not an address.
    EXPECT_TRUE(found == std::string::npos || page.compare(found, 26, "http://www.w3.org/2000/svg") == 0) << page.substr(found, 60);
  }
}

TEST(Report, run_without_goal_losses_or_exhibits_has_a_page) {
  ReportData empty = data();
  empty.history = {};
  empty.exhibits.clear();
  empty.goal.clear();
  const nlohmann::json json = dataOf(reportPage(empty));
  EXPECT_FALSE(json.contains("goal"));
  EXPECT_EQ(json["losses"].dump(), "[]");
}

}  // namespace
}  // namespace lockstep::experiment
