// SPDX-License-Identifier: Apache-2.0
// Sightings as findings: their codes, sentences and places.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <map>

#include "backends/reference/dispatch.h"
#include "backends/reference/sanitize/shadows.h"
#include "backends/reference/sanitize/watch.h"
#include "ir/kernel/print_places.h"

namespace lockstep::reference {
namespace {

std::string textOf(uint64_t invocation, const Bytecode& code, std::array<uint32_t, 3> groups) {
  return invocationText(invocation / code.group_lanes, invocation % code.group_lanes, code, groups);
}

class Writer {
 public:
  Writer(const Bytecode& code, const kernel::Module& module, const std::string& kernel, std::array<uint32_t, 3> groups)
      : code_(code), module_(module), kernel_(kernel), groups_(groups) {}

  [[nodiscard]] Finding finding(const Sighting& sighting) const {
    Finding finding{.severity = sighting.warning ? Finding::Severity::Warning : Finding::Severity::Error,
                    .diagnostic = {.code = "", .message = "", .where = {}, .notes = {}, .remedy = ""},
                    .count = sighting.count,
                    .invocation = who(sighting.invocation)};
    place(finding.diagnostic, sighting.site);
    describe(finding.diagnostic, sighting);
    return finding;
  }

 private:
  [[nodiscard]] std::string who(uint64_t invocation) const {
    return invocation == Sighting::kUnknown ? std::string() : textOf(invocation, code_, groups_);
  }

  template <class Place>
  void place(Place& out, uint32_t site) const {
    out.where = placeOf(site, module_, kernel_);
    if (site != 0 && module_.instructions[site - 1].location != 0 && !module_.source.empty())
      out.excerpt = excerptOf(module_.source, out.where, 1);
  }

  [[nodiscard]] std::string variable(uint32_t index) const { return index == UINT32_MAX ? "a value" : code_.variables[index].name; }

  [[nodiscard]] std::string element(const Sighting& sighting) const {
    return fmt::format("{}[{}]", variable(sighting.variable), sighting.element);
  }

  void describe(Diagnostic& out, const Sighting& s) const {
    switch (s.code) {
      case FindingCode::RaceWorkgroup:
        return race(out, s, "race.workgroup", "another invocation of the workgroup", "put a workgroupBarrier() between the two");
      case FindingCode::RaceStorage:
        return race(out, s, "race.storage", "another invocation of the workgroup", "put a storageBarrier() between the two");
      case FindingCode::RaceBetweenWorkgroups:
        return race(out, s, "race.between_workgroups", "another workgroup",
                    "let one workgroup own the element, use atomics, or split the kernel into two dispatches");
      case FindingCode::OutOfBounds: {
        const bool negative = s.element > 0xffff0000u;
        out.code = "memory.out_of_bounds";
        out.message =
            fmt::format("index {} is out of bounds of {} with {} elements",
                        negative ? fmt::format("{} ({})", s.element, static_cast<int32_t>(s.element)) : fmt::format("{}", s.element),
                        variable(s.variable), s.limit);
        out.remedy = "guard the access, or correct the size of the buffer or of the dispatch";
        return;
      }
      case FindingCode::Uninitialised:
        out.code = "memory.uninitialised";
        out.message = fmt::format("a value that nobody has written is {}", useOf(static_cast<TaintUse>(s.limit)));
        out.remedy = "write the memory first, or bind a value to it";
        if (s.other_site != 0 && s.other_site != s.site) {
          Note note{.message = "it was read here", .where = {}};
          place(note, s.other_site);
          out.notes.push_back(std::move(note));
        }
        return;
      case FindingCode::EarlierRound: {
        out.code = "memory.uninitialised";
        out.message = fmt::format("element {} of workgroup variable {} was last written in an earlier round, before {} barriers", s.element,
                                  variable(s.variable), s.a);
        out.remedy = "fill the rest in each round, for example with 0, or use only what this round wrote";
        Note note{.message = "written here, for fewer elements in this round than in that one", .where = {}};
        place(note, s.other_site);
        out.notes.push_back(std::move(note));
        return;
      }
      case FindingCode::NeverWritten:
        out.code = "memory.never_written";
        out.message = fmt::format("{} words of {} were never written, the first is word {} and the last word {}", s.count,
                                  variable(s.variable), s.element, s.limit);
        out.remedy = "dispatch enough workgroups, and let each element be written";
        return;
      case FindingCode::WrittenTwice:
        race(out, s, "memory.written_twice", "another workgroup", "let one workgroup own the element");
        return;
      case FindingCode::DivideByZero:
        out.code = "integer.divide_by_zero";
        out.message = s.op == Opcode::RemI || s.op == Opcode::RemU ? fmt::format("the remainder of {} by zero is taken", number(s, s.a))
                                                                   : fmt::format("{} is divided by zero", number(s, s.a));
        out.remedy = "test the divisor first";
        return;
      case FindingCode::Shift:
        out.code = "integer.shift";
        out.message = fmt::format("a shift by {} bits of a number of 32; WGSL takes the amount modulo 32", s.b);
        out.remedy = "keep the amount below 32";
        return;
      case FindingCode::Conversion:
        out.code = "integer.conversion";
        out.message = fmt::format("{} does not fit {}", std::bit_cast<float>(s.a), s.op == Opcode::FloatToI ? "an i32" : "a u32");
        out.remedy = "clamp the value first";
        return;
      case FindingCode::NotFinite:
        out.code = "float.not_finite";
        out.message =
            fmt::format("{} is made here of {}{}, and reaches a buffer", std::bit_cast<float>(s.result), std::bit_cast<float>(s.a),
                        operandCount(s.op) == 1 ? "" : fmt::format(" and {}", std::bit_cast<float>(s.b)));
        out.remedy = "keep the operands in the range of the operation, for example with clamp() or max()";
        return;
      case FindingCode::EndlessLoop:
        out.code = "loop.endless";
        out.message = "a loop does not end";
        out.remedy = "correct the loop's condition, or allow more rounds with --loop-budget";
        return;
      case FindingCode::Waits:
        out.code = "order.waits";
        out.message = "a loop waits for another invocation, which WGSL does not promise to run meanwhile";
        out.remedy = "split the kernel where it waits";
        return;
      case FindingCode::DivergentBarrier:
        out.code = "barrier.divergent";
        out.message = "a barrier is not reached by this invocation, but by others of its workgroup";
        out.remedy = "move the barrier out of control flow that depends on the invocation";
        return;
      case FindingCode::Cancellation:
        return rounding(out, s, "float.cancellation", "this difference of nearly equal numbers leaves few of their digits",
                        "write the formula without the difference, for example (a - b) * (a + b) in place of a * a - b * b");
      case FindingCode::Absorption:
        return rounding(out, s, "float.absorption", "this sum is so large that addends do not change it",
                        "add in pairs or in parts, or keep what was lost in a second variable (Kahan's sum)");
      case FindingCode::Denormal:
        return rounding(out, s, "float.denormal", "a subnormal number is made or used here, which a device may take as 0",
                        "scale the values before, not after");
      case FindingCode::Wrap:
        out.code = "integer.wrap";
        out.message = fmt::format("{:.0f} does not fit 32 bits and wraps", s.exact);
        if (s.variable != UINT32_MAX) out.message += fmt::format("; {} is indexed with what is left", variable(s.variable));
        out.remedy = "test the operands first, or compute so that no part of the index is that large";
        return;
      case FindingCode::Contraction:
        return rounding(out, s, "float.contraction", "the result depends on whether a device rounds between this product and this sum",
                        "use fma() where the product must not be rounded, or a formula that does not depend on it");
    }
  }

  [[nodiscard]] static std::string_view useOf(TaintUse use) {
    switch (use) {
      case TaintUse::Arithmetic:
        return "computed with";
      case TaintUse::Address:
        return "an index";
      case TaintUse::Condition:
        return "a condition";
      case TaintUse::Output:
        return "stored to a buffer";
    }
    return "";
  }

  [[nodiscard]] static std::string number(const Sighting& s, uint32_t bits) {
    const bool is_signed = s.op == Opcode::DivI || s.op == Opcode::RemI;
    return is_signed ? fmt::format("{}", static_cast<int32_t>(bits)) : fmt::format("{}", bits);
  }

  void rounding(Diagnostic& out, const Sighting& s, std::string code, std::string_view what, std::string_view remedy) const {
    out.code = std::move(code);
    out.message = fmt::format("{}: {} is {:.9g}, in exact arithmetic {:.9g}, and may be off by {:.2g}", what, element(s),
                              std::bit_cast<float>(s.result), s.exact, s.bound);
    out.remedy = remedy;
  }

  void race(Diagnostic& out, const Sighting& s, std::string code, std::string_view other, std::string_view remedy) const {
    out.code = std::move(code);
    out.message = fmt::format("{} is {} here and {} by {}, and nothing orders the two", element(s), s.here_writes ? "written" : "read",
                              s.other_writes ? "written" : "read", other);
    if (s.by_atomics) {
      out.message = fmt::format("{} is {} here and was {} by {}: only the order of atomics keeps them apart, which WGSL does not promise",
                                element(s), s.here_writes ? "written" : "read", s.other_writes ? "written" : "read", other);
    } else if (s.same_value) {
      out.message = fmt::format("{} is written here and by {} with the same value, and nothing orders the two", element(s), other);
    }
    out.remedy = remedy;
    Note note{.message = fmt::format("{} here", s.other_writes ? "written" : "read"), .where = {}};
    if (const std::string by = who(s.other_invocation); !by.empty()) note.message += " by " + by;
    place(note, s.other_site);
    out.notes.push_back(std::move(note));
  }

  const Bytecode& code_;
  const kernel::Module& module_;
  const std::string& kernel_;
  std::array<uint32_t, 3> groups_;
};

}  // namespace

void finish(Watch& watch, const Bytecode& code, const kernel::Module& module) {
  // Of each variable the words of its sized part, and those of one element of a runtime-sized array at the end.
  struct Layout {
    std::vector<bool> fixed, element;
  };
  std::map<uint32_t, Layout> layouts;
  const auto mark = [&](std::vector<bool>& words, kernel::TypeId type, uint64_t offset, uint64_t size) {
    words.resize(std::max<size_t>(words.size(), offset + size));
    for (const Component& component : flatten(module.types, type, 2)) words[offset + component.word / 2] = true;
  };
  const auto layoutOf = [&](uint32_t variable) -> const Layout& {
    const auto [found, inserted] = layouts.try_emplace(variable);
    if (!inserted) return found->second;
    const auto global = std::ranges::find_if(module.globals, [&](const kernel::GlobalVariable& one) {
      return kernel::isBound(one.space) && one.binding == code.variables[variable].binding;
    });
    if (global == module.globals.end()) return found->second;
    Layout& layout = found->second;
    const auto addTail = [&](kernel::TypeId array) {
      mark(layout.element, module.types[array].element, 0, module.types.strideOf(array) / 4);
    };
    const kernel::Type& type = module.types[global->type];
    if (!module.types.isRuntimeSized(global->type)) {
      mark(layout.fixed, global->type, 0, (module.types.sizeOf(global->type) + 3) / 4);
    } else if (type.kind == kernel::TypeKind::Array) {
      addTail(global->type);
    } else {
      for (const kernel::Member& member : type.members) {
        layout.fixed.resize(std::max<size_t>(layout.fixed.size(), member.offset / 4));
        if (module.types.isRuntimeSized(member.type)) {
          addTail(member.type);
        } else {
          mark(layout.fixed, member.type, member.offset / 4, (module.types.sizeOf(member.type) + 3) / 4);
        }
      }
    }
    return layout;
  };
  watch.finish([&](uint32_t variable, uint64_t word) {
    const Layout& layout = layoutOf(variable);
    if (word < layout.fixed.size()) return bool{layout.fixed[word]};
    return !layout.element.empty() && layout.element[(word - layout.fixed.size()) % layout.element.size()];
  });
}

std::vector<RoundingBounds::Choice> choicesOf(const Shadows& shadows, const Bytecode& code, const kernel::Module& module,
                                              const std::string& kernel, std::array<uint32_t, 3> groups) {
  std::vector<RoundingBounds::Choice> choices;
  for (const auto& [site, choice] : shadows.unstable()) {
    choices.push_back(
        {.where = placeOf(site, module, kernel), .count = choice.count, .invocation = textOf(choice.invocation, code, groups)});
  }
  return choices;
}

std::vector<Finding> findingsOf(const Watch& watch, const Bytecode& code, const kernel::Module& module, const std::string& kernel,
                                std::array<uint32_t, 3> groups) {
  const Writer writer(code, module, kernel, groups);
  std::vector<Finding> findings;
  for (const Sighting& sighting : watch.sightings()) findings.push_back(writer.finding(sighting));
  if (!module.source.empty()) dropAllowed(findings, module.source);
  return findings;
}

}  // namespace lockstep::reference
