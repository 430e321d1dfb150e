// SPDX-License-Identifier: Apache-2.0
#include "tools/kernel/run_kernel.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>

#include "console/findings_text.h"
#include "frontend/io/file.h"
#include "frontend/io/npy.h"
#include "passes/kernel/restrict_print.h"
#include "tools/kernel/array_text.h"
#include "tools/kernel/host_checks.h"
#include "tools/kernel/kernel_file.h"
#include "tools/kernel/kernel_run.h"
#include "tools/kernel/kernel_values.h"
#include "tools/kernel/rounding_text.h"
#include "tools/kernel/run_compare.h"
#include "tools/kernel/why_text.h"
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

/// A number, true or false; a list of them for a vector; lists and objects for what has parts.
io::Json printedJson(const PrintedValue& value) {
  if (value.lanes.empty()) {
    io::Json parts = value.isStruct() ? io::Json::object() : io::Json::array();
    for (const PrintedValue& part : value.parts) value.isStruct() ? parts.add(part.name, printedJson(part)) : parts.add(printedJson(part));
    return parts;
  }
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
    io::Json values = io::Json::array(), names = io::Json::array();
    for (const PrintedValue& value : line.values) values.add(printedJson(value)), names.add(value.name);
    lines.add(io::Json::object()
                  .add("file", line.where.file)
                  .add("line", line.where.line)
                  .add("column", line.where.column)
                  .add("workgroup", tripleJson(line.workgroup))
                  .add("local", tripleJson(line.local))
                  .add("text", line.text)
                  .add("names", names)
                  .add("values", values));
  }
  return lines;
}

io::Json timesJson(const std::vector<double>& seconds) {
  io::Json times = io::Json::array();
  for (const double time : seconds) times.add(time);
  return times;
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

/// "5", "0..3", "0..3,2": of global_invocation_id, axis by axis; what is left out may be anything.
Result<passes::InvocationRange> parseInvocations(const std::string& text) {
  passes::InvocationRange range;
  const auto number = [](std::string_view digits, uint32_t& value) {
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    return error == std::errc() && end == digits.data() + digits.size();
  };
  std::string_view rest = text;
  size_t axis = 0;
  bool good = true, more = true;
  for (; good && more; ++axis) {
    const size_t comma = rest.find(',');
    const std::string_view part = rest.substr(0, comma);
    const size_t dots = part.find("..");
    more = comma != std::string_view::npos;
    rest.remove_prefix(more ? comma + 1 : rest.size());
    good = axis < 3 && number(part.substr(0, dots), range.first[axis]);
    if (good && dots == std::string_view::npos) range.last[axis] = range.first[axis];
    if (good && dots != std::string_view::npos)
      good = number(part.substr(dots + 2), range.last[axis]) && range.first[axis] <= range.last[axis];
  }
  if (good) return range;
  return usage("value", fmt::format("--print-from '{}' names no invocations", text),
               "write X, X,Y or X,Y,Z of global_invocation_id, each a number or a range such as 0..3");
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
    if (run.aliases.contains(assignment.slot) || !run.bytes.emplace(assignment.slot, std::move(bytes)).second)
      return usage("bind", fmt::format("binding {} is given twice", toString(assignment.slot)));
  }
  return Success{};
}

Result<std::vector<Finding>> findMistakes(const KernelOptions& options, const KernelRun& run, const std::vector<Assignment>& bound) {
  std::map<Slot, std::string> files;
  for (const Assignment& one : bound) {
    if (one.value.ends_with(".npy")) files.emplace(one.slot, one.value);
  }
  LS_TRY(const auto overrides, parseOverrides(options.overrides));
  return findHostMistakes(options.path, overrides, run, files);
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

/// What makes no sense beside `--devices`, which prints a verdict and no arrays.
Status checkDevicesAlone(const KernelOptions& options) {
  const std::pair<std::string_view, bool> others[] = {
      {"--device", options.device != "auto"},
      {"--out", !options.outs.empty()},
      {"--expect", !options.expects.empty()},
      {"--within", !options.withins.empty()},
      {"--sanitize", !options.sanitize.empty() && options.schedules == 0},
      {"--schedules", options.schedules > 0},
      {"--why", !options.why.empty()},
      {"--print-from", !options.print_from.empty()},
      {"--repeat", options.repeat > 0},
  };
  std::vector<std::string_view> given;
  for (const auto& [name, is_given] : others) {
    if (is_given) given.push_back(name);
  }
  if (given.empty()) return Success{};
  return usage("devices", fmt::format("--devices does not go with {}", fmt::join(given, ", ")), "leave out one or the other");
}

/// `--devices`: no arrays, a verdict.
Result<ExitCode> runOnDevices(const KernelOptions& options, const KernelRun& run) {
  LS_TRY(DeviceComparison comparison,
         compareDevices(run, options.devices, static_cast<size_t>(options.runs), {.rtol = options.rtol, .atol = options.atol}));
  if (const Result<std::string> text = io::readTextFile(options.path); text.ok()) addExcerpts(comparison.findings, options.path, *text);
  if (options.json) {
    fmt::print("{}\n", toJson(comparison).text());
  } else {
    fmt::print("{}", toText(comparison));
    if (!comparison.findings.empty()) console::printFindings(comparison.findings);
  }
  const bool fine = comparison.verdict == Verdict::Equal || comparison.verdict == Verdict::Rounding;
  return fine ? ExitCode::Ok : ExitCode::NumericCheck;
}

}  // namespace

Result<ExitCode> runKernelFile(const KernelOptions& options) {
  if (!options.devices.empty()) LS_CHECK(checkDevicesAlone(options));
  KernelRun run{.module = {},
                .entry = options.entry,
                .immediate = options.immediate,
                .device = options.device,
                .repeat = static_cast<size_t>(options.repeat)};
  LS_TRY(run.out_of_bounds, policyOf(options));
  if (!options.sanitize.empty()) {
    LS_TRY(const SanitizeChecks checks, console::asUsage(parseSanitizeChecks(options.sanitize, true)));
    run.schedules = options.schedules;
    run.schedule_seed = static_cast<uint64_t>(options.schedule_seed);
    run.sanitize = SanitizeOptions{.checks = checks, .loop_budget = static_cast<uint64_t>(options.loop_budget)};
  }
  if (!options.why.empty()) {
    LS_TRY(run.why, parseWhy(options.why));
  }
  LS_TRY(run.groups, console::asUsage(parseGroups(options.dispatch)));
  LS_TRY(const std::vector<Assignment> bound, parseAssignments("--bind", options.binds));
  LS_TRY(run.module, readKernel(options, run.groups, bound));
  LS_CHECK(bind(run, options.path, bound));
  LS_TRY(const std::vector<Finding> mistakes, findMistakes(options, run, bound));
  if (!options.devices.empty()) return runOnDevices(options, run);
  LS_TRY(const std::vector<Expectation> expectations, parseExpectations(options.expects, options.withins));
  LS_TRY(const std::vector<Assignment> wanted, parseAssignments("--out", options.outs));
  for (const Assignment& out : wanted) {
    if (!run.bytes.contains(out.slot)) return usage("out", fmt::format("binding {} of --out has no --bind", toString(out.slot)));
  }

  if (!options.print_from.empty()) {
    LS_TRY(const passes::InvocationRange range, parseInvocations(options.print_from));
    run.module = passes::restrictPrint(std::move(run.module), range);
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
  result.findings.insert(result.findings.begin(), mistakes.begin(), mistakes.end());
  if (!result.findings.empty()) {
    if (const Result<std::string> text = io::readTextFile(options.path); text.ok()) {
      dropAllowed(result.findings, *text);
      addExcerpts(result.findings, options.path, *text);
    }
  }
  if (prints && !printed) {
    fmt::print(stderr, "note: {} does not give back what print writes; --device reference does (docs/wgsl.md)\n", result.device);
  }
  io::Json list = io::Json::array();
  for (const Assignment& out : wanted) LS_CHECK(show(out, module, result.bytes.find(out.slot)->second, options.json ? &list : nullptr));
  LS_TRY(const std::vector<ExpectationResult> compared,
         compareExpected(expectations, {.rtol = options.rtol, .atol = options.atol}, module, result.bytes));
  io::Json expected = io::Json::array();
  bool differs = false;
  for (const ExpectationResult& one : compared) {
    expected.add(toJson(one));
    differs = differs || !one.numbers.within();
    if (!options.json) fmt::print("{}\n", toText(one));
  }
  const bool sanitized = !options.sanitize.empty();
  if (!options.json) printWhy(result.why);
  if (sanitized && !options.json) {
    if (options.sanitize != "all") printRounding(result, module);
    console::printFindings(result.findings);
  }
  if (options.json) {
    io::Json object = io::Json::object().add("outputs", list);
    if (!compared.empty()) object.add("expected", expected);
    if (sanitized) {
      object.add("findings", console::findingsJson(result.findings))
          .add("rounding", roundingJson(result, module))
          .add("unstable_choices", unstableChoicesJson(result.unstable));
    }
    if (!result.why.empty()) object.add("why", whyJson(result.why));
    if (printed) object.add("printed", printedJson(*printed)).add("printed_left_out", printed->left_out);
    if (!result.seconds.empty()) object.add("seconds", timesJson(result.seconds));
    fmt::print("{}\n", object.text());
  } else if (!result.seconds.empty()) {
    printTimes(result);
  }
  return differs || hasError(result.findings) ? ExitCode::NumericCheck : ExitCode::Ok;
}

}  // namespace lockstep::tools
