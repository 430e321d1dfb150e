// SPDX-License-Identifier: Apache-2.0
#include "backends/why.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <map>
#include <optional>

#include "backends/reference/dispatch.h"
#include "backends/reference/sanitize/tracer.h"
#include "ir/kernel/module.h"

namespace lockstep {
namespace {

using reference::Bytecode;
using reference::Opcode;
using reference::TraceNode;
using reference::Tracer;

constexpr size_t kMostLines = 60;
/// Invocations whose values went into the element and that are followed.
constexpr size_t kMostLanes = 64;
/// Rounds of a loop that are shown.
constexpr uint32_t kRounds = 2;

struct Symbol {
  Opcode op;
  const char* text;
};
constexpr Symbol kSymbols[] = {
    {Opcode::AddF, "{0} + {1}"},
    {Opcode::AddI, "{0} + {1}"},
    {Opcode::SubF, "{0} - {1}"},
    {Opcode::SubI, "{0} - {1}"},
    {Opcode::MulF, "{0} * {1}"},
    {Opcode::MulI, "{0} * {1}"},
    {Opcode::DivF, "{0} / {1}"},
    {Opcode::DivI, "{0} / {1}"},
    {Opcode::DivU, "{0} / {1}"},
    {Opcode::RemF, "{0} % {1}"},
    {Opcode::RemI, "{0} % {1}"},
    {Opcode::RemU, "{0} % {1}"},
    {Opcode::And, "{0} & {1}"},
    {Opcode::Or, "{0} | {1}"},
    {Opcode::Xor, "{0} ^ {1}"},
    {Opcode::Shl, "{0} << {1}"},
    {Opcode::ShrI, "{0} >> {1}"},
    {Opcode::ShrU, "{0} >> {1}"},
    {Opcode::NegF, "-{0}"},
    {Opcode::NegI, "-{0}"},
    {Opcode::MulAddF, "{0} * {1} + {2}"},
    {Opcode::MulAddI, "{0} * {1} + {2}"},
    {Opcode::MulSubF, "{0} * {1} - {2}"},
    {Opcode::NegMulAddF, "{2} - {0} * {1}"},
    {Opcode::Select, "select({0}, {1}, {2})"},
    {Opcode::EqF, "{0} == {1}"},
    {Opcode::EqI, "{0} == {1}"},
    {Opcode::NeF, "{0} != {1}"},
    {Opcode::NeI, "{0} != {1}"},
    {Opcode::LtF, "{0} < {1}"},
    {Opcode::LtI, "{0} < {1}"},
    {Opcode::LtU, "{0} < {1}"},
    {Opcode::LeF, "{0} <= {1}"},
    {Opcode::LeI, "{0} <= {1}"},
    {Opcode::LeU, "{0} <= {1}"},
    {Opcode::IntToF, "f32({0})"},
    {Opcode::UintToF, "f32({0})"},
    {Opcode::FloatToI, "i32({0})"},
    {Opcode::FloatToU, "u32({0})"},
    {Opcode::BoolToF, "f32({0})"},
};

/// Types of an operation's result and operands: 'f', 'i' or 'u'.
constexpr std::string_view kTypes[] = {
#define LS_VM_OP1(name, r, a) #r #a,
#define LS_VM_OP2(name, r, a, b) #r #a #b,
#define LS_VM_OP3(name, r, a, b, c) #r #a #b #c,
#define LS_VM_CONTROL(name)
#include "backends/reference/opcodes.def"
#undef LS_VM_OP1
#undef LS_VM_OP2
#undef LS_VM_OP3
#undef LS_VM_CONTROL
};

std::string numberText(uint32_t bits, char type) {
  if (type == 'f') return fmt::format("{:.9g}", std::bit_cast<float>(bits));
  if (type == 'b') return bits != 0 ? "true" : "false";
  return type == 'i' ? fmt::format("{}", static_cast<int32_t>(bits)) : fmt::format("{}", bits);
}

/// Runs the groups up to the traced one, each on the memory that those before it left.
struct Run {
  const Bytecode& code;
  const program::Dispatch& dispatch;
  std::vector<Bytes> buffers;

  void operator()(Tracer& tracer, uint64_t groups) {
    std::vector<reference::BufferView> views;
    for (const program::Range& range : dispatch.bindings) {
      Bytes& bytes = buffers[range.buffer.index()];
      views.push_back({.words = reinterpret_cast<uint32_t*>(bytes.data() + range.offset), .count = static_cast<uint32_t>(range.size / 4)});
    }
    std::vector<uint32_t> immediates = dispatch.immediates;
    views.push_back({.words = immediates.data(), .count = static_cast<uint32_t>(immediates.size())});
    reference::Machine machine(code, views, dispatch.groups, {.checks = false, .tracer = &tracer});
    for (uint64_t group = 0; group < groups; ++group) machine.run(group, 1);
  }
};

class Explainer {
 public:
  Explainer(const Bytecode& code, const kernel::Module& module, const std::string& kernel, std::array<uint32_t, 3> groups,
            const Tracer& tracer, uint64_t group)
      : code_(code), module_(module), kernel_(kernel), groups_(groups), nodes_(tracer.nodes()), group_(group) {}

  std::vector<WhyLine> explain(uint32_t node) {
    visit(node, 0);
    if (lines_.size() == kMostLines) lines_.push_back({.depth = 0, .where = {}, .text = "and so on"});
    return std::move(lines_);
  }

 private:
  /// 'f', 'i', 'u' or 'b', as the kernel has it.
  [[nodiscard]] char typeOf(const TraceNode& node) const {
    if (node.site == 0) return 'u';
    const kernel::Instruction& x = module_.instructions[node.site - 1];
    const kernel::ValueId value = node.kind == TraceNode::Kind::Stored && x.op == kernel::Op::Store ? x.operands[1] : x.result;
    if (!value.valid()) return 'u';
    switch (module_.typeOf(value).scalar) {
      case kernel::Scalar::F32:
      case kernel::Scalar::F16:
        return 'f';
      case kernel::Scalar::I32:
        return 'i';
      case kernel::Scalar::U32:
        return 'u';
      case kernel::Scalar::Bool:
        return 'b';
    }
    return 'u';
  }

  /// What the machine takes for bits is of the type of the result.
  [[nodiscard]] char typeOfOperand(const TraceNode& node, size_t operand) const {
    const std::string_view types = node.op < Opcode::Splat ? kTypes[static_cast<size_t>(node.op)] : std::string_view("u");
    if (node.op == Opcode::Select && operand == 2) return 'b';
    const char type = operand + 1 < types.size() ? types[operand + 1] : 'u';
    const char result = typeOf(node);
    return type == 'u' && types[0] == 'u' && result != 'b' ? result : type;
  }

  [[nodiscard]] std::string place(const TraceNode& node) const {
    const reference::Variable& variable = code_.variables[node.variable];
    const uint64_t first = variable.home == reference::Home::Buffer ? 0 : variable.offset;
    const bool single = variable.words == 1 && variable.home != reference::Home::Buffer;
    return single ? variable.name : fmt::format("{}[{}]", variable.name, node.word - first);
  }

  [[nodiscard]] std::string formula(const TraceNode& node) const {
    std::array<std::string, 3> operands;
    for (size_t k = 0; k < 3; ++k) operands[k] = numberText(node.operands[k], typeOfOperand(node, k));
    const auto* symbol = std::ranges::find(kSymbols, node.op, &Symbol::op);
    if (symbol != std::end(kSymbols)) return fmt::format(fmt::runtime(symbol->text), operands[0], operands[1], operands[2]);
    std::string name(reference::nameOf(node.op));
    name[0] = static_cast<char>(name[0] - 'A' + 'a');
    const size_t count = reference::operandCount(node.op);
    return fmt::format("{}({})", name, fmt::join(operands.begin(), operands.begin() + static_cast<std::ptrdiff_t>(count), ", "));
  }

  void line(const TraceNode& node, uint32_t depth, std::string text) {
    lines_.push_back({.depth = depth, .where = reference::placeOf(node.site, module_, kernel_), .text = std::move(text)});
  }

  void visit(uint32_t id, uint32_t depth) {
    if (id == TraceNode::kNone || lines_.size() >= kMostLines) return;
    const TraceNode& node = nodes_[id];
    const std::string value = numberText(node.bits, typeOf(node));
    if (node.kind == TraceNode::Kind::Computed && isLeaf(node)) return;
    if (!shown_.insert(id).second) return;
    // Of an operation that uses its own result, that of a round before.
    uint32_t& rounds = rounds_[{node.site, node.lane}];
    if (rounds == kRounds) return line(node, depth, fmt::format("{} in the round before, and so on", value));
    ++rounds;
    switch (node.kind) {
      case TraceNode::Kind::Stored:
        line(node, depth,
             fmt::format("{} = {} was stored by {}", place(node), value, reference::invocationText(group_, node.lane, code_, groups_)));
        break;
      case TraceNode::Kind::Loaded:
        line(node, depth,
             fmt::format("{} = {} was read{}", place(node), value,
                         node.from[0] == TraceNode::kNone ? ", as it was before this workgroup ran" : ""));
        break;
      case TraceNode::Kind::Computed:
        line(node, depth, fmt::format("{} = {}", value, formula(node)));
        break;
    }
    for (const uint32_t from : node.from) visit(from, depth + 1);
    --rounds_[{node.site, node.lane}];
  }

  /// Constants, ids and lengths: their value stands in the line above.
  [[nodiscard]] static bool isLeaf(const TraceNode& node) {
    return node.op >= Opcode::Splat || std::ranges::all_of(node.from, [](uint32_t from) { return from == TraceNode::kNone; });
  }

  const Bytecode& code_;
  const kernel::Module& module_;
  const std::string& kernel_;
  std::array<uint32_t, 3> groups_;
  const std::vector<TraceNode>& nodes_;
  uint64_t group_;
  std::vector<WhyLine> lines_;
  std::set<uint32_t> shown_;
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> rounds_;  ///< by site and lane: how many lines above are of them
};

}  // namespace

Result<std::vector<WhyLine>> why(const program::ValidProgram& program, const std::vector<Bytes>& buffers, size_t buffer, uint64_t word) {
  const auto* dispatch = program->commands.empty() ? nullptr : std::get_if<program::Dispatch>(&program->commands.front().action);
  if (dispatch == nullptr) return fail("why.word", "the program has no dispatch");
  const kernel::Module& module = *program.modules()[dispatch->kernel.index()];
  LS_TRY(const Bytecode code, reference::decode(module, 1, {}));
  const auto binding =
      std::ranges::find_if(dispatch->bindings, [&](const program::Range& range) { return range.buffer.index() == buffer; });
  const auto variable = std::ranges::find_if(code.variables, [&](const reference::Variable& one) {
    return one.home == reference::Home::Buffer && one.binding == static_cast<uint32_t>(binding - dispatch->bindings.begin());
  });
  if (binding == dispatch->bindings.end() || variable == code.variables.end() || word >= binding->size / 4)
    return fail("why.word", fmt::format("that buffer has no word {}", word), {}, "words count from 0, 4 bytes each");
  const reference::TracedWord target{.variable = static_cast<uint32_t>(variable - code.variables.begin()), .word = word};
  const uint64_t groups = uint64_t{dispatch->groups[0]} * dispatch->groups[1] * dispatch->groups[2];
  Tracer finder(code, target, UINT64_MAX, {});
  Run{code, *dispatch, buffers}(finder, groups);
  if (!finder.writer())
    return fail("why.word", fmt::format("no invocation wrote word {} of {}", word, variable->name), {}, "it has the value that was bound");
  const uint64_t group = finder.writer()->group;
  std::set<uint32_t> lanes{finder.writer()->lane};
  for (;;) {
    Tracer tracer(code, target, group, lanes);
    Run{code, *dispatch, buffers}(tracer, group + 1);
    const size_t before = lanes.size();
    for (const uint32_t lane : tracer.wanted())
      if (lanes.size() < kMostLanes) lanes.insert(lane);
    if (lanes.size() > before) continue;
    if (tracer.result() == TraceNode::kNone)
      return fail("why.word", fmt::format("word {} of {} was made by more than {} operations", word, variable->name, tracer.nodes().size()),
                  {}, "run the kernel on less data");
    const std::string& kernel = (*program)[dispatch->kernel].name;
    return Explainer(code, module, kernel, dispatch->groups, tracer, group).explain(tracer.result());
  }
}

}  // namespace lockstep
