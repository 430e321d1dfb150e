// SPDX-License-Identifier: Apache-2.0
// Every source file keeps the rules, and each rule notices when it is broken.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/house/rules.h"

namespace lockstep::house {
namespace {

const std::filesystem::path kRoot = LOCKSTEP_SOURCE_DIR;

std::string join(const Violations& violations) {
  std::string text;
  for (const std::string& violation : violations) text += violation + "\n";
  return text;
}

template <class Check>
std::string checkAll(const Check& check) {
  Violations all;
  for (const SourceFile& file : readSources(kRoot)) {
    const Violations some = check(file);
    all.insert(all.end(), some.begin(), some.end());
  }
  return join(all);
}

TEST(IncludeRules, includes_point_down_the_house) {
  EXPECT_EQ(checkAll([](const SourceFile& file) { return checkDirection(file, kRoot); }), "");
}
TEST(IncludeRules, libraries_stay_where_they_belong) { EXPECT_EQ(checkAll(checkLibraries), ""); }

TEST(IncludeRules, sources_are_found) {
  const std::vector<SourceFile> files = readSources(kRoot);
  EXPECT_GT(files.size(), 50u);
  EXPECT_TRUE(std::ranges::any_of(files, [](const SourceFile& file) { return file.path == "ir/kernel/module.h"; }));
}

struct Broken {
  const char* name;
  const char* path;
  const char* text;
};
void PrintTo(const Broken& broken, std::ostream* out) { *out << broken.name; }

class BrokenDirection : public ::testing::TestWithParam<Broken> {};
TEST_P(BrokenDirection, is_noticed) { EXPECT_EQ(checkDirection({.path = GetParam().path, .text = GetParam().text}, kRoot).size(), 1u); }
INSTANTIATE_TEST_SUITE_P(All, BrokenDirection,
                         ::testing::Values(Broken{"passes_include_frontend", "passes/a.cpp", "#include \"frontend/io/array.h\"\n"},
                                           Broken{"passes_include_backends", "passes/a.cpp", "#include \"backends/backend.h\"\n"},
                                           Broken{"ir_includes_passes", "ir/graph/a.h", "#include \"passes/graph/grad.h\"\n"},
                                           Broken{"ir_includes_backends", "ir/program/a.h", "#include \"backends/backend.h\"\n"},
                                           Broken{"ir_includes_frontend", "ir/ops/a.cpp", "  #  include \"frontend/trace/tensor.h\"\n"},
                                           Broken{"kernel_includes_graph", "ir/kernel/a.h", "#include \"ir/graph/graph.h\"\n"},
                                           Broken{"support_includes_kernel", "ir/support/a.h", "#include \"ir/kernel/module.h\"\n"},
                                           Broken{"wgsl_includes_graph", "frontend/wgsl/a.h", "#include \"ir/graph/graph.h\"\n"},
                                           Broken{"backend_includes_other", "backends/reference/a.h",
                                                  "#include \"backends/vulkan/device.h\"\n"},
                                           Broken{"backend_includes_passes", "backends/vulkan/a.h", "#include \"passes/graph/grad.h\"\n"},
                                           Broken{"frontend_includes_vulkan", "frontend/a.h", "#include \"backends/vulkan/device.h\"\n"},
                                           Broken{"tools_include_reference", "tools/a.cpp", "#include \"backends/reference/machine.h\"\n"},
                                           Broken{"relative_path", "passes/a.cpp", "#include \"grad.h\"\n"},
                                           Broken{"missing_file", "passes/a.cpp", "#include \"ir/graph/no_such_file.h\"\n"},
                                           Broken{"angle_brackets", "passes/a.cpp", "#include <ir/graph/graph.h>\n"},
                                           Broken{"unknown_folder", "attic/a.cpp", "\n"}),
                         [](const auto& info) { return std::string(info.param.name); });

class BrokenLibrary : public ::testing::TestWithParam<Broken> {};
TEST_P(BrokenLibrary, is_noticed) { EXPECT_EQ(checkLibraries({.path = GetParam().path, .text = GetParam().text}).size(), 1u); }
INSTANTIATE_TEST_SUITE_P(All, BrokenLibrary,
                         ::testing::Values(Broken{"json_in_header", "frontend/io/a.h", "#include <nlohmann/json.hpp>\n"},
                                           Broken{"json_in_ir", "ir/graph/a.cpp", "#include <nlohmann/json.hpp>\n"},
                                           Broken{"vulkan_in_passes", "passes/a.cpp", "#include <vulkan/vulkan.h>\n"},
                                           Broken{"vulkan_in_contract", "backends/backend.h", "#include <vulkan/vulkan_core.h>\n"},
                                           Broken{"volk_in_tools", "tools/a.cpp", "#include <volk.h>\n"},
                                           Broken{"tbb_in_frontend", "frontend/a.cpp", "#include <tbb/parallel_for.h>\n"},
                                           Broken{"glslang_in_wgsl", "frontend/wgsl/a.cpp", "#include <glslang/SPIRV/SpvBuilder.h>\n"},
                                           Broken{"png_in_header", "frontend/io/png.h", "#include <png.h>\n"},
                                           Broken{"zlib_in_tools", "tools/a.cpp", "#include <zlib.h>\n"},
                                           Broken{"options_in_frontend", "frontend/a.cpp", "#include <CLI/CLI.hpp>\n"}),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(IncludeRules, private_headers_of_a_backend_may_use_its_library) {
  EXPECT_EQ(join(checkLibraries({.path = "backends/vulkan/api.h", .text = "#include <volk.h>\n"})), "");
}

}  // namespace
}  // namespace lockstep::house
