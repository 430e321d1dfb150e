// SPDX-License-Identifier: Apache-2.0
#include "console/options.h"

#include <gtest/gtest.h>

#include <limits>

#include "ir/support/nearest.h"

namespace lockstep::console {
namespace {

struct Parsed {
  std::string name, device = "auto";
  int64_t steps = 7;
  std::vector<std::string> binds, passes;
  bool json = false;
  Result<bool> result = true;
};
Parsed parse(const std::vector<std::string>& arguments) {
  Parsed parsed;
  Options options("lockstep train", "Trains.");
  options.argument(parsed.name, "NAME", "sample", false);
  options.value(parsed.device, "--device", "device");
  options.value(parsed.steps, "--steps", "steps");
  options.list(parsed.binds, "--bind", "bindings");
  options.commaList(parsed.passes, "--passes", "passes");
  options.flag(parsed.json, "--json", "json");
  parsed.result = options.parse(arguments);
  return parsed;
}

TEST(Options, values_lists_flags_and_arguments) {
  const Parsed parsed = parse({"--bind", "0=a,b", "sine", "--steps", "-3", "--bind=1=c", "--passes", "grad,fuse", "--json"});
  ASSERT_TRUE(parsed.result.ok()) << toString(parsed.result.diagnostics());
  EXPECT_EQ(parsed.name, "sine");
  EXPECT_EQ(parsed.steps, -3);
  EXPECT_EQ(parsed.binds, (std::vector<std::string>{"0=a,b", "1=c"}));
  EXPECT_EQ(parsed.passes, (std::vector<std::string>{"grad", "fuse"}));
  EXPECT_TRUE(parsed.json);
  EXPECT_EQ(parsed.device, "auto");
}

TEST(Options, wrong_values_are_named) {
  const auto message = [](const std::vector<std::string>& arguments) {
    const Parsed parsed = parse(arguments);
    return parsed.result.ok() ? std::string() : parsed.result.diagnostics().front().message;
  };
  EXPECT_EQ(message({"--steps"}), "--steps needs a value");
  EXPECT_EQ(message({"--steps", "3", "--steps", "4"}), "--steps is given more than once");
  EXPECT_EQ(message({"--steps", "many"}), "--steps cannot be 'many': it takes a number");
  EXPECT_EQ(message({"--steps", "1e3"}), "--steps cannot be '1e3': it takes a whole number of 64 bits");
  EXPECT_EQ(message({"--steps", "99999999999999999999"}), "--steps: 99999999999999999999 is beyond 64 bits");
}

TEST(Options, description_has_every_row_and_the_verb_does_nothing) {
  bool ran = false;
  const CommandDescription description = describe([&] {
    std::string name, output = "-";
    int64_t steps = 7;
    bool json = false;
    Options options("lockstep train", "Trains.");
    options.argument(name, "NAME", "sample");
    options.value(output, "-o,--output", "where to");
    options.value(steps, "--steps", "how many");
    options.flag(json, "--json", "for scripts");
    options.choices("NAME", {"sine", "kan"});
    ran = *options.parse(std::vector<std::string>{"sine"});
  });
  EXPECT_FALSE(ran);
  EXPECT_EQ(description.command, "lockstep train");
  ASSERT_EQ(description.rows.size(), 6u);
  const OptionRow &help = description.rows[0], &verbose = description.rows[1], &name = description.rows[2], &output = description.rows[3],
                  &steps = description.rows[4];
  EXPECT_EQ(verbose.names.back(), "--verbose");
  EXPECT_EQ(help.names.back(), "--help");
  EXPECT_TRUE(name.argument && name.required);
  EXPECT_EQ(name.choices, (std::vector<std::string>{"sine", "kan"}));
  EXPECT_EQ(output.names, (std::vector<std::string>{"-o", "--output"}));
  EXPECT_EQ(output.initial, "-");
  EXPECT_EQ(steps.value, "INT");
  EXPECT_EQ(steps.initial, "7");
  EXPECT_TRUE(description.rows[5].value.empty());
  EXPECT_TRUE(parse({"sine"}).result.ok() && *parse({"sine"}).result) << "options after a description are parsed again";
}

TEST(Options, unknown_option_is_answered_with_the_nearest) {
  const Parsed parsed = parse({"--stpes", "3"});
  ASSERT_FALSE(parsed.result.ok());
  const Diagnostic& diagnostic = parsed.result.diagnostics().front();
  EXPECT_EQ(diagnostic.code, "usage.option");
  EXPECT_EQ(diagnostic.remedy, "did you mean '--steps'?");
  EXPECT_EQ(parsed.result.failure().exit_code, ExitCode::Usage);
}

TEST(Options, wrong_values_are_usage_errors) {
  for (const std::vector<std::string>& arguments : {std::vector<std::string>{"--steps", "many"},
                                                    {"--steps"},
                                                    {"--steps", "1", "--steps", "2"},
                                                    {"sine", "addition"},
                                                    {"--steps", "9223372036854775808"},
                                                    {"--steps", "-9223372036854775809"}}) {
    const Parsed parsed = parse(arguments);
    ASSERT_FALSE(parsed.result.ok()) << arguments.front();
    EXPECT_TRUE(parsed.result.diagnostics().front().code.starts_with("usage."));
    EXPECT_EQ(parsed.result.failure().exit_code, ExitCode::Usage);
  }
}

TEST(Options, the_largest_numbers_are_taken) {
  EXPECT_EQ(parse({"--steps", "9223372036854775807"}).steps, std::numeric_limits<int64_t>::max());
  EXPECT_EQ(parse({"--steps", "-9223372036854775808"}).steps, std::numeric_limits<int64_t>::min());
}

TEST(Nearest, finds_what_was_meant) {
  const std::vector<std::string> names = {"sine", "addition", "planBuffers"};
  EXPECT_EQ(nearestName("sin", names), "sine");
  EXPECT_EQ(nearestName("additon", names), "addition");
  EXPECT_EQ(nearestName("planBufers", names), "planBuffers");
  EXPECT_EQ(nearestName("plan", names), "planBuffers");
  EXPECT_EQ(nearestName("zebra", names), "");
  EXPECT_EQ(suggest("zebra", names), "it is one of sine, addition, planBuffers");
  EXPECT_EQ(editDistance("ab", "ba"), 1u);
  EXPECT_EQ(editDistance("", "abc"), 3u);
}

}  // namespace
}  // namespace lockstep::console
