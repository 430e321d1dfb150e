// SPDX-License-Identifier: Apache-2.0
// Programs that WGSL accepts or rejects. A test of kind "module" is about the text alone; one of kind "pipeline" also gives values to
// overrides and asks for what an entry point reaches.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "conformance/suite.h"
#include "frontend/wgsl/wgsl.h"

namespace lockstep::conformance {
namespace {

std::vector<Diagnostic> problemsOf(const nlohmann::json& line, const std::string& text) {
  if (line.value("k", "module") != "pipeline") return wgsl::check(text);
  wgsl::ReadOptions options;
  const nlohmann::json constants = line.value("constants", nlohmann::json::object());
  for (const auto& [name, value] : constants.items()) {
    options.overrides[name] = value.is_boolean() ? value.get<bool>() : value.get<double>();
  }
  Result<kernel::Module> module = wgsl::read(text, options);
  if (!module.ok()) return module.diagnostics();
  // What is accepted must also be a kernel. That it is none is no way to reject a program.
  const Result<kernel::ValidModule> valid = kernel::validate(std::move(*module));
  return valid.ok() || !line.value("ok", true) ? std::vector<Diagnostic>() : valid.diagnostics();
}

class VerdictJudge : public Judge {
 public:
  Outcome judge(const std::string& text_line) override {
    const nlohmann::json line = nlohmann::json::parse(text_line);
    const bool corpus = !line.contains("q");
    const std::string test = line.at(corpus ? "f" : "q");
    Outcome outcome{.family = corpus ? test.substr(0, test.find('/')) : familyOf(test), .test = test, .why = {}};
    const std::string text = line.at(corpus ? "wgsl" : "code");
    const bool expected = line.value("ok", true);
    const std::vector<Diagnostic> problems = problemsOf(line, text);
    if (problems.empty() == expected) return outcome;
    outcome.test += " " + line.value("p", "");
    outcome.why = expected ? fmt::format("must be accepted, but: {}\n{}", wgsl::renderDiagnostics(problems, text), text)
                           : "must be rejected:\n" + text;
    const bool unsupported = std::ranges::any_of(problems, [](const Diagnostic& d) { return d.code == "wgsl.unsupported"; });
    outcome.verdict = unsupported ? Verdict::Unsupported : Verdict::Disagree;
    return outcome;
  }
};

}  // namespace

Result<std::unique_ptr<Judge>> makeVerdictJudge(const Settings&) { return std::unique_ptr<Judge>(std::make_unique<VerdictJudge>()); }

}  // namespace lockstep::conformance
