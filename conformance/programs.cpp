// SPDX-License-Identifier: Apache-2.0
// Programs whose results were recorded: execution traces (one run each) and consensus programs (one run for each fill of the buffers).
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "backends/dispatch.h"
#include "backends/reference/reference.h"
#include "conformance/order_probe.h"
#include "conformance/recorded_bytes.h"
#include "conformance/recorded_number.h"
#include "conformance/suite.h"
#include "frontend/wgsl/wgsl.h"
#include "ir/kernel/isolate_entry.h"
#include "passes/kernel/make_robust.h"

namespace lockstep::conformance {
namespace {

/// One dispatch and what its buffers hold before and after it.
struct RecordedRun {
  std::string name;  ///< of the fill; may be empty
  std::vector<Bytes> before, after;
};

class ProgramRunner {
 public:
  /// `subgroup_lanes`: the size of the subgroups that the results were recorded with, when they may depend on it.
  explicit ProgramRunner(std::unique_ptr<Backend> backend, std::optional<uint32_t> subgroup_lanes = {})
      : backend_(std::move(backend)), subgroup_lanes_(subgroup_lanes) {}

  /// Reads, compiles and runs; the verdict and its reason go to `outcome`.
  void run(KernelDispatch dispatch, const std::string& text, const wgsl::ReadOptions& options, std::vector<RecordedRun> runs,
           Outcome& outcome) {
    Result<kernel::Module> module = wgsl::read(text, options);
    if (!module.ok()) {
      const bool unsupported = module.diagnostics().front().code == "wgsl.unsupported";
      return disagree(outcome, unsupported ? Verdict::Unsupported : Verdict::Disagree,
                      wgsl::renderDiagnostics(module.diagnostics(), text) + text);
    }
    Result<kernel::Module> entry = kernel::isolateEntry(*module, dispatch.entry);
    if (!entry.ok()) return disagree(outcome, Verdict::Disagree, toString(entry.diagnostics()) + text);
    dispatch.module = passes::makeRobust(std::move(*entry), kernel::OutOfBounds::Clamp);
    dispatch.entry.clear();
    const Result<program::ValidProgram> program = makeProgram(dispatch);
    if (!program.ok()) return disagree(outcome, Verdict::Disagree, toString(program.diagnostics()) + text);
    Result<PreparedDispatch> prepared = PreparedDispatch::make(*backend_, *program);
    if (!prepared.ok()) {
      const bool unsupported = prepared.diagnostics().front().code == "vulkan.feature";
      return disagree(outcome, unsupported ? Verdict::Unsupported : Verdict::Disagree, toString(prepared.diagnostics()) + text);
    }
    const bool other_subgroups = hasOtherSubgroups(dispatch.module);
    if (other_subgroups) {
      if (const Status status = runOnReference(*program, runs); !status.ok()) {
        return disagree(outcome, Verdict::Unsupported, toString(status.diagnostics()) + text);
      }
    }
    for (const RecordedRun& run : runs) {
      std::vector<Bytes> buffers = run.before;
      if (const Status status = prepared->run(buffers); !status.ok()) {
        return disagree(outcome, Verdict::Disagree, toString(status.diagnostics()) + text);
      }
      std::vector<WordDifference> differences = compareBuffers(run.after, buffers);
      if (!differences.empty() && showsOrder(dispatch.module)) {
        differences = unexplainedByOrder(*program, run.before, std::move(differences));
      }
      if (differences.empty()) continue;
      return disagree(outcome, other_subgroups ? Verdict::Unsupported : Verdict::Disagree,
                      fmt::format("{} {}\n{}", run.name, toString(differences.front()), text));
    }
  }

 private:
  static void disagree(Outcome& outcome, Verdict verdict, std::string why) {
    outcome.verdict = verdict;
    outcome.why = std::move(why);
  }
  /// A device with another size splits a workgroup in another way. The reference has the size that traces are recorded with; for another
  /// one it can tell what is right where the device takes invocations in the order of their indices. Where it need not, nobody can tell, so
  /// a test that gives something else is unsupported there.
  [[nodiscard]] bool hasOtherSubgroups(const kernel::Module& module) const {
    const DeviceInfo& device = backend_->device();
    return subgroup_lanes_ && std::ranges::count(module.capabilities, kernel::Capability::Subgroups) != 0 &&
           device.kind != DeviceKind::Reference && device.profile.subgroup_size != *subgroup_lanes_;
  }

  Status runOnReference(const program::ValidProgram& program, std::vector<RecordedRun>& runs) {
    const std::unique_ptr<Backend> reference = makeReference({.max_threads = 1, .subgroup_size = backend_->device().profile.subgroup_size});
    LS_TRY(PreparedDispatch prepared, PreparedDispatch::make(*reference, program));
    for (RecordedRun& run : runs) {
      run.after = run.before;
      LS_CHECK(prepared.run(run.after));
    }
    return Success{};
  }

  std::unique_ptr<Backend> backend_;
  std::optional<uint32_t> subgroup_lanes_;
};

Bytes decoded(const nlohmann::json& text, size_t size, const Bytes& before = {}) {
  std::optional<Bytes> bytes = decodeBytes(text.get<std::string>(), size, before);
  if (!bytes) throw nlohmann::json::type_error::create(302, "a buffer's content is not encoded as it should be", &text);
  return std::move(*bytes);
}

/// One to three numbers.
std::array<uint32_t, 3> groupsOf(const nlohmann::json& numbers) {
  std::array<uint32_t, 3> groups{1, 1, 1};
  if (numbers.empty() || numbers.size() > groups.size()) wrongLine("'wgs' has not one to three numbers");
  uint64_t left = kMostGroups;
  for (size_t i = 0; i < numbers.size(); ++i) {
    groups[i] = static_cast<uint32_t>(wholeNumber(numbers.at(i), "wgs", 0, left));
    left /= std::max(groups[i], 1u);
  }
  return groups;
}

uint32_t index(const nlohmann::json& value, std::string_view what) {
  return static_cast<uint32_t>(wholeNumber(value, what, 0, std::numeric_limits<uint32_t>::max()));
}

class TraceJudge : public Judge {
 public:
  explicit TraceJudge(std::unique_ptr<Backend> backend) : runner_(std::move(backend), 4) {}

  Outcome judge(const std::string& line) override {
    const nlohmann::json test = nlohmann::json::parse(line);
    Outcome outcome{
        .family = test.at("fam"), .test = fmt::format("{} {}", test.at("q").get<std::string>(), test.value("sub", "")), .why = {}};
    KernelDispatch dispatch;
    dispatch.entry = test.value("entry", "");
    dispatch.groups = groupsOf(test.at("wgs"));
    RecordedRun run;
    uint64_t left = kMostBufferBytes;
    for (const nlohmann::json& buffer : test.at("bufs")) {
      const uint64_t size = numberOf(buffer, "size", 0, left);
      left -= size;
      dispatch.buffer_sizes.push_back(size);
      run.before.push_back(decoded(buffer.at("in"), size));
      run.after.push_back(decoded(buffer.at("out"), size, run.before.back()));
    }
    for (const nlohmann::json& bind : test.at("binds")) {
      const uint64_t offset = numberOf(bind, "offset", 0, kMostBufferBytes);
      dispatch.bindings.push_back({.group = index(bind.at("group"), "group"),
                                   .binding = index(bind.at("binding"), "binding"),
                                   .buffer = index(bind.at("buf"), "buf"),
                                   .offset = offset,
                                   .size = numberOf(bind, "size", 0, kMostBufferBytes - offset)});
    }
    wgsl::ReadOptions options;
    const nlohmann::json& constants = test.at("constants");
    for (const auto& [name, value] : constants.items())
      options.overrides[name] = value.is_boolean() ? value.get<bool>() : value.get<double>();
    runner_.run(std::move(dispatch), test.at("wgsl"), options, {run}, outcome);
    return outcome;
  }

 private:
  ProgramRunner runner_;
};

/// What the buffer of a binding holds before the program runs.
Bytes fill(char kind, uint32_t binding, size_t size) {
  Bytes bytes(size);
  for (size_t i = 0; i < size / sizeof(uint32_t); ++i) {
    const uint32_t number = static_cast<uint32_t>(i) + 5 * binding;
    const float real = static_cast<float>(number % 13) * 0.5f + 0.25f;
    const uint32_t word = kind == 'Z' ? 0 : kind == 'I' ? number % 7 : std::bit_cast<uint32_t>(real);
    std::memcpy(bytes.data() + i * sizeof word, &word, sizeof word);
  }
  return bytes;
}

/// A program that needs values for overrides says in a line of its own with which ones it was run: "// flags: --overrides n=10,m=2".
std::map<std::string, double> overridesOf(const std::string& text) {
  constexpr std::string_view kOption = "--overrides ";
  std::map<std::string, double> values;
  const size_t line = text.find("// flags: ");
  if (line == std::string::npos) return values;
  const std::string flags = text.substr(line, text.find('\n', line) - line);
  size_t start = flags.find(kOption);
  if (start == std::string::npos) return values;
  start += kOption.size();
  const size_t end = std::min(flags.find(' ', start), flags.size());
  while (start < end) {
    const size_t equals = std::min(flags.find('=', start), end), comma = std::min(flags.find(',', start), end);
    if (equals < comma) values[flags.substr(start, equals - start)] = std::strtod(flags.c_str() + equals + 1, nullptr);
    start = comma + 1;
  }
  return values;
}

class ConsensusJudge : public Judge {
 public:
  explicit ConsensusJudge(std::unique_ptr<Backend> backend) : runner_(std::move(backend)) {}

  Outcome judge(const std::string& line) override {
    const nlohmann::json test = nlohmann::json::parse(line);
    const std::string name = test.at("f");
    Outcome outcome{.family = name.substr(0, name.find_last_of('/')), .test = name, .why = {}};
    const nlohmann::json &binds = test.at("binds"), &fills = test.at("out");
    // Every fill has its own buffers.
    const uint64_t buffers = std::max<uint64_t>(binds.size(), 1) * std::max<uint64_t>(fills.size(), 1);
    const uint64_t size = numberOf(test, "size", 0, kMostBufferBytes / buffers);
    KernelDispatch dispatch;
    dispatch.entry = test.at("en");
    for (const nlohmann::json& bind : binds) {
      dispatch.bindings.push_back({.group = index(bind.at(0), "binds"),
                                   .binding = index(bind.at(1), "binds"),
                                   .buffer = dispatch.bindings.size(),
                                   .offset = 0,
                                   .size = size});
      dispatch.buffer_sizes.push_back(size);
    }
    std::vector<RecordedRun> runs;
    for (const auto& [kind, results] : fills.items()) {
      if (kind.empty()) wrongLine("a fill has no name");
      RecordedRun run{.name = fmt::format("fill {},", kind), .before = {}, .after = {}};
      for (const BufferBinding& binding : dispatch.bindings) {
        run.before.push_back(fill(kind.front(), binding.binding, size));
        const auto result = results.find(fmt::format("{},{}", binding.group, binding.binding));
        run.after.push_back(result == results.end() ? run.before.back() : decoded(*result, size, run.before.back()));
      }
      runs.push_back(std::move(run));
    }
    const std::string text = test.at("wgsl");
    wgsl::ReadOptions options;
    options.overrides = overridesOf(text);
    runner_.run(std::move(dispatch), text, options, runs, outcome);
    return outcome;
  }

 private:
  ProgramRunner runner_;
};

template <class J>
Result<std::unique_ptr<Judge>> makeOnDevice(const Settings& settings) {
  LS_TRY(const ChosenDevice chosen, chooseDevice(settings.device));
  LS_TRY(std::unique_ptr<Backend> backend, openDevice(chosen.info));
  return std::unique_ptr<Judge>(std::make_unique<J>(std::move(backend)));
}

}  // namespace

Result<std::unique_ptr<Judge>> makeTraceJudge(const Settings& settings) { return makeOnDevice<TraceJudge>(settings); }
Result<std::unique_ptr<Judge>> makeConsensusJudge(const Settings& settings) { return makeOnDevice<ConsensusJudge>(settings); }

}  // namespace lockstep::conformance
