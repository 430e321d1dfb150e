// SPDX-License-Identifier: Apache-2.0
#include "tools/kernel/run_kernel.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "frontend/io/file.h"
#include "frontend/io/npy.h"
#include "tools/kernel/array_text.h"
#include "tools/kernel/findings_text.h"
#include "tools/kernel/kernel_file.h"
#include "tools/kernel/kernel_run.h"
#include "tools/kernel/kernel_values.h"
#include "tools/verb.h"

namespace lockstep::tools {
namespace {

/// "0.1=data.npy"
struct Assignment {
  Slot slot;
  std::string value;
};
Result<Assignment> parseAssignment(const std::string& option, const std::string& text) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos || equals + 1 == text.size()) {
    return usage("bind", fmt::format("{} '{}' has no value", option, text), fmt::format("write {} GROUP.BINDING=VALUE", option));
  }
  LS_TRY(const Slot slot, console::asUsage(parseSlot(text.substr(0, equals))));
  return Assignment{.slot = slot, .value = text.substr(equals + 1)};
}

io::Json tripleJson(const std::array<uint32_t, 3>& id) { return io::Json::array().add(id[0]).add(id[1]).add(id[2]); }

/// A number, true or false; a list of them for a vector.
io::Json printedJson(const PrintedValue& value) {
  io::Json lanes = io::Json::array();
  for (const double lane : value.lanes) {
    const io::Json one = value.scalar == kernel::Scalar::Bool ? io::Json(lane != 0) : io::Json(lane);
    if (value.lanes.size() == 1) return one;
    lanes.add(one);
  }
  return lanes;
}

io::Json printedJson(const Printed& printed) {
  io::Json lines = io::Json::array();
  for (const PrintedLine& line : printed.lines) {
    io::Json values = io::Json::array();
    for (const PrintedValue& value : line.values) values.add(printedJson(value));
    lines.add(io::Json::object()
                  .add("file", line.where.file)
                  .add("line", line.where.line)
                  .add("column", line.where.column)
                  .add("workgroup", tripleJson(line.workgroup))
                  .add("local", tripleJson(line.local))
                  .add("values", values));
  }
  return lines;
}

void printOutputs(const io::Json& list, const std::vector<double>& seconds = {}, const std::optional<Printed>& printed = {},
                  const std::optional<io::Json>& findings = {}) {
  io::Json object = io::Json::object().add("outputs", list);
  if (findings) object.add("findings", *findings);
  if (printed) object.add("printed", printedJson(*printed)).add("printed_left_out", printed->left_out);
  io::Json times = io::Json::array();
  for (const double time : seconds) times.add(time);
  fmt::print("{}\n", (seconds.empty() ? object : object.add("seconds", times)).text());
}

void printTimes(const KernelResult& result) {
  std::vector<double> sorted = result.seconds;
  std::ranges::sort(sorted);
  fmt::print("time: {:.3g} us (median of {}; {:.3g} to {:.3g}) on {}\n", sorted[sorted.size() / 2] * 1e6, sorted.size(),
             sorted.front() * 1e6, sorted.back() * 1e6, result.device);
}

Result<std::vector<Assignment>> parseAssignments(const std::string& option, const std::vector<std::string>& texts) {
  std::vector<Assignment> assignments;
  for (const std::string& text : texts) {
    LS_TRY(assignments.emplace_back(), parseAssignment(option, text));
  }
  return assignments;
}

/// What an index out of bounds does. The author of kernel IR wants to hear of it, so there it stays as it is written.
Result<std::optional<kernel::OutOfBounds>> policyOf(const KernelOptions& options) {
  if (options.out_of_bounds.empty())
    return options.path.ends_with(".wgsl") ? std::optional(KernelRun{}.out_of_bounds) : std::optional<kernel::OutOfBounds>();
  const std::optional<kernel::OutOfBounds> named = kernel::findOutOfBounds(options.out_of_bounds);
  if (!named) return usage("value", fmt::format("--out-of-bounds '{}' is not clamp, zero or trap", options.out_of_bounds));
  return named;
}

/// Reads the kernel. Loop bounds and sizes may depend on what is bound, so that is looked at too.
Result<kernel::Module> readKernel(const KernelOptions& options, const std::array<uint32_t, 3>& groups,
                                  const std::vector<Assignment>& bound) {
  LS_TRY(const auto overrides, parseOverrides(options.overrides));
  const auto contents = [&](const kernel::Module& module, const kernel::GlobalVariable& variable) {
    const auto bind = std::ranges::find(bound, Slot{.group = variable.group, .binding = variable.binding}, &Assignment::slot);
    const std::string value = !kernel::isBound(variable.space) ? options.immediate : bind == bound.end() ? std::string() : bind->value;
    // What is wrong with a value is said when it is bound.
    const Result<Bytes> bytes = value.empty() || value.starts_with("alias:") ? Bytes() : makeBytes(value, module, variable);
    return bytes.ok() ? *bytes : Bytes();
  };
  return readKernelFile(options.path, overrides, options.entry, groups, contents);
}

/// Makes the bytes of each binding.
Status bind(KernelRun& run, const std::string& path, const std::vector<Assignment>& bound) {
  for (const Assignment& assignment : bound) {
    const kernel::GlobalVariable* variable = findVariable(run.module, assignment.slot);
    if (variable == nullptr) {
      return fail("run.bind", fmt::format("'{}' has no variable at binding {}", path, toString(assignment.slot)), {},
                  "check @group and @binding");
    }
    if (assignment.value.starts_with("alias:")) {
      LS_TRY(const Slot other, parseSlot(assignment.value.substr(sizeof("alias:") - 1)));
      if (!run.aliases.emplace(assignment.slot, other).second || run.bytes.contains(assignment.slot))
        return usage("bind", fmt::format("binding {} is given twice", toString(assignment.slot)));
      continue;
    }
    if (assignment.value.starts_with("uninit:")) run.unwritten.insert(assignment.slot);
    LS_TRY(std::vector<std::byte> bytes, makeBytes(assignment.value, run.module, *variable));
    if (!run.bytes.emplace(assignment.slot, std::move(bytes)).second)
      return usage("bind", fmt::format("binding {} is given twice", toString(assignment.slot)));
  }
  return Success{};
}

/// Writes or prints one binding; with `list` it goes there.
Status show(const Assignment& out, const kernel::Module& module, const Bytes& bytes, io::Json* list) {
  const kernel::GlobalVariable& variable = *findVariable(module, out.slot);
  const io::Array array = toArray(bytes, module, variable);
  const bool shown = out.value == "-", plain = isPlainArray(module, variable);
  if (!shown) LS_CHECK(io::writeNpy(out.value, array));
  const std::string title = fmt::format("{} {}", toString(out.slot), variable.name);
  if (list != nullptr) {
    io::Json object = arrayJson(toString(out.slot), array, shown ? io::Json() : io::Json(out.value));
    list->add(plain ? object : object.add("value", valueJson(module, variable.type, bytes)));
  } else if (shown && plain) {
    printArray(title, array);
  } else if (shown) {
    fmt::print("{}: {}\n{}", title, module.types.toString(variable.type), valueLines(module, variable.type, bytes));
  }
  return Success{};
}

}  // namespace

Result<ExitCode> runKernelFile(const KernelOptions& options) {
  KernelRun run{.module = {},
                .entry = options.entry,
                .immediate = options.immediate,
                .device = options.device,
                .repeat = static_cast<size_t>(options.repeat)};
  LS_TRY(run.out_of_bounds, policyOf(options));
  if (!options.sanitize.empty()) {
    LS_TRY(const SanitizeChecks checks, console::asUsage(parseSanitizeChecks(options.sanitize == "all" ? "" : options.sanitize)));
    run.sanitize = SanitizeOptions{.checks = checks, .loop_budget = static_cast<uint64_t>(options.loop_budget)};
  }
  LS_TRY(run.groups, console::asUsage(parseGroups(options.dispatch)));
  LS_TRY(const std::vector<Assignment> bound, parseAssignments("--bind", options.binds));
  LS_TRY(run.module, readKernel(options, run.groups, bound));
  LS_CHECK(bind(run, options.path, bound));
  LS_TRY(const std::vector<Assignment> wanted, parseAssignments("--out", options.outs));
  for (const Assignment& out : wanted) {
    if (!run.bytes.contains(out.slot)) return usage("out", fmt::format("binding {} of --out has no --bind", toString(out.slot)));
  }

  const kernel::Module module = run.module;
  const bool prints = hasPrint(module);
  std::optional<Printed> printed;
  run.on_print = [&](Printed lines) {
    if (prints) printed = std::move(lines);
  };
  Result<KernelResult> ran = runKernel(std::move(run));
  // What a kernel printed before it failed is what one wants to see then.
  if (printed && (!options.json || !ran.ok())) fmt::print(stderr, "{}", toString(*printed));
  LS_TRY(KernelResult result, std::move(ran));
  if (const Result<std::string> text = io::readTextFile(options.path); text.ok() && !result.findings.empty()) {
    dropAllowed(result.findings, *text);
    addExcerpts(result.findings, options.path, *text);
  }
  if (prints && !printed) {
    fmt::print(stderr, "note: {} does not give back what print writes; --device reference does (docs/wgsl.md)\n", result.device);
  }
  io::Json list = io::Json::array();
  for (const Assignment& out : wanted) LS_CHECK(show(out, module, result.bytes.find(out.slot)->second, options.json ? &list : nullptr));
  const bool sanitized = !options.sanitize.empty();
  if (sanitized && !options.json) printFindings(result.findings);
  if (options.json) {
    printOutputs(list, result.seconds, printed, sanitized ? std::optional(findingsJson(result.findings)) : std::nullopt);
  } else if (!result.seconds.empty()) {
    printTimes(result);
  }
  return hasError(result.findings) ? ExitCode::NumericCheck : ExitCode::Ok;
}

}  // namespace lockstep::tools
