// SPDX-License-Identifier: Apache-2.0
// Every block of code in README.md and docs/ is compiled or run by a test, or stands in the table below with the reason why not.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace lockstep {
namespace {

namespace fs = std::filesystem;

const fs::path kRoot = LOCKSTEP_SOURCE_DIR;

struct Block {
  std::string page;  ///< "docs/install.md"
  int line = 0;      ///< of the fence
  std::string language;
  std::vector<std::string> lines;
};

std::vector<Block> blocksOf(const std::string& page, std::istream& text) {
  std::vector<Block> blocks;
  bool inside = false;
  std::string line;
  for (int number = 1; std::getline(text, line); ++number) {
    if (line.starts_with("```")) {
      inside = !inside;
      if (inside) blocks.push_back({.page = page, .line = number, .language = line.substr(3), .lines = {}});
    } else if (inside) {
      blocks.back().lines.push_back(line);
    }
  }
  return blocks;
}

std::vector<Block> allBlocks() {
  std::vector<fs::path> files{kRoot / "README.md"};
  for (const auto& entry : fs::directory_iterator(kRoot / "docs")) {
    if (entry.path().extension() == ".md") files.push_back(entry.path());
  }
  std::vector<Block> blocks;
  for (const fs::path& file : files) {
    std::ifstream text(file);
    const std::vector<Block> some = blocksOf(fs::relative(file, kRoot).generic_string(), text);
    blocks.insert(blocks.end(), some.begin(), some.end());
  }
  return blocks;
}

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, ':');) parts.push_back(part);
  return parts;
}

bool contains(const std::vector<std::string>& list, const std::string& one) { return std::ranges::find(list, one) != list.end(); }

/// Blocks that are code, and that no test runs from the page.
struct Exempt {
  std::string_view page, language, first_line, reason;
};
constexpr std::array kExempt{
    Exempt{"README.md", "console", "./dev train      #", "installs packages; CI starts with ./dev test"},
    Exempt{"docs/first_model.md", "console", "LOCKSTEP_PRESET=release ./dev",
           "builds all of this again; tests/package/fresh_tree.sh runs it"},
    Exempt{"docs/install.md", "console", "LOCKSTEP_PRESET=release ./dev", "builds all of this again; tests/package/fresh_tree.sh runs it"},
    Exempt{"docs/install.md", "console", "lockstep new my_model", "needs an installed library; tests/package/fresh_tree.sh runs it"},
    Exempt{"docs/install.md", "console", "export PKG_CONFIG_PATH", "needs an installed library; tests/package/fresh_tree.sh runs it"},
    Exempt{"docs/install.md", "console", "lockstep manual | man", "needs an installed command; tests/package/fresh_tree.sh runs it"},
    Exempt{"docs/install.md", "cmake", "find_package(lockstep", "a part of a CMakeLists.txt; tests/package/consumer has it"},
    Exempt{"docs/install.md", "cmake", "add_subdirectory(", "a part of a CMakeLists.txt; tests/package/consumer has it"},
    Exempt{"docs/install.md", "cpp", "#include <lockstep/", "paths of an installed library; tests/package compiles these includes"},
    Exempt{"docs/language_models.md", "console", "lockstep generate MODEL", "needs a model; tests/llm/text_verbs_test makes one"},
    Exempt{"README.md", "console", "lockstep train tiny-llm", "trains for minutes; tests/llm/tiny_llm_test trains some steps"},
    Exempt{"docs/train_language_model.md", "console", "lockstep train tiny-llm",
           "trains for minutes; tests/llm/tiny_llm_test trains some steps"},
    Exempt{"docs/quantisation.md", "console", "lockstep eval MODEL", "needs a model; tests/llm/quantize_test makes one"},
    Exempt{"docs/quantisation.md", "console", "lockstep quantize MODEL", "needs a model; tests/llm/quantize_test makes one"},
    Exempt{"docs/tuning.md", "console", "lockstep tune ", "takes minutes, and leaves a table in the cache folder of who runs the tests"},
    Exempt{"docs/vulkan.md", "console", "sudo apt install mesa", "needs root and the network"},
    Exempt{"docs/vulkan.md", "console", "./dev packages browser", "needs chromium; tests/swiftshader runs on its driver where it is there"},
    Exempt{"docs/conformance.md", "text", "lockstep conformance DIR", "needs the recorded data, which is not part of the project"},
    Exempt{"docs/porting.md", "python", "", "PyTorch is none of our packages"},
};

bool matches(const Exempt& exempt, const Block& block) {
  return block.page == exempt.page && block.language == exempt.language && !block.lines.empty() &&
         block.lines.front().starts_with(exempt.first_line);
}

/// Empty, or what is wrong with a block.
std::string problemOf(const Block& block) {
  if (std::ranges::any_of(kExempt, [&](const Exempt& exempt) { return matches(exempt, block); })) return "";
  const bool names_a_file = block.language.find('.') != std::string::npos;  // of a dump; tour_test compares
  const bool is_quote = block.language == "cpp" || block.language == "wgsl" || names_a_file;
  if (is_quote && contains(split(LOCKSTEP_QUOTING_PAGES), block.page)) return "";
  if (block.language == "cpp") return contains(split(LOCKSTEP_CPP_PAGES), block.page) ? "" : "the page is not in cpp_pages";
  if (block.language == "sh") return contains(split(LOCKSTEP_SH_PAGES), block.page) ? "" : "the page is not in sh_pages";
  if (!block.language.empty() && block.language != "text" && block.language != "json" && block.language != "ebnf") {
    return fmt::format("no test looks at '{}' blocks", block.language);
  }
  for (const std::string& line : block.lines) {
    for (const std::string_view command : {"lockstep ", "./dev ", "cmake ", "sudo ", "apt ", "apt-get "}) {
      // The words of our own texts and messages: "lockstep.graph 1" does not match, as no space follows.
      if (line.starts_with(command)) return fmt::format("'{}' is a command; make the block one of sh", line);
    }
  }
  return "";
}

TEST(DocBlocks, are_compiled_or_run) {
  const std::vector<Block> blocks = allBlocks();
  EXPECT_GT(blocks.size(), 20u);
  for (const Block& block : blocks) {
    const std::string problem = problemOf(block);
    EXPECT_EQ(problem, "") << block.page << ":" << block.line;
  }
}

TEST(DocBlocks, reasons_are_for_blocks_that_exist) {
  const std::vector<Block> blocks = allBlocks();
  for (const Exempt& exempt : kExempt) {
    EXPECT_TRUE(std::ranges::any_of(blocks, [&](const Block& block) { return matches(exempt, block); }))
        << exempt.page << ": no " << exempt.language << " block begins with '" << exempt.first_line << "'";
  }
}

/// What a snippet needs stands in it, or the page says it once; the preamble of a page brings nothing else.
TEST(DocBlocks, snippets_say_what_they_include) {
  const auto textOf = [](const fs::path& path) {
    std::ifstream in(path);
    return std::string(std::istreambuf_iterator<char>(in), {});
  };
  size_t found = 0;
  for (const std::string& page : split(LOCKSTEP_CPP_PAGES)) {
    const std::string text = textOf(kRoot / page);
    EXPECT_NE(text.find("#include <lockstep/lockstep.h>"), std::string::npos) << page;
    std::istringstream preamble(textOf(kRoot / "tests/docs/preamble" / (fs::path(page).stem().string() + ".h")));
    for (std::string line; std::getline(preamble, line);) {
      if (!line.starts_with("#include ")) continue;
      ++found;
      EXPECT_NE(text.find(line), std::string::npos) << page << " does not say " << line;
    }
  }
  EXPECT_GT(found, 3u);
}

TEST(DocBlocks, broken_rules_are_noticed) {
  std::istringstream text("a\n```cpp\nint x;\n```\n```\nlockstep devices\n```\n```sh\nls\n```\n```rust\n```\n```\nlockstep.graph 1\n```\n");
  const std::vector<Block> blocks = blocksOf("docs/none.md", text);
  ASSERT_EQ(blocks.size(), 5u);
  EXPECT_EQ(blocks[1].line, 5);
  for (size_t i = 0; i < 4; ++i) EXPECT_NE(problemOf(blocks[i]), "") << i;
  EXPECT_EQ(problemOf(blocks[4]), "");
}

}  // namespace
}  // namespace lockstep
