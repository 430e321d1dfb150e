// SPDX-License-Identifier: Apache-2.0
#include "experiment/report.h"

#include <algorithm>
#include <map>
#include <span>
#include <string_view>

#include "console/text_format.h"
#include "experiment/embedded.h"
#include "frontend/io/jsonl.h"

namespace lockstep::experiment {
namespace {

using io::Json;

std::string base64(std::span<const std::byte> bytes) {
  constexpr std::string_view kLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t word = 0;
    const size_t count = std::min<size_t>(3, bytes.size() - i);
    for (size_t k = 0; k < 3; ++k) word = word << 8 | (k < count ? std::to_integer<uint32_t>(bytes[i + k]) : 0);
    for (size_t k = 0; k < 4; ++k) text += k <= count ? kLetters[word >> (18 - 6 * k) & 63] : '=';
  }
  return text;
}

Json lossesOf(const std::vector<float>& losses) {
  Json json = Json::array();
  for (const float loss : losses) json.add(static_cast<double>(loss));
  return json;
}

Json reportsOf(const std::vector<History::Report>& reports) {
  Json json = Json::array();
  for (const History::Report& report : reports) {
    Json metrics = Json::object();
    for (const auto& [name, value] : report.metrics) metrics.add(name, value);
    Json each = Json::object().add("step", report.step).add("metrics", metrics).add("lr", report.lr);
    if (report.grad_norm) each.add("grad_norm", *report.grad_norm);
    json.add(each);
  }
  return json;
}

Json toJson(const StoredExhibit& exhibit) {
  Json json = Json::object().add("name", exhibit.name).add("step", exhibit.step);
  return exhibit.png.empty() ? json.add("text", exhibit.text) : json.add("image", base64(exhibit.png));
}

Json exhibitsOf(const std::vector<StoredExhibit>& exhibits) {
  std::map<std::string, std::vector<const StoredExhibit*>> by_name;
  for (const StoredExhibit& exhibit : exhibits) by_name[exhibit.name].push_back(&exhibit);
  Json json = Json::array();
  for (const auto& [name, all] : by_name) {
    const size_t shown = std::min(all.size(), kShownExhibits);
    for (size_t i = 0; i < shown; ++i) json.add(toJson(*all[shown == 1 ? 0 : i * (all.size() - 1) / (shown - 1)]));
  }
  return json;
}

Json modelOf(const ModelOutline& outline) {
  Json boxes = Json::array(), edges = Json::array();
  for (const ModelOutline::Box& box : outline.boxes) {
    boxes.add(Json::object().add("name", box.name).add("op", box.op).add("type", box.type).add("parameters", box.parameters));
  }
  for (const auto& [from, to] : outline.edges) edges.add(Json::array().add(uint64_t{from}).add(uint64_t{to}));
  return Json::object().add("boxes", boxes).add("edges", edges);
}

Json memoryOf(const std::vector<PlannedBuffer>& buffers) {
  Json json = Json::array();
  for (const PlannedBuffer& buffer : buffers) {
    json.add(Json::object()
                 .add("name", buffer.name)
                 .add("offset", buffer.offset)
                 .add("bytes", buffer.bytes)
                 .add("first", uint64_t{buffer.first_level})
                 .add("last", uint64_t{buffer.last_level}));
  }
  return json;
}

/// JSON that may stand inside a script element: no "<" can end it or begin a comment.
std::string embeddable(const std::string& json) {
  std::string text;
  for (const char c : json) {
    if (c == '<') {
      text += "\\u003c";
    } else {
      text += c;
    }
  }
  return text;
}

}  // namespace

std::string reportPage(const ReportData& data) {
  const ProgramFacts& facts = data.facts;
  Json settings = Json::object();
  for (const auto& [name, value] : data.settings) settings.add(name, value);
  Json json = Json::object()
                  .add("recipe", data.recipe)
                  .add("summary", data.summary)
                  .add("seed", std::to_string(data.seed))
                  .add("device", facts.device)
                  .add("device_name", facts.device_name)
                  .add("steps", static_cast<uint64_t>(data.history.losses.size()))
                  .add("step_text", data.step_seconds > 0 ? console::formatDuration(data.step_seconds) : "-")
                  .add("parameters", facts.parameters)
                  .add("dispatches", uint64_t{facts.dispatches})
                  .add("levels", uint64_t{facts.levels})
                  .add("planned_bytes", facts.planned_bytes)
                  .add("losses", lossesOf(data.history.losses))
                  .add("measurements", reportsOf(data.history.reports))
                  .add("exhibits", exhibitsOf(data.exhibits))
                  .add("model", modelOf(facts.outline))
                  .add("memory", memoryOf(facts.temporaries))
                  .add("settings", settings)
                  .add("running", data.running);
  if (!data.goal.empty()) json.add("goal", Json::object().add("text", data.goal).add("reached", data.goal_reached));
  std::string page(kReportPage);
  constexpr std::string_view kPlace = "@DATA@";
  return page.replace(page.find(kPlace), kPlace.size(), embeddable(json.text()));
}

}  // namespace lockstep::experiment
