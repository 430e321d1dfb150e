// SPDX-License-Identifier: Apache-2.0
#include "frontend/train/program_json.h"

#include <algorithm>
#include <array>
#include <map>

#include "frontend/io/jsonl.h"
#include "frontend/wgsl/wgsl.h"
#include "ir/support/variant.h"

namespace lockstep {

namespace {

using io::Json;
using program::Program;

template <class List, class Make>
Json arrayOf(const List& list, const Make& make) {
  Json array = Json::array();
  for (const auto& item : list) array.add(make(item));
  return array;
}
template <class Numbers>
Json numbers(const Numbers& list) {
  return arrayOf(list, [](auto number) { return Json(number); });
}

Json idJson(size_t index) { return {static_cast<uint64_t>(index)}; }

Json arenaJson(const program::Arena& arena) {
  return Json::object().add("name", arena.name).add("role", toString(arena.role)).add("size", arena.size);
}

Json bufferJson(const program::Buffer& buffer) {
  return Json::object()
      .add("name", buffer.name)
      .add("dtype", toString(buffer.type.dtype))
      .add("shape", numbers(buffer.type.shape.extents()))
      .add("role", toString(buffer.role))
      .add("arena", idJson(buffer.arena.index()))
      .add("offset", buffer.offset)
      .add("size", buffer.size)
      .add("initial", buffer.initial);
}

std::string_view bindingType(const kernel::GlobalVariable& variable) {
  if (variable.space == kernel::AddressSpace::Uniform) return "uniform";
  return variable.access == kernel::Access::Read ? "read-only-storage" : "storage";
}

Json kernelJson(const program::Kernel& kernel) {
  const auto* module = std::get_if<kernel::Module>(&kernel.code);
  if (module == nullptr) internalError("the kernel '" + kernel.name + "' of a JSON text is symbolic");
  std::map<uint32_t, std::string_view> bindings;
  for (const kernel::GlobalVariable& variable : module->globals) {
    if (kernel::isBound(variable.space)) bindings.emplace(variable.binding, bindingType(variable));
  }
  return Json::object()
      .add("name", kernel.name)
      .add("entry", module->entryPoint()->name)
      .add("bindings", arrayOf(bindings, [](const auto& binding) { return Json(binding.second); }))
      .add("immediate_bytes", kernel::immediateBytes(*module))
      .add("wgsl", wgsl::write(*module));
}

Json rangeJson(const program::Range& range) {
  return Json::object()
      .add("buffer", idJson(range.buffer.index()))
      .add("offset", range.offset)
      .add("size", range.size)
      .add("step", range.step);
}

/// The one member of a command that says what it does.
struct ActionJson {
  Json& command;
  void operator()(const program::Dispatch& dispatch) const {
    command.add("dispatch", Json::object()
                                .add("kernel", idJson(dispatch.kernel.index()))
                                .add("groups", numbers(dispatch.groups))
                                .add("bindings", arrayOf(dispatch.bindings, rangeJson))
                                .add("immediates", numbers(dispatch.immediates)));
  }
  void operator()(const program::Copy& copy) const {
    command.add("copy", Json::object().add("source", rangeJson(copy.source)).add("target", rangeJson(copy.target)));
  }
  void operator()(const program::Fill& fill) const {
    command.add("fill", Json::object().add("target", rangeJson(fill.target)).add("pattern", fill.pattern));
  }
};

Json commandJson(const program::Command& command) {
  Json json = Json::object().add("level", command.level).add("label", command.label);
  std::visit(ActionJson{json}, command.action);
  return json;
}

/// The one member of an input that says where it comes from.
struct SourceJson {
  Json& input;
  void operator()(const program::BatchSource& batch) const {
    Json range = Json::object();
    if (batch.below) range.add("below", *batch.below);
    if (batch.ignored) range.add("ignored", *batch.ignored);
    input.add("batch", range);
  }
  void operator()(const program::FormulaSource& formulas) const {
    input.add("formulas", arrayOf(formulas.elements, [](const std::string& text) { return Json(text); }));
  }
  void operator()(const program::KeySource& /*key*/) const { input.add("key", true); }
};

Json inputJson(const program::InputPort& port) {
  Json json = Json::object().add("name", port.name).add("buffer", idJson(port.buffer.index()));
  std::visit(SourceJson{json}, port.source);
  return json;
}

Json outputJson(const program::OutputPort& port) {
  return Json::object().add("name", port.name).add("kind", toString(port.kind)).add("buffer", idJson(port.buffer.index()));
}

Json stateJson(const program::PersistentState& state) {
  return Json::object().add("buffer", idJson(state.buffer.index())).add("parts", arrayOf(state.parts, [](const program::StatePart& part) {
                                                                          return Json::object()
                                                                              .add("parameter", part.parameter)
                                                                              .add("offset", part.offset);
                                                                        }));
}

Json parameterJson(const graph::ParameterInfo& parameter) {
  return Json::object()
      .add("name", parameter.name)
      .add("dtype", toString(parameter.type.dtype))
      .add("shape", numbers(parameter.type.shape.extents()));
}

}  // namespace

std::string programJson(const Program& program) {
  Json json = Json::object().add("lockstep_program", kProgramJsonVersion).add("profile", print(program.profile));
  json.add("parameters", arrayOf(program.parameters, parameterJson));
  json.add("arenas", arrayOf(program.arenas, arenaJson));
  json.add("buffers", arrayOf(program.buffers, bufferJson));
  json.add("constants", arrayOf(program.constants, [](const program::ConstantData& data) {
             return Json::object().add("buffer", idJson(data.buffer.index())).add("words", numbers(data.words));
           }));
  json.add("kernels", arrayOf(program.kernels, kernelJson));
  json.add("commands", arrayOf(program.commands, commandJson));
  json.add("loops", arrayOf(program.loops, [](const program::Loop& loop) {
             return Json::object().add("first", loop.first).add("last", loop.last).add("iterations", loop.iterations);
           }));
  json.add("inputs", arrayOf(program.inputs, inputJson));
  json.add("outputs", arrayOf(program.outputs, outputJson));
  json.add("states", arrayOf(program.states, stateJson));
  Json steps;
  if (program.steps) steps = Json::object().add("accumulate", program.steps->accumulate).add("rate", program.steps->rate);
  json.add("steps", steps);
  Json checkpoint = Json::object();
  for (const auto& [key, value] : program.checkpoint) checkpoint.add(key, value);
  return json.add("checkpoint", checkpoint).text() + "\n";
}

}  // namespace lockstep
