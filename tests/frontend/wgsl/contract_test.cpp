// SPDX-License-Identifier: Apache-2.0
// Contracts in comments: what they may say, what is wrong with them, and when they hold.
#include "frontend/wgsl/contract.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "frontend/wgsl/reflect.h"

namespace lockstep::wgsl {
namespace {

const std::string kModule =
    "struct P { n: u32, at: vec2i }\n"
    "const block = 64; override tile: u32 = 8; override open: u32;\n"
    "@group(0) @binding(0) var<storage> x: array<f32>;\n"
    "@group(0) @binding(1) var<storage, read_write> y: array<f32, 16>;\n"
    "@group(0) @binding(2) var<uniform> p: P;\n"
    "var<private> own: u32;\n";
const std::string kEntry = "@compute @workgroup_size(4, 2) fn main() { y[0] = x[0] + f32(p.n + own); }\n";

std::string textWith(const std::string& contract) { return fmt::format("{}// lockstep: {}\n{}", kModule, contract, kEntry); }

Result<Reflection> reflectWith(const std::string& contract) {
  return reflect(textWith(contract), {.file_name = "k.wgsl", .overrides = {}});
}

/// The message and values of a contract that is not kept; "holds".
std::string verdict(const std::string& contract, const std::map<std::string, int64_t>& values = {}) {
  const Result<Reflection> reflection = reflectWith(contract);
  if (!reflection.ok()) return toString(reflection.diagnostics());
  EXPECT_EQ(reflection->contracts.size(), 1u) << contract;
  const ContractValues known = [&](const ContractPart& part) -> std::optional<int64_t> {
    const std::string name = part.text.empty() ? fmt::format("workgroups.{}", "xyz"[part.axis]) : part.text;
    const auto found = values.find(name);
    return found == values.end() ? std::nullopt : std::optional(found->second);
  };
  const std::optional<BrokenContract> broken = findBroken(reflection->contracts[0], known);
  return broken ? fmt::format("{} ({})", broken->message, broken->values) : "holds";
}

TEST(Contract, conditions_compute_whole_numbers) {
  const std::map<std::string, int64_t> values{{"length(x)", 100}, {"p.n", 7}, {"p.at.y", -3}, {"size(x)", 400}, {"workgroups.x", 2}};
  for (const char* condition : {"length(x) == 100", "length(x)/p.n == 14 && length(x) % p.n == 2", "ceil_div(length(x), p.n) == 15",
                                "ceil_div(p.at.y, 2) == 0 - 1", "min(p.n, 3u) + max(p.n, 3i) == 10", "size(x) == 4 * length(x)",
                                "(1 + 2) * 3 - 4 - 5 == 0", "p.n <= 7 && p.n >= 7 && p.n < 8 && p.n > 6 && p.n != 8", "block == 64",
                                "tile * 2 == 16", "workgroups.x * block >= length(x)", "(length(x) == 100) && (p.n == 7)"}) {
    EXPECT_EQ(verdict(std::string("require(") + condition + ")", values), "holds");
  }
  EXPECT_EQ(verdict("require(length(x) >= 2 * p.n * tile)", values),
            "the kernel requires length(x) >= 2 * p.n * tile (length(x) = 100, p.n = 7)");
  EXPECT_EQ(verdict("require(p.n / (p.n - 7) == 1)", values), "p.n / (p.n - 7) divides by zero (p.n = 7)");
  EXPECT_EQ(verdict("require(p.n * 9223372036854775807 > 0)", values), "p.n * 9223372036854775807 is too large a number (p.n = 7)");
  // What is not known breaks nothing, but one side of && is enough.
  EXPECT_EQ(verdict("require(length(y) == 1)", values), "holds");
  EXPECT_EQ(verdict("require(open == 1)", values), "holds");
  EXPECT_EQ(verdict("require(length(y) == 1 && p.n == 8)", values), "the kernel requires length(y) == 1 && p.n == 8 (p.n = 7)");
}

TEST(Contract, dispatches_name_the_axis) {
  std::map<std::string, int64_t> values{{"length(x)", 100}, {"workgroups.x", 2}, {"workgroups.y", 1}, {"workgroups.z", 1}};
  EXPECT_EQ(verdict("dispatch(ceil_div(length(x), block))", values), "holds");
  EXPECT_EQ(verdict("dispatch(2, 1, 1)", values), "holds");
  EXPECT_EQ(verdict("dispatch(2, 3)", values), "1 workgroup in y is dispatched, and the kernel asks for 3 ()");
  values["workgroups.x"] = 7;
  EXPECT_EQ(verdict("dispatch(ceil_div(length(x), block))", values),
            "7 workgroups in x are dispatched, and the kernel asks for ceil_div(length(x), block) = 2 (length(x) = 100)");
}

TEST(Contract, mistakes_are_named_at_their_place) {
  struct Case {
    const char* contract;
    const char* error;
  };
  for (const Case& one : {
           Case{"dispatch(", "k.wgsl:7:23: error: wgsl.contract: expected a number, a variable or a function in the contract"},
           Case{"dispatch(1, 2, 3, 4)", "k.wgsl:7:30: error: wgsl.contract: expected ')' in the contract"},
           Case{"dispatch(1 == 1)", "k.wgsl:7:23: error: wgsl.contract: a number of workgroups is no condition"},
           Case{"dispatch(own)", "k.wgsl:7:23: error: wgsl.contract: 'own' is no variable that a host binds"},
           Case{"dispatch(length(w))", "k.wgsl:7:30: error: wgsl.contract: 'w' is no variable that a host binds"},
           Case{"dispatch(0x)", "k.wgsl:7:23: error: wgsl.contract: '0x' is no whole number"},
           Case{"dispatch(1.5)", "k.wgsl:7:24: error: wgsl.contract: expected ')' in the contract"},
           Case{"require(1)", "k.wgsl:7:22: error: wgsl.contract: require takes a condition such as length(y) == length(x)"},
           Case{"require(1 == 1 + (2 == 2))", "k.wgsl:7:27: error: wgsl.contract: '+' takes numbers, not conditions"},
           Case{"require(1 && 2)", "k.wgsl:7:22: error: wgsl.contract: '&&' joins conditions"},
           Case{"require(sqrt(4) == 2)", "k.wgsl:7:22: error: wgsl.contract: there is no function 'sqrt' in contracts"},
           Case{"require(workgroups.w == 2)", "k.wgsl:7:22: error: wgsl.contract: 'workgroups' has x, y and z"},
           Case{"requires(1 == 1)",
                "k.wgsl:7:14: error: wgsl.contract: there is no 'requires' for a host\n  help: did you mean 'require'?"},
       }) {
    const Result<Reflection> reflection = reflectWith(one.contract);
    ASSERT_FALSE(reflection.ok()) << one.contract;
    EXPECT_TRUE(toString(reflection.diagnostics()).starts_with(one.error)) << toString(reflection.diagnostics());
    EXPECT_FALSE(check(textWith(one.contract), {.file_name = "k.wgsl", .overrides = {}}).empty());
  }
  const std::string deep = std::string(1000, '(') + "1" + std::string(1000, ')');
  EXPECT_NE(toString(reflectWith("dispatch(" + deep + ")").diagnostics()).find("nests too deep"), std::string::npos);
}

TEST(Contract, other_comments_are_left_alone) {
  for (const char* comment : {"// lockstep: allow(race.storage)", "// lockstep: see the docs", "// of lockstep: require(",
                              "/* lockstep: require(1) */", "// lockstep is require(1)"}) {
    const Result<Reflection> reflection = reflect(fmt::format("{}{}\n{}", kModule, comment, kEntry));
    ASSERT_TRUE(reflection.ok()) << toString(reflection.diagnostics());
    EXPECT_TRUE(reflection->contracts.empty()) << comment;
  }
}

TEST(Contract, belongs_to_the_entry_point_after_it) {
  const std::string text = "// lockstep: dispatch(1)\n@compute @workgroup_size(1) fn first() {}\n//lockstep:dispatch(2)\nfn helper() {}\n" +
                           std::string("@compute @workgroup_size(1) fn second() {\n  // lockstep: dispatch(3)\n}\n");
  const Reflection reflection = reflect(text).orThrow();
  ASSERT_EQ(reflection.contracts.size(), 3u);
  EXPECT_EQ(reflection.contracts[0].entry, "first");
  EXPECT_EQ(reflection.contracts[1].entry, "second");
  EXPECT_EQ(reflection.contracts[2].entry, "second");
  EXPECT_EQ(reflection.contracts[1].where.line, 3u);
}

TEST(Contract, anything_is_answered) {
  std::mt19937 random(20260101);
  constexpr std::string_view kTokens[] = {"(",        ")",        "length",      "size", "x", "p.n",  ".",
                                          ",",        "*",        "/",           "%",    "-", "+",    "<=",
                                          "==",       "&&",       "=",           "&",    "1", "0",    "9223372036854775807",
                                          "ceil_div", "min(",     "workgroups.", "y",    " ", "\xff", "é",
                                          "//",       "lockstep:"};
  size_t good = 0;
  for (int i = 0; i < 4000; ++i) {
    std::string contract =
        i % 2 == 0 ? "require(length(y) * 2 == length(x) && p.n <= 4)" : "dispatch(ceil_div(length(x), block), p.at.x, 1)";
    for (int k = 0; k < i % 4; ++k) {
      const size_t at = random() % contract.size();
      contract.replace(at, random() % 4, kTokens[random() % std::size(kTokens)]);
    }
    const std::string text = textWith(contract);
    const Result<Reflection> reflection = reflect(text);
    EXPECT_EQ(reflection.ok(), check(text).empty()) << contract;
    if (!reflection.ok()) continue;
    ++good;
    for (const Contract& one : reflection->contracts) {
      (void)findBroken(one, [&](const ContractPart&) { return std::optional<int64_t>(static_cast<int64_t>(random()) - INT32_MAX); });
    }
  }
  EXPECT_GT(good, 1000u);
}

TEST(Contract, check_finds_what_no_host_can_keep) {
  const auto first = [](const std::string& contract) {
    const std::vector<Diagnostic> diagnostics =
        check("@group(0) @binding(1) var<storage, read_write> y: array<f32, 16>;\n// lockstep: " + contract +
              "\n@compute @workgroup_size(4, 2) fn main() { y[0] = 1; }\n");
    return diagnostics.empty() ? "" : diagnostics[0].code + ": " + diagnostics[0].message + " | " + diagnostics[0].remedy;
  };
  EXPECT_EQ(first("require(length(y) == 16 && workgroup_size.y == 2)"), "");
  EXPECT_EQ(first("require(workgroups.x > 5)"), "");
  EXPECT_EQ(
      first("require(length(y) < workgroup_size.x)"),
      "wgsl.contract: no host can keep this: the kernel requires length(y) < workgroup_size.x | length(y) = 16, workgroup_size.x = 4");
}

}  // namespace
}  // namespace lockstep::wgsl
