// SPDX-License-Identifier: Apache-2.0
// Ops with templates: the hooks load the operands through their views and store what is read of the results.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "ir/kernel/spread_matrices.h"
#include "passes/emit/template_hooks.h"
#include "passes/fuse/views.h"
#include "passes/kernel/unroll_loops.h"
#include "passes/schedule/seed_nodes.h"

namespace lockstep::passes {
namespace {

/// The template that a plan fills in.
struct Filled {
  std::string suffix;
  std::vector<std::pair<std::string, double>> numbers;
  int64_t vector = 1, subgroup = 1;
  size_t unrolled = kUnrolledTile;
  bool brain = false;  ///< matrix units multiply bf16 where the template says f16
};

/// The store of a template with one result, of which other operations make what the kernel stores: the bodies that fuse makes for templates
/// that store each element alone and once.
void storeWithEpilogue(kernel::Builder& b, BodyEmitter& emitter, const TemplateNode& seed) {
  const graph::TemplateTensor& tensor = seed.shape.results.front();
  const std::vector<kernel::ValueId> parameters = openHook(b, "store_" + std::string(tensor.name));
  emitter.pushScope();
  emitter.define(emitter.body()[seed.node].results[0], parameters.back());
  storeOutputs(emitter, tensor.space, emitter.atAxes(tensor.space, {parameters.begin(), parameters.end() - 1}));
  b.returnVoid();
  emitter.popScope();
}

/// Whether the kernel stores something else than results of the template.
bool hasEpilogue(const graph::Graph& body, const graph::Node& node) {
  return std::ranges::any_of(
      body.outputs, [&](const graph::Output& output) { return std::ranges::find(node.results, output.value) == node.results.end(); });
}

/// With the bindings as they are; `by_element` gets those of which some element is read alone, where vectors are bound.
Result<kernel::Module> fillOnce(const Filled& plan, const EmitQuery& query, bool unrolled, const BodyBindings& bindings,
                                std::set<uint32_t>& by_element) {
  const graph::Graph& body = query.body;
  const TemplateNode seed = findTemplate(body);
  const graph::Node& node = body[seed.node];
  std::vector<std::pair<std::string, double>> numbers = seed.shape.numbers;
  numbers.insert(numbers.end(), plan.numbers.begin(), plan.numbers.end());
  LS_TRY(kernel::Module module, query.config.templates(std::string(seed.shader) + plan.suffix, numbers));
  if (plan.brain) module = kernel::withComponents(std::move(module), kernel::Scalar::F16, kernel::Scalar::BF16);
  if (unrolled) module = unrollLoops(std::move(module), plan.unrolled);

  kernel::Builder b(std::move(module));
  BodyEmitter emitter(body, b, bindings);
  const auto positionOf = [&](const graph::TemplateTensor& tensor, graph::ValueId value, std::span<const kernel::ValueId> index) {
    return emitter.through(tensor.map, body.shapeOf(value), emitter.atAxes(tensor.space, {index.begin(), index.end()}));
  };
  const auto hasHook = [&](const std::string& name) {
    return std::ranges::find(b.module().functions, name, &kernel::Function::name) != b.module().functions.end();
  };
  for (size_t i = 0; i < seed.shape.operands.size(); ++i) {
    const graph::TemplateTensor& tensor = seed.shape.operands[i];
    const std::string name = "load_" + std::string(tensor.name), vector_name = fmt::format("{}{}", name, plan.vector);
    const bool by_vectors = plan.vector > 1 && hasHook(vector_name);
    std::vector<kernel::ValueId> index = openHook(b, by_vectors ? vector_name : name);
    emitter.pushScope();
    if (by_vectors) {
      const kernel::ValueId place = b.make(kernel::Op::Div, {index.back(), b.u32(static_cast<uint32_t>(plan.vector))});
      std::vector<kernel::ValueId> elements;
      for (const kernel::ValueId column : emitter.neighbours(place, plan.vector, plan.vector)) {
        index.back() = column;
        elements.push_back(emitter.value(node.operands[i], positionOf(tensor, node.operands[i], index)));
      }
      b.returnValue(b.construct(b.types().vector(b.typeOf(elements.front()).scalar, static_cast<uint32_t>(plan.vector)), elements));
    } else {
      b.returnValue(emitter.value(node.operands[i], positionOf(tensor, node.operands[i], index)));
    }
    emitter.popScope();
  }
  const bool has_epilogue = hasEpilogue(body, node);
  if (has_epilogue) storeWithEpilogue(b, emitter, seed);
  for (size_t i = 0; i < seed.shape.results.size() && !has_epilogue; ++i) {
    const graph::TemplateTensor& tensor = seed.shape.results[i];
    const auto output = std::ranges::find(body.outputs, node.results[i], &graph::Output::value);
    if (output == body.outputs.end()) continue;  // nobody reads it
    const auto result = static_cast<size_t>(output - body.outputs.begin());
    const std::string name = "store_" + std::string(tensor.name), vector_name = fmt::format("{}{}", name, plan.vector);
    const bool by_vectors = plan.vector > 1 && hasHook(vector_name);
    std::vector<kernel::ValueId> parameters = openHook(b, by_vectors ? vector_name : name);
    emitter.pushScope();
    kernel::ValueId& last = parameters[tensor.space.rank() - 1];
    if (by_vectors) {
      const kernel::ValueId place = b.make(kernel::Op::Div, {last, b.u32(static_cast<uint32_t>(plan.vector))});
      last = emitter.neighbours(place, plan.vector, plan.vector).front();
    }
    const PositionId place = positionOf(tensor, node.results[i], std::span(parameters).first(tensor.space.rank()));
    if (by_vectors) {
      std::vector<kernel::ValueId> values;
      for (uint32_t c = 0; c < plan.vector; ++c) values.push_back(b.extract(parameters.back(), c));
      emitter.storeFrom(result, emitter.linear(place), values);
    } else {
      emitter.store(result, place, parameters.back());
    }
    b.returnVoid();
    emitter.popScope();
  }
  fillWorkgroupIndex(b, query);
  for (kernel::Function& function : b.module().functions) {
    if (function.workgroup_size) function.subgroup_size = plan.subgroup > 1 ? static_cast<uint32_t>(plan.subgroup) : 0;
  }
  if (plan.subgroup == 1) std::erase(b.module().capabilities, kernel::Capability::Subgroups);
  by_element = emitter.readByElement();
  return kernel::canonical(b.take(), true);
}

Result<kernel::Module> fillTemplate(const Filled& plan, const EmitQuery& query, bool unrolled) {
  return withVectorBindings(query, plan.vector, [&](const BodyBindings& bindings, std::set<uint32_t>& by_element) {
    return fillOnce(plan, query, unrolled, bindings, by_element);
  });
}

Status checkVectors(const Filled& plan, const EmitQuery& query) {
  for (const graph::TemplateTensor& tensor : findTemplate(query.body).shape.operands) {
    if (!tensor.along_last || tensor.space.extent(tensor.space.rank() - 1) % plan.vector == 0) continue;
    return fail("program.plan", fmt::format("'{}' of shape {} has no vectors of {}", tensor.name, toString(tensor.space), plan.vector), {},
                "take a divisor of the last axis, or leave out 'vector'");
  }
  return Success{};
}

/// Whether an operand of the template is a tensor of that type, widened.
bool hasOfType(const graph::Graph& body, std::string_view name, graph::DType dtype) {
  const TemplateNode seed = findTemplate(body);
  const auto operand = std::ranges::find(seed.shape.operands, name, &graph::TemplateTensor::name);
  if (operand == seed.shape.operands.end()) return false;
  const graph::ValueId value = body[seed.node].operands[static_cast<size_t>(operand - seed.shape.operands.begin())];
  return body.typeOf(throughWidened(body, value).base).dtype == dtype;
}

std::vector<std::pair<std::string, double>> numbersOf(const auto& plan) {
  std::vector<std::pair<std::string, double>> numbers;
  plan.each(plan, [&](std::string_view name, int64_t number, program::PlanNumber) { numbers.emplace_back(name, number); });
  return numbers;
}

}  // namespace

Result<kernel::Module> emitKernel(const program::StreamPlan& plan, const EmitQuery& query) {
  Filled filled{.suffix = "_stream", .numbers = numbersOf(plan), .vector = plan.vector};
  LS_CHECK(checkVectors(filled, query));
  if (findTemplate(query.body).shape.form == graph::TemplateForm::Stream) {
    std::erase_if(filled.numbers, [](const auto& number) { return number.first != "lanes"; });
    filled.unrolled = kUnrolledStream;
    // Registers of a GPU are arrays in the template, which only constants may index.
    if (query.config.profile.style == program::ExecutionStyle::Gpu) return fillTemplate(filled, query, true);
  }
  return withinRounds(query, [&](bool unrolled) { return fillTemplate(filled, query, unrolled); });
}

Result<kernel::Module> emitKernel(const program::TiledPlan& plan, const EmitQuery& query) {
  Filled filled{
      .suffix = "_tiled", .numbers = numbersOf(plan), .vector = plan.vector, .subgroup = plan.subgroup, .unrolled = kUnrolledRegisters};
  LS_CHECK(checkVectors(filled, query));
  filled.numbers.emplace_back("units", query.config.profile.parallel_units);
  if (plan.shares == 1) std::erase_if(filled.numbers, [](const auto& number) { return number.first == "shares"; });  // not all have any
  // Registers are arrays in the template, which only constants may index.
  return fillTemplate(filled, query, true);
}

Result<kernel::Module> emitKernel(const program::SplitPlan& plan, const EmitQuery& query) {
  const Filled filled{
      .suffix = "_split", .numbers = numbersOf(plan), .vector = plan.vector, .subgroup = plan.subgroup, .unrolled = kUnrolledRegisters};
  LS_CHECK(checkVectors(filled, query));
  return fillTemplate(filled, query, true);
}

Result<kernel::Module> emitKernel(const program::DigitsPlan& plan, const EmitQuery& query) {
  const Filled filled{
      .suffix = "_digits", .numbers = numbersOf(plan), .vector = plan.vector, .subgroup = plan.lanes, .unrolled = kUnrolledDigits};
  LS_CHECK(checkVectors(filled, query));
  return fillTemplate(filled, query, true);
}

Result<kernel::Module> emitKernel(const program::WholePlan& plan, const EmitQuery& query) {
  const Filled filled{.suffix = "_whole", .numbers = numbersOf(plan), .vector = plan.vector};
  LS_CHECK(checkVectors(filled, query));
  return withinRounds(query, [&](bool unrolled) { return fillTemplate(filled, query, unrolled); });
}

Result<kernel::Module> emitKernel(const program::MatrixPlan& plan, const EmitQuery& query) {
  Filled filled{.suffix = "_matrix",
                .numbers = numbersOf(plan),
                .vector = plan.vector,
                .subgroup = plan.lanes,
                .unrolled = kUnrolledMatrices,
                .brain = plan.brain == 2};
  LS_CHECK(checkVectors(filled, query));
  for (auto& [name, number] : filled.numbers) {
    if (name == "brain") number -= 1;
  }
  filled.numbers.emplace_back("units", query.config.profile.parallel_units);
  if (hasOfType(query.body, "d_out", plan.brain == 2 ? graph::DType::BF16 : graph::DType::F16)) filled.numbers.emplace_back("narrow", 1);
  return fillTemplate(filled, query, true);
}

}  // namespace lockstep::passes
