// SPDX-License-Identifier: Apache-2.0
// What pages say of other files: links lead somewhere, docs/README.md lists every page, and a table equals the values that it shows.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>

#include "ir/program/profile.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

const fs::path kRoot = LOCKSTEP_SOURCE_DIR;

std::string textOf(const fs::path& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::vector<fs::path> pages() {
  std::vector<fs::path> files{kRoot / "README.md"};
  for (const auto& entry : fs::directory_iterator(kRoot / "docs")) {
    if (entry.path().extension() == ".md") files.push_back(entry.path());
  }
  return files;
}

/// Where "#..." may lead in a page: its headings as GitHub names them, and its <a id>.
std::set<std::string> anchorsOf(const std::string& text) {
  std::set<std::string> anchors;
  std::istringstream lines(text);
  bool code = false;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("```")) code = !code;
    const size_t start = line.find_first_not_of('#');
    if (code || start == 0 || start == std::string::npos || line[start] != ' ') continue;
    std::string anchor;
    for (const char c : line.substr(start + 1)) {
      if (std::isalnum(static_cast<unsigned char>(c)) != 0) anchor += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
      if (c == '_' || c == '-') anchor += c;
      if (c == ' ') anchor += '-';
    }
    anchors.insert(anchor);
  }
  static const std::regex kAnchor("<a id=\"([^\"]*)\"></a>");
  for (auto match = std::sregex_iterator(text.begin(), text.end(), kAnchor); match != std::sregex_iterator(); ++match) {
    anchors.insert((*match)[1]);
  }
  return anchors;
}

/// The targets of a page's links to files of this repository.
std::vector<std::string> linksOf(const std::string& text) {
  static const std::regex kLink(R"(\]\(([^)\s]+)\))");
  std::vector<std::string> links;
  std::istringstream lines(text);
  bool code = false;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("```")) code = !code;
    if (code) continue;
    for (auto match = std::sregex_iterator(line.begin(), line.end(), kLink); match != std::sregex_iterator(); ++match) {
      const std::string target = (*match)[1];
      if (target.find("://") == std::string::npos) links.push_back(target);
    }
  }
  return links;
}

/// Empty, or what is wrong with a link of a page.
std::string problemOf(const fs::path& page, const std::string& link) {
  const size_t hash = link.find('#');
  const fs::path target = hash == 0 ? page : page.parent_path() / link.substr(0, hash);
  if (!fs::exists(target)) return "there is no such file";
  if (hash == std::string::npos) return "";
  return anchorsOf(textOf(target)).contains(link.substr(hash + 1)) ? "" : "the page has no such heading";
}

TEST(DocLinks, lead_somewhere) {
  size_t count = 0;
  for (const fs::path& page : pages()) {
    for (const std::string& link : linksOf(textOf(page))) {
      EXPECT_EQ(problemOf(page, link), "") << page.lexically_relative(kRoot) << ": " << link;
      ++count;
    }
  }
  EXPECT_GT(count, 100u);
}

TEST(DocLinks, every_page_is_in_the_index) {
  const std::vector<std::string> links = linksOf(textOf(kRoot / "docs/README.md"));
  for (const fs::path& page : pages()) {
    const std::string name = page.filename().string();
    if (name == "README.md") continue;
    EXPECT_NE(std::ranges::find_if(links, [&](const std::string& link) { return link.substr(0, link.find('#')) == name; }), links.end())
        << "docs/README.md does not list " << name;
  }
}

TEST(DocLinks, broken_ones_are_noticed) {
  const fs::path page = kRoot / "docs/errors.md";
  EXPECT_EQ(linksOf("[a](b.md#c) [d](https://e)\n```\nf[1](x)\n```\n"), std::vector<std::string>{"b.md#c"});
  EXPECT_EQ(anchorsOf("## Coming from `a` (b_c)\n"), std::set<std::string>{"coming-from-a-b_c"});
  EXPECT_EQ(problemOf(page, "#devices"), "");
  EXPECT_EQ(problemOf(page, "errors.md#file.read"), "");
  EXPECT_NE(problemOf(page, "errors.md#file.red"), "");
  EXPECT_NE(problemOf(page, "no.md"), "");
}

/// "| `max_binding_bytes`, of one binding | 128 MiB | ... |": the cells of the row of a field, empty without one.
std::vector<std::string> rowOf(const std::string& page, const std::string& field) {
  std::istringstream lines(page);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("| `") || line.substr(0, line.find(" | ")).find("`" + field + "`") == std::string::npos) continue;
    std::vector<std::string> cells;
    for (size_t start = line.find(" | "); start != std::string::npos;) {
      const size_t end = line.find(" |", start + 3);
      if (end == std::string::npos) break;
      cells.push_back(line.substr(start + 3, end - start - 3));
      start = line.compare(end, 3, " | ") == 0 ? end : std::string::npos;
    }
    return cells;
  }
  return {};
}

/// As the text of a profile has it: "128 MiB" is 134217728, "yes" is true.
std::string plain(const std::string& cell) {
  static const std::regex kSize(R"((\d+) (KiB|MiB))");
  std::smatch match;
  if (std::regex_match(cell, match, kSize)) return std::to_string(std::stoull(match[1]) << (match[2] == "KiB" ? 10 : 20));
  return cell == "yes" ? "true" : cell == "no" ? "false" : cell;
}

TEST(DocTables, profiles_are_those_of_the_source) {
  const std::string page = textOf(kRoot / "docs/devices.md");
  const auto profiles = program::namedProfiles();
  size_t fields = 0;
  for (size_t i = 0; i < profiles.size(); ++i) {
    EXPECT_NE(page.find("`" + profiles[i].name + "`"), std::string::npos);
    std::istringstream lines(program::print(profiles[i]));
    static const std::regex kField(R"(  (\w+) = (\w+))");
    std::smatch match;
    for (std::string line; std::getline(lines, line);) {
      if (!std::regex_match(line, match, kField)) continue;
      ++fields;
      const std::vector<std::string> cells = rowOf(page, match[1]);
      ASSERT_EQ(cells.size(), profiles.size()) << match[1];
      EXPECT_EQ(plain(cells[i]), match[2]) << match[1] << " of " << profiles[i].name;
    }
  }
  EXPECT_EQ(fields, profiles.size() * 26);
}

}  // namespace
}  // namespace lockstep
