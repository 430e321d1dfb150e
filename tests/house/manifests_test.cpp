// SPDX-License-Identifier: Apache-2.0
// What the build needs is said in four places: CMake's find_package(), packages.txt, vcpkg.json and conanfile.py. They agree.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>
#include <string>

namespace lockstep::house {
namespace {

namespace fs = std::filesystem;
const fs::path kRoot = LOCKSTEP_SOURCE_DIR;
using Names = std::set<std::string>;

/// One library, under each name that it has; empty where it is not listed. `cmake` is a package, or a file that is searched for.
struct Row {
  std::string debian, vcpkg, conan, cmake;
};
const std::vector<Row>& rows() {
  static const std::vector<Row> table = {
      {"libcli11-dev", "cli11", "cli11", "CLI11"},
      {"libfmt-dev", "fmt", "fmt", "fmt"},
      {"libpng-dev", "libpng", "libpng", "PNG"},
      {"nlohmann-json3-dev", "nlohmann-json", "nlohmann_json", "nlohmann_json"},
      {"libtbb-dev", "tbb", "onetbb", "TBB"},
      {"zlib1g-dev", "zlib", "zlib", "ZLIB"},
      {"libpcre2-dev", "pcre2", "pcre2", "pcre2.h"},
      {"libutf8proc-dev", "utf8proc", "utf8proc", "utf8proc.h"},
      {"glslang-dev", "glslang", "glslang", "glslang/SPIRV/SpvBuilder.h"},
      {"spirv-tools", "spirv-tools", "spirv-tools", "spirv-tools/libspirv.h"},
      {"libvulkan-volk-dev", "volk", "volk", "volk.c"},
      {"libvulkan-dev", "vulkan-headers", "vulkan-headers", ""},  // volk.h includes them
      {"libgtest-dev", "gtest", "", "GTest"},
      {"librapidcheck-dev", "rapidcheck", "", "rapidcheck"},
      {"libbenchmark-dev", "", "", "benchmark"},
      // Tools, and what tests run on.
      {"g++", "", "", ""},
      {"cmake", "", "", ""},
      {"ninja-build", "", "", ""},
      {"make", "", "", ""},  // what CMake takes in a folder of `lockstep new`
      {"pkg-config", "", "", ""},
      {"lld", "", "", ""},  // links the programs of the tests
      {"mesa-vulkan-drivers", "", "", ""},
      {"vulkan-validationlayers", "", "", ""},
  };
  return table;
}

Names column(std::string Row::* name) {
  Names names;
  for (const Row& row : rows())
    if (!(row.*name).empty()) names.insert(row.*name);
  return names;
}

std::string textOf(const fs::path& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// The first group of every match.
Names matches(const std::string& text, const char* pattern) {
  const std::regex wanted(pattern);
  Names found;
  for (std::sregex_iterator match(text.begin(), text.end(), wanted), end; match != end; ++match) found.insert((*match)[1]);
  return found;
}

TEST(Manifests, Debian_packages_are_those_of_the_table) {
  std::istringstream lines(textOf(kRoot / "packages.txt"));
  Names packages;
  bool in_build = false;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("[")) in_build = line == "[build]";
    if (in_build && !line.empty() && line[0] != '[' && line[0] != '#') packages.insert(line);
  }
  EXPECT_EQ(fmt::format("{}", packages), fmt::format("{}", column(&Row::debian)));
}

TEST(Manifests, vcpkg_dependencies_are_those_of_the_table) {
  const std::string text = textOf(kRoot / "vcpkg.json");
  Names found;
  for (const std::string& list : matches(text, R"re("dependencies": \[([^\]]*)\])re")) found.merge(matches(list, R"re("([^"]+)")re"));
  EXPECT_EQ(fmt::format("{}", found), fmt::format("{}", column(&Row::vcpkg)));
}

TEST(Manifests, Conan_requirements_are_those_of_the_table) {
  const Names found = matches(textOf(kRoot / "conanfile.py"), R"re(self\.requires\("([^/]+)/)re");
  EXPECT_EQ(fmt::format("{}", found), fmt::format("{}", column(&Row::conan)));
}

TEST(Manifests, CMake_finds_what_is_in_the_table) {
  Names found;
  for (auto entry = fs::recursive_directory_iterator(kRoot); entry != fs::recursive_directory_iterator(); ++entry) {
    const std::string name = entry->path().filename().string();
    // Build trees, .git, and what is written for programs outside.
    if (entry->is_directory() && (name == "build" || name == "package" || name.starts_with("."))) entry.disable_recursion_pending();
    if (name != "CMakeLists.txt" && !name.ends_with(".cmake")) continue;
    const std::string text = textOf(entry->path());
    found.merge(matches(text, R"(find_package\((\w+))"));
    found.merge(matches(text, R"(find_path\(\w+ ([\w./-]+))"));
  }
  // The compiler's own, and the modules of this repository that find two libraries each by their headers.
  for (const char* not_a_package : {"Threads", "SpirvBuilder", "UnicodeText"}) EXPECT_EQ(found.erase(not_a_package), 1u) << not_a_package;
  EXPECT_EQ(fmt::format("{}", found), fmt::format("{}", column(&Row::cmake)));
}

TEST(Manifests, versions_are_that_of_CMake) {
  const Names version = matches(textOf(kRoot / "CMakeLists.txt"), R"(project\(lockstep VERSION ([0-9.]+))");
  ASSERT_EQ(version.size(), 1u);
  EXPECT_EQ(matches(textOf(kRoot / "vcpkg.json"), R"re("version-semver": "([^"]+)")re"), version);
  EXPECT_EQ(matches(textOf(kRoot / "conanfile.py"), R"re(\n    version = "([^"]+)")re"), version);
}

}  // namespace
}  // namespace lockstep::house
