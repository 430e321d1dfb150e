// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "frontend/io/jsonl.h"
#include "frontend/io/npy.h"
#include "frontend/io/safetensors.h"
#include "ir/support/text.h"
#include "tools/kernel/kernel_file.h"
#include "tools/kernel/kernel_run.h"
#include "tools/kernel/kernel_values.h"
#include "tools/verb.h"
#include "tools/verify/replay.h"

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

void printArray(const std::string& name, const io::Array& array) {
  fmt::print("{}: {}\n", name, io::describe(array));
  constexpr size_t kPerLine = 8;
  for (size_t i = 0; i < array.elementCount(); ++i) {
    const double value = array.at(i);
    const std::string text = array.type == io::ElementType::F32 ? formatFloat(static_cast<float>(value)) : fmt::format("{:.0f}", value);
    fmt::print("{}{}", i % kPerLine == 0 ? (i == 0 ? "  " : "\n  ") : " ", text);
  }
  fmt::print("\n");
}

io::Json outputJson(const std::string& name, const io::Array& array, const io::Json& file) {
  io::Json shape = io::Json::array(), values = io::Json::array();
  for (const int64_t extent : array.shape) shape.add(extent);
  for (const double value : array.toDoubles()) values.add(value);
  return io::Json::object()
      .add("name", name)
      .add("dtype", toString(array.type))
      .add("shape", shape)
      .add("values", values)
      .add("file", file);
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

void printOutputs(const io::Json& list, const std::vector<double>& seconds = {}, const std::optional<Printed>& printed = {}) {
  io::Json object = io::Json::object().add("outputs", list);
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

Result<ExitCode> replayStage(const std::string& path, const std::string& inputs, const std::string& device,
                             const std::vector<std::string>& outs, bool json) {
  if (inputs.empty())
    return usage("inputs", fmt::format("'{}' needs --inputs FILE.safetensors", path), "--dump-ir writes inputs.safetensors");
  LS_TRY(const io::TensorFile values, io::readSafetensors(inputs));
  LS_TRY(const io::TensorFile outputs, replay(path, values, device));
  for (const std::string& out : outs) LS_CHECK(io::writeSafetensors(out, outputs));
  if (json) {
    io::Json list = io::Json::array();
    for (const auto& [name, array] : outputs.tensors) list.add(outputJson(name, array, outs.empty() ? io::Json() : io::Json(outs.back())));
    printOutputs(list);
  } else {
    fmt::print("{}", summarise(outputs));
  }
  return ExitCode::Ok;
}

}  // namespace

Result<ExitCode> runVerb(Arguments arguments) {
  std::string path, entry, dispatch = "1", device = "auto", inputs, immediate, out_of_bounds;
  std::vector<std::string> binds, outs, overrides;
  bool json = false, time = false;
  int64_t repeat = 0;
  Options options("lockstep run", "Runs one entry point of a kernel, or one stage of a --dump-ir folder, once.");
  options.argument(path, "FILE", "a kernel (.wgsl or .kir) or a stage of a dump (.graph or .program)");
  options.value(entry, "--entry", "entry point, where there are several");
  options.value(dispatch, "--dispatch", "workgroups X,Y,Z");
  options.list(binds, "--bind",
               "G.B=FILE.npy | zeros:BYTES | iota:TYPE[N] | fill:TYPE[N]=V; where the type has a size: zeros, fill:V, list:V,V,...");
  options.value(immediate, "--immediate",
                "the value of the variable in immediate memory, as for --bind: list:V,V,... | FILE.npy | zeros | fill:V");
  options.list(outs, "--out", "G.B=FILE.npy, or G.B=- to print; of a stage: FILE.safetensors");
  options.value(inputs, "--inputs", "of a stage: its parameters, states and inputs (inputs.safetensors of the dump)");
  options.list(overrides, "--override", "NAME=NUMBER, the value of an override constant");
  options.value(
      out_of_bounds, "--out-of-bounds",
      "what an index out of bounds does: clamp (the default of .wgsl), zero, or trap, which only the reference can (its default of "
      ".kir)");
  options.choices("--out-of-bounds", {"clamp", "zero", "trap"});
  options.value(device, "--device", "auto, reference, vulkan, vulkan:N or vulkan:NAME");
  options.choices("--device", {"auto", "reference", "vulkan"});
  options.value(repeat, "--repeat", "run it this many more times, on what it left, and print how long one takes");
  options.flag(time, "--time", "the same as --repeat 10");
  options.flag(json, "--json", "one JSON object for scripts: the arrays of --out, or the outputs of a stage");
  LS_TRY(const bool go, options.parse(arguments));
  if (!go) return ExitCode::Ok;
  if (repeat < 0) return usage("value", "--repeat is at least 0");
  if (time && repeat == 0) repeat = 10;

  if (path.ends_with(".graph") || path.ends_with(".program")) return replayStage(path, inputs, device, outs, json);
  if (!inputs.empty()) return usage("inputs", "--inputs belongs to a .graph or .program; a kernel takes --bind");

  KernelRun run{.module = {}, .entry = entry, .immediate = immediate, .device = device, .repeat = static_cast<size_t>(repeat)};
  if (!out_of_bounds.empty()) {
    run.out_of_bounds = kernel::findOutOfBounds(out_of_bounds);
    if (!run.out_of_bounds) return usage("value", fmt::format("--out-of-bounds '{}' is not clamp, zero or trap", out_of_bounds));
  } else if (!path.ends_with(".wgsl")) {
    run.out_of_bounds = {};
  }
  LS_TRY(run.groups, console::asUsage(parseGroups(dispatch)));
  LS_TRY(const auto override_values, parseOverrides(overrides));
  std::vector<Assignment> bound;
  for (const std::string& text : binds) {
    LS_TRY(Assignment bind, parseAssignment("--bind", text));
    bound.push_back(std::move(bind));
  }
  const auto contents = [&](const kernel::Module& module, const kernel::GlobalVariable& variable) {
    const auto bind = std::ranges::find(bound, Slot{.group = variable.group, .binding = variable.binding}, &Assignment::slot);
    const std::string value = !kernel::isBound(variable.space) ? immediate : bind == bound.end() ? std::string() : bind->value;
    // What is wrong with a value is said below.
    const Result<Bytes> bytes = value.empty() ? Bytes() : makeBytes(value, module, variable);
    return bytes.ok() ? *bytes : Bytes();
  };
  LS_TRY(run.module, readKernelFile(path, override_values, entry, run.groups, contents));
  for (const Assignment& bind : bound) {
    const kernel::GlobalVariable* variable = findVariable(run.module, bind.slot);
    if (variable == nullptr) {
      return fail("run.bind", fmt::format("'{}' has no variable at binding {}", path, toString(bind.slot)), {},
                  "check @group and @binding");
    }
    LS_TRY(std::vector<std::byte> bytes, makeBytes(bind.value, run.module, *variable));
    if (!run.bytes.emplace(bind.slot, std::move(bytes)).second) {
      return usage("bind", fmt::format("binding {} is given twice", toString(bind.slot)));
    }
  }
  std::vector<Assignment> wanted;
  for (const std::string& text : outs) {
    LS_TRY(Assignment out, parseAssignment("--out", text));
    if (!run.bytes.contains(out.slot)) return usage("out", fmt::format("binding {} of --out has no --bind", toString(out.slot)));
    wanted.push_back(std::move(out));
  }

  const kernel::Module module = run.module;
  const bool prints = hasPrint(module);
  std::optional<Printed> printed;
  run.on_print = [&](Printed lines) {
    if (prints) printed = std::move(lines);
  };
  Result<KernelResult> ran = runKernel(std::move(run));
  if (printed && (!json || !ran.ok())) fmt::print(stderr, "{}", toString(*printed));
  LS_TRY(const KernelResult result, std::move(ran));
  if (prints && !printed) {
    fmt::print(stderr, "note: {} does not give back what print writes; --device reference does (docs/wgsl.md)\n", result.device);
  }
  io::Json list = io::Json::array();
  for (const Assignment& out : wanted) {
    const kernel::GlobalVariable& variable = *findVariable(module, out.slot);
    const Bytes& bytes = result.bytes.find(out.slot)->second;
    const io::Array array = toArray(bytes, module, variable);
    const bool shown = out.value == "-", plain = isPlainArray(module, variable);
    if (!shown) LS_CHECK(io::writeNpy(out.value, array));
    const std::string title = fmt::format("{} {}", toString(out.slot), variable.name);
    if (json) {
      io::Json object = outputJson(toString(out.slot), array, shown ? io::Json() : io::Json(out.value));
      list.add(plain ? object : object.add("value", valueJson(module, variable.type, bytes)));
    } else if (shown && plain) {
      printArray(title, array);
    } else if (shown) {
      fmt::print("{}: {}\n{}", title, module.types.toString(variable.type), valueLines(module, variable.type, bytes));
    }
  }
  if (json) {
    printOutputs(list, result.seconds, printed);
  } else if (!result.seconds.empty()) {
    printTimes(result);
  }
  return ExitCode::Ok;
}

}  // namespace lockstep::tools
