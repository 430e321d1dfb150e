// SPDX-License-Identifier: Apache-2.0
// Expression cases: a line names a list of cases (inputs and what the result must be) and has the modules that compute them. A module
// writes `n` results to binding 0; unless its inputs are constants in the text, it reads them from binding 1, in batches.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "backends/dispatch.h"
#include "conformance/gzip_lines.h"
#include "conformance/recorded_number.h"
#include "conformance/suite.h"
#include "conformance/values.h"
#include "frontend/wgsl/wgsl.h"

namespace lockstep::conformance {
namespace {

using nlohmann::json;

constexpr std::string_view kCaseFile = "cts_expr_cases.jsonl.gz";

/// The lists by their name. They stay text until they are used, since parsed they are many times as large.
using CaseLists = std::unordered_map<std::string, std::string>;

Result<std::shared_ptr<const CaseLists>> loadCaseLists(const std::filesystem::path& path) {
  LS_TRY(GzipLines lines, GzipLines::open(path, kMostListBytes));
  auto lists = std::make_shared<CaseLists>();
  constexpr std::string_view kName = "\"h\"";
  for (;;) {
    LS_TRY(std::optional<std::string> line, lines.next());
    if (!line) return std::shared_ptr<const CaseLists>(std::move(lists));
    const size_t name = line->find(kName);
    if (name == std::string::npos) return fail("conformance.line", fmt::format("a list of '{}' has no name", path.string()));
    const size_t begin = line->find('"', name + kName.size()) + 1;
    std::string key = line->substr(begin, line->find('"', begin) - begin);
    lists->emplace(std::move(key), std::move(*line));
  }
}

/// The judges of all threads share the lists.
Result<std::shared_ptr<const CaseLists>> sharedCaseLists(const std::filesystem::path& folder) {
  static std::mutex mutex;
  static std::filesystem::path loaded_from;
  static std::weak_ptr<const CaseLists> loaded;
  const std::lock_guard lock(mutex);
  if (auto lists = loaded.lock(); lists && loaded_from == folder) return lists;
  LS_TRY(std::shared_ptr<const CaseLists> lists, loadCaseLists(folder / kCaseFile));
  loaded_from = folder;
  loaded = lists;
  return lists;
}

/// Buffers are made of words; that matters for an odd number of f16.
uint64_t wholeWords(uint64_t bytes) { return (bytes + 3) / 4 * 4; }

struct Run {
  const json& line;
  const CaseList& list;
  uint32_t lanes = 1;                  ///< cases packed into the lanes of one result
  uint64_t in_stride = 0;              ///< bytes from the inputs of one result to those of the next; 0: they are constants in the text
  std::vector<uint64_t> in_offsets{};  ///< of each parameter
  uint64_t out_stride = 0;             ///< bytes from one result to the next
  uint64_t results = 0;                ///< of all cases
  [[nodiscard]] size_t caseOf(uint64_t result, uint32_t lane) const {
    return std::min<size_t>(result * lanes + lane, list.cases.size() - 1);
  }
  /// Bytes from a lane of a value to the next.
  [[nodiscard]] uint64_t laneStride(ValueType type) const {
    type.rows = lanes;
    return lanes == 1 ? 0 : elementStride(type);
  }
  /// Bytes from the first lane of a value to the end of the last.
  [[nodiscard]] uint64_t bytesOf(const ValueType& type) const { return (lanes - 1) * laneStride(type) + sizeOf(type); }
  [[nodiscard]] bool constant() const { return in_stride == 0; }
  /// Of so many results or their inputs; both fit into the limit.
  [[nodiscard]] uint64_t mostResults() const { return kMostBufferBytes / 2 / std::max(in_stride, out_stride); }
};

/// Every value lies within its stride, so that a buffer of `count` strides holds all of `count` results.
Run makeRun(const json& line, const CaseList& list) {
  if (list.cases.empty()) wrongLine("its list has no cases");
  Run run{.line = line, .list = list};
  run.lanes = static_cast<uint32_t>(numberOf(line, "vec", 1, 4));
  const auto isScalar = [](const ValueType& type) { return elementCount(type) == 0; };
  if (run.lanes > 1 && !(isScalar(list.result) && std::ranges::all_of(list.parameters, isScalar))) {
    wrongLine("only scalars can be packed into lanes ('vec')");
  }
  run.out_stride = numberOf(line, "outStride", run.bytesOf(list.result), kMostBufferBytes / 2);
  run.results = (list.cases.size() + run.lanes - 1) / run.lanes;
  if (line.at("src") == "const") return run;
  run.in_stride = numberOf(line, "inStride", 1, kMostBufferBytes / 2);
  for (size_t p = 0; p < list.parameters.size(); ++p) {
    const uint64_t bytes = run.bytesOf(list.parameters[p]);
    if (bytes > run.in_stride) wrongLine("'inStride' is smaller than a parameter");
    run.in_offsets.push_back(wholeNumber(line.at("inOff").at(p), "inOff", 0, run.in_stride - bytes));
  }
  return run;
}

Bytes inputsOf(const Run& run, uint64_t first, uint64_t count) {
  Bytes bytes(wholeWords(count * run.in_stride));
  for (size_t p = 0; p < run.list.parameters.size(); ++p) {
    const ValueType& type = run.list.parameters[p];
    for (uint64_t i = 0; i < count; ++i) {
      for (uint32_t lane = 0; lane < run.lanes; ++lane) {
        std::byte* to = bytes.data() + i * run.in_stride + run.in_offsets[p] + lane * run.laneStride(type);
        encode(run.list.cases[run.caseOf(first + i, lane)].inputs[p], type, to);
      }
    }
  }
  return bytes;
}

/// What differs among the results: the number of cases and the first one.
struct Differences {
  uint64_t count = 0;
  std::string first;
};

std::string describeInputs(const Run& run, const Case& one) {
  std::string text;
  for (size_t p = 0; p < one.inputs.size(); ++p) {
    const Expectation input{.kind = Expectation::Kind::Equal, .value = one.inputs[p]};
    text += (p == 0 ? "" : ", ") + describe(run.list.parameters[p], input);
  }
  return "(" + text + ")";
}

void compare(const Run& run, uint64_t first, uint64_t count, const Bytes& found, Differences& differences) {
  const ValueType& type = run.list.result;
  for (uint64_t i = 0; i < count; ++i) {
    for (uint32_t lane = 0; lane < run.lanes; ++lane) {
      const size_t index = run.caseOf(first + i, lane);
      const Case& one = run.list.cases[index];
      const std::byte* value = found.data() + i * run.out_stride + lane * run.laneStride(type);
      if (matches(one.expected, type, value) || differences.count++ > 0) continue;
      differences.first = fmt::format("case {}: of {} expected {}, found {}", index, describeInputs(run, one), describe(type, one.expected),
                                      describe(type, value));
    }
  }
}

class ExpressionJudge : public Judge {
 public:
  ExpressionJudge(std::shared_ptr<const CaseLists> lists, std::unique_ptr<Backend> backend)
      : lists_(std::move(lists)), backend_(std::move(backend)) {}

  Outcome judge(const std::string& text_line) override {
    const json line = json::parse(text_line);
    if (!line.contains("mods")) return {};  // its modules are in the file of the constants
    const std::string test = line.at("q");
    Outcome outcome{.family = familyOf(test), .test = test, .why = {}};
    useList(line.at("h"));
    const Run run = makeRun(line, list_);
    Differences differences;
    const Status status = run.constant() ? runConstants(run, differences) : runBatches(run, differences);
    if (!status.ok()) {
      outcome.verdict = isMissing(status.diagnostics().front().code) ? Verdict::Unsupported : Verdict::Disagree;
      outcome.why = wgsl::renderDiagnostics(status.diagnostics(), module_text_);
    } else if (differences.count > 0) {
      outcome.verdict = Verdict::Disagree;
      outcome.why = fmt::format("{} of {} cases; {}", differences.count, list_.cases.size(), differences.first);
    }
    return outcome;
  }

 private:
  /// What this compiler or the device does not have.
  static bool isMissing(std::string_view code) { return code == "wgsl.unsupported" || code == "vulkan.feature"; }

  void useList(const std::string& name) {
    if (name == list_name_) return;
    const auto text = lists_->find(name);
    if (text == lists_->end()) wrongLine(fmt::format("{} has no list '{}'", kCaseFile, name));
    list_ = parseCaseList(text->second);
    list_name_ = name;
  }

  Result<PreparedDispatch> prepare(const json& module, const Run& run, uint64_t count) {
    module_text_ = module.at("wgsl");
    LS_TRY(kernel::Module read, wgsl::read(module_text_));
    const uint64_t out_size = wholeWords(count * run.out_stride);
    KernelDispatch dispatch{.module = std::move(read), .entry = {}, .bindings = {}, .buffer_sizes = {out_size}};
    dispatch.bindings.push_back({.group = 0, .binding = 0, .buffer = 0, .offset = 0, .size = out_size});
    if (!run.constant()) {
      const uint64_t size = wholeWords(count * run.in_stride);
      dispatch.buffer_sizes.push_back(size);
      dispatch.bindings.push_back({.group = 0, .binding = 1, .buffer = 1, .offset = 0, .size = size});
    }
    LS_TRY(const program::ValidProgram program, makeProgram(dispatch));
    return PreparedDispatch::make(*backend_, program);
  }

  Status runConstants(const Run& run, Differences& differences) {
    for (const json& module : run.line.at("mods")) {
      const uint64_t count = numberOf(module, "n", 1, run.mostResults()), first = numberOf(module, "first", 0, run.results);
      LS_TRY(PreparedDispatch dispatch, prepare(module, run, count));
      std::vector<Bytes> buffers{Bytes(wholeWords(count * run.out_stride))};
      LS_CHECK(dispatch.run(buffers));
      compare(run, first, count, buffers[0], differences);
    }
    return Success{};
  }

  /// One module serves all batches of its size.
  Status runBatches(const Run& run, Differences& differences) {
    const uint64_t batch = numberOf(run.line, "batch", 1, std::numeric_limits<uint32_t>::max());
    for (const json& module : run.line.at("mods")) {
      const uint64_t count = numberOf(module, "n", 1, run.mostResults());
      LS_TRY(PreparedDispatch dispatch, prepare(module, run, count));
      for (uint64_t first = 0; first < run.results; first += batch) {
        if (std::min(batch, run.results - first) != count) continue;
        std::vector<Bytes> buffers{Bytes(wholeWords(count * run.out_stride)), inputsOf(run, first, count)};
        LS_CHECK(dispatch.run(buffers));
        compare(run, first, count, buffers[0], differences);
      }
    }
    return Success{};
  }

  std::shared_ptr<const CaseLists> lists_;
  std::unique_ptr<Backend> backend_;
  std::string list_name_;
  CaseList list_;
  std::string module_text_;
};

}  // namespace

Result<std::unique_ptr<Judge>> makeExpressionJudge(const Settings& settings) {
  LS_TRY(std::shared_ptr<const CaseLists> lists, sharedCaseLists(settings.folder));
  LS_TRY(const ChosenDevice device, chooseDevice(settings.device));
  LS_TRY(std::unique_ptr<Backend> backend, openDevice(device.info));
  return std::unique_ptr<Judge>(std::make_unique<ExpressionJudge>(std::move(lists), std::move(backend)));
}

}  // namespace lockstep::conformance
