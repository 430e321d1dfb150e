// SPDX-License-Identifier: Apache-2.0
#include "frontend/ops/kernel.h"

#include <fmt/format.h>

#include <algorithm>

#include "frontend/io/file.h"
#include "frontend/trace/at_call.h"
#include "frontend/trace/throw_error.h"
#include "frontend/trace/trace.h"
#include "frontend/wgsl/wgsl.h"

namespace lockstep {

using detail::Trace;

namespace {

std::string typeTexts(const std::vector<TensorType>& types) {
  std::string text;
  for (const TensorType& type : types) text += fmt::format("{}{}", text.empty() ? "" : " ", toString(type));
  return text;
}

/// The module of a spec whose Kernel was made at `where`. Errors and instructions have places in the text as the user wrote it.
kernel::Module readSource(const KernelSpec& spec, const Location& where, std::map<std::string, double> overrides) {
  const bool embedded = spec.file.empty();
  const std::string name = embedded ? fmt::format("kernel '{}' at {}:{}", spec.name, where.file, where.line) : spec.file;
  Result<kernel::Module> module =
      wgsl::read(spec.source, {.file_name = name, .overrides = std::move(overrides), .overrides_are_constants = true});
  if (!module.ok()) {
    Failure failure = module.failure();
    const auto quote = [&](auto& part) {
      part.where.embedded = embedded && part.where.file == name;
      // Also of a file: where the program runs it may be another, or none.
      if (part.where.file == name) part.excerpt = excerptOf(spec.source, part.where, part.length);
    };
    for (Diagnostic& diagnostic : failure.diagnostics) {
      quote(diagnostic);
      for (Note& note : diagnostic.notes) quote(note);
    }
    throw Error(std::move(failure.diagnostics), failure.exit_code);
  }
  for (Location& location : module->locations) location.embedded = embedded;
  module->source = spec.source;
  return std::move(*module);
}

size_t entryPoints(const kernel::Module& module) {
  return static_cast<size_t>(
      std::ranges::count_if(module.functions, [](const kernel::Function& f) { return f.workgroup_size.has_value(); }));
}

std::array<uint32_t, 3> groupsOf(const KernelSpec& spec, const kernel::Module& module, Types operands, Types results) {
  if (spec.groups) return spec.groups(operands, results);
  const std::array<uint32_t, 3>& size = *module.entryPoint()->workgroup_size;
  int64_t elements = results.front().shape.elementCount(), invocations = int64_t{size[0]} * size[1] * size[2];
  return {static_cast<uint32_t>((elements + invocations - 1) / invocations), 1, 1};
}

}  // namespace

struct Kernel::State {
  KernelSpec spec;
  Location where;  ///< of the Kernel itself
};

const std::string& Kernel::name() const { return state_->spec.name; }

Kernel::Kernel(KernelSpec spec, Where where) {
  if (spec.source.empty()) {
    detail::atCall(where, [&] {
      if (spec.file.empty()) {
        detail::reject("kernel.source", fmt::format("kernel '{}' has no text", spec.name),
                       "set .source to WGSL, or .file to a file with it");
      }
      spec.source = io::readTextFile(spec.file).orThrow();
    });
  }
  // With overrides the text is only complete at a call.
  if (!spec.overrides) {
    kernel::Module module = readSource(spec, detail::toLocation(where), {});
    if (entryPoints(module) != 1) {
      throw Error({.code = "kernel.C2",
                   .message = fmt::format("kernel '{}' has {} entry points, wanted one", spec.name, entryPoints(module)),
                   .where = detail::toLocation(where),
                   .notes = {},
                   .remedy = "mark one function with @compute and @workgroup_size"});
    }
  }
  state_ = std::make_shared<const State>(State{std::move(spec), detail::toLocation(where)});
}

std::vector<Tensor> Kernel::operator()(std::vector<Tensor> operands, Where where) const {
  Trace& trace = Trace::require("kernel", where);
  const KernelSpec& spec = state_->spec;
  std::vector<TensorType> types;
  for (const Tensor& operand : operands) types.push_back(operand.type(where));
  if (!spec.infer && types.empty())
    detail::raise("kernel.C1", fmt::format("kernel '{}' has no operand to take its result's type from", spec.name), {}, where,
                  "give it a shape rule");
  const std::vector<TensorType> results = spec.infer ? spec.infer(types) : std::vector{types.front()};
  if (results.empty()) detail::raise("kernel.C1", fmt::format("kernel '{}' has no result", spec.name), {}, where);
  kernel::Module module =
      readSource(spec, state_->where, spec.overrides ? spec.overrides(types, results) : std::map<std::string, double>{});
  std::array<uint32_t, 3> groups = groupsOf(spec, module, types, results);
  graph::Attributes attributes{{"label", spec.name},
                               {"module", print(module, true)},
                               {"results", typeTexts(results)},
                               {"groups", std::vector<int64_t>(groups.begin(), groups.end())}};
  auto call = [&](std::span<const Tensor> inputs) { return trace.emitAll("kernel", inputs, attributes, where); };
  if (!spec.gradient) return call(operands);
  return custom_gradient(std::move(operands), call, spec.gradient, where);
}

}  // namespace lockstep
