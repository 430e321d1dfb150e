// SPDX-License-Identifier: Apache-2.0
// What a program needs to know of a WGSL file to run it.
#include "frontend/wgsl/reflect.h"

#include <fmt/format.h>

#include "frontend/io/file.h"
#include "frontend/io/jsonl.h"
#include "frontend/wgsl/check/limits.h"
#include "tools/kernel/kernel_file.h"
#include "tools/kernel/layout_text.h"
#include "tools/verb.h"

namespace lockstep::tools {
namespace {

using wgsl::ReflectedBinding;
using wgsl::ReflectedEntryPoint;
using wgsl::ReflectedOverride;
using wgsl::Reflection;

std::string spaceText(const ReflectedBinding& binding) {
  const bool storage = binding.space == kernel::AddressSpace::Storage;
  return storage ? fmt::format("storage, {}", kernel::toString(binding.access)) : std::string(kernel::toString(binding.space));
}

void printMembers(const ReflectedBinding& variable) {
  for (const wgsl::ReflectedMember& member : variable.members) {
    fmt::print("  at {:<4} {}: {}, {} bytes\n", member.offset, member.name, member.type, member.size);
  }
}

void printText(const Reflection& reflection) {
  for (const ReflectedOverride& override_ : reflection.overrides) {
    const std::string id = override_.id ? fmt::format("@id({}) ", *override_.id) : "";
    const std::string value = override_.value ? fmt::format(" = {}", *override_.value) : override_.required ? " (needs a value)" : "";
    fmt::print("override {}{}: {}{}\n", id, override_.name, override_.type, value);
  }
  for (const ReflectedBinding& binding : reflection.bindings) {
    const std::string stride = binding.stride == 0 ? "" : fmt::format(" or more, {} each", binding.stride);
    fmt::print("binding {}.{} {}: {} ({}), {} bytes{}\n", binding.group, binding.binding, binding.name, binding.type, spaceText(binding),
               binding.size, stride);
    printMembers(binding);
  }
  for (const ReflectedBinding& immediate : reflection.immediates) {
    fmt::print("immediate {}: {}, {} bytes\n", immediate.name, immediate.type, immediate.size);
    printMembers(immediate);
  }
  for (const wgsl::Contract& contract : reflection.contracts) {
    fmt::print("asks for {}{}\n", contract.text, contract.isOfEntry() ? fmt::format(" ({})", contract.entry) : "");
  }
  const wgsl::LimitSet portable = wgsl::portableLimits();
  for (const ReflectedEntryPoint& entry : reflection.entry_points) {
    const auto& size = entry.workgroup_size;
    fmt::print("entry point {}: {}{}\n", entry.name,
               size ? fmt::format("workgroup size {}, {}, {}", (*size)[0], (*size)[1], (*size)[2])
                    : "its workgroup size needs values of overrides",
               entry.workgroup_bytes ? fmt::format(", {} bytes of workgroup memory", *entry.workgroup_bytes) : "");
    for (const size_t at : entry.bindings)
      fmt::print("  uses {}.{} {}\n", reflection.bindings[at].group, reflection.bindings[at].binding, reflection.bindings[at].name);
    if (entry.immediate) fmt::print("  uses immediate {}\n", reflection.immediates[*entry.immediate].name);
    for (const size_t at : entry.overrides) fmt::print("  uses override {}\n", reflection.overrides[at].name);
    for (const wgsl::Need& need : wgsl::needsOf(reflection, entry)) {
      if (need.value > portable[need.limit])
        fmt::print("  needs {} = {} (portable is {})\n", toString(need.limit), need.value, portable[need.limit]);
    }
  }
}

template <class T>
io::Json orNull(const std::optional<T>& value) {
  return value ? io::Json(*value) : io::Json();
}

io::Json toJson(const ReflectedOverride& override_) {
  return io::Json::object()
      .add("name", override_.name)
      .add("id", orNull(override_.id))
      .add("type", override_.type)
      .add("value", orNull(override_.value))
      .add("required", override_.required);
}

io::Json membersJson(const ReflectedBinding& variable) {
  io::Json members = io::Json::array();
  for (const wgsl::ReflectedMember& member : variable.members) {
    members.add(io::Json::object().add("name", member.name).add("type", member.type).add("offset", member.offset).add("size", member.size));
  }
  return members;
}

io::Json immediateJson(const ReflectedBinding& immediate) {
  return io::Json::object()
      .add("name", immediate.name)
      .add("type", immediate.type)
      .add("size", immediate.size)
      .add("members", membersJson(immediate));
}

io::Json toJson(const ReflectedBinding& binding) {
  return io::Json::object()
      .add("group", binding.group)
      .add("binding", binding.binding)
      .add("name", binding.name)
      .add("type", binding.type)
      .add("space", kernel::toString(binding.space))
      .add("access", kernel::toString(binding.access))
      .add("minimum_size", binding.size)
      .add("stride", binding.stride == 0 ? io::Json() : io::Json(binding.stride))
      .add("members", membersJson(binding));
}

io::Json toJson(const Reflection& reflection, const ReflectedEntryPoint& entry) {
  io::Json size = io::Json::array(), bindings = io::Json::array(), overrides = io::Json::array(), needs = io::Json::array();
  if (entry.workgroup_size) {
    for (const uint32_t extent : *entry.workgroup_size) size.add(extent);
  }
  for (const size_t at : entry.bindings) bindings.add(reflection.bindings[at].name);
  for (const size_t at : entry.overrides) overrides.add(reflection.overrides[at].name);
  const wgsl::LimitSet portable = wgsl::portableLimits();
  for (const wgsl::Need& need : wgsl::needsOf(reflection, entry)) {
    needs.add(io::Json::object().add("limit", toString(need.limit)).add("value", need.value).add("portable", portable[need.limit]));
  }
  return io::Json::object()
      .add("name", entry.name)
      .add("workgroup_size", entry.workgroup_size ? size : io::Json())
      .add("workgroup_bytes", orNull(entry.workgroup_bytes))
      .add("bindings", bindings)
      .add("immediate", entry.immediate ? io::Json(reflection.immediates[*entry.immediate].name) : io::Json())
      .add("overrides", overrides)
      .add("limits", needs);
}

io::Json toJson(const Reflection& reflection) {
  io::Json extensions = io::Json::array(), overrides = io::Json::array(), bindings = io::Json::array(), immediates = io::Json::array(),
           entries = io::Json::array();
  for (const std::string& extension : reflection.extensions) extensions.add(extension);
  for (const ReflectedOverride& override_ : reflection.overrides) overrides.add(toJson(override_));
  for (const ReflectedBinding& binding : reflection.bindings) bindings.add(toJson(binding));
  for (const ReflectedBinding& immediate : reflection.immediates) immediates.add(immediateJson(immediate));
  for (const ReflectedEntryPoint& entry : reflection.entry_points) entries.add(toJson(reflection, entry));
  io::Json contracts = io::Json::array();
  for (const wgsl::Contract& contract : reflection.contracts) {
    contracts.add(io::Json::object()
                      .add("text", contract.text)
                      .add("entry_point", contract.isOfEntry() ? io::Json(contract.entry) : io::Json())
                      .add("line", contract.where.line));
  }
  return io::Json::object()
      .add("extensions", extensions)
      .add("overrides", overrides)
      .add("bindings", bindings)
      .add("immediates", immediates)
      .add("entry_points", entries)
      .add("contracts", contracts);
}

}  // namespace

Result<ExitCode> reflectVerb(Arguments arguments) {
  std::string path, entry, layout;
  std::vector<std::string> override_texts;
  bool json = false;
  Options options(
      "lockstep reflect",
      "Lists what a program has to know about a WGSL file to run it: entry points with their workgroup sizes, bindings with their\n"
      "types and sizes, overrides, and which limits of WebGPU are needed. Sizes that depend on overrides need their values.");
  options.argument(path, "FILE", "a WGSL file");
  options.value(entry, "--entry", "only this entry point");
  options.list(override_texts, "--override", "NAME=NUMBER, the value of an override constant");
  options.value(layout, "--layout", "print the structs of the buffers for a host instead: c (a header for C and C++) or js (a module)");
  options.choices("--layout", {"c", "js"});
  options.flag(json, "--json", "one JSON object for scripts");
  LS_TRY(const bool go, options.parse(arguments));
  if (!go) return ExitCode::Ok;

  LS_TRY(const auto overrides, parseOverrides(override_texts));
  if (!layout.empty()) {
    if (layout != "c" && layout != "js") return usage("value", fmt::format("there is no layout '{}'", layout), "choose c or js");
    if (json) return usage("value", "--layout prints source text, and --json a description", "give one of them");
    LS_TRY(const kernel::Module module, readKernelFile(path, overrides, entry));
    fmt::print("{}", layout == "c" ? layoutAsC(module, path) : layoutAsJs(module, path));
    return ExitCode::Ok;
  }
  LS_TRY(const std::string text, io::readTextFile(path));
  LS_TRY(const Reflection reflection, wgsl::reflect(text, {.file_name = path, .overrides = overrides, .entry_point = entry}));
  if (json) {
    fmt::print("{}\n", toJson(reflection).text());
  } else {
    printText(reflection);
  }
  return ExitCode::Ok;
}

}  // namespace lockstep::tools
