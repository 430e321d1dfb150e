// SPDX-License-Identifier: Apache-2.0
// What holds of a program at every stage: ids, places, ranges, levels.
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <tuple>

#include "ir/graph/op_def.h"
#include "ir/graph/text.h"
#include "ir/program/program.h"
#include "ir/program/text.h"

namespace lockstep::program {
namespace {

constexpr uint64_t kPlacement = 256;  ///< alignment in bytes of a buffer in its arena
constexpr uint64_t kWord = 4;

// [offset, offset + size) lies in [0, limit), without overflow.
bool fits(uint64_t offset, uint64_t size, uint64_t limit) { return offset <= limit && size <= limit - offset; }

// Bytes that a command touches. Before placement a buffer is a space of its own.
struct Touch {
  bool placed = false;
  size_t space = 0;             ///< arena or buffer
  uint64_t begin = 0, end = 0;  ///< in the first iteration
  int64_t step = 0;             ///< bytes that it moves per iteration
  uint64_t low = 0, high = 0;   ///< in all iterations
  bool writes = false;
  size_t command = 0;
  [[nodiscard]] auto key() const { return std::tie(placed, space, low, high, command); }
};

class StructureValidator {
 public:
  explicit StructureValidator(const Program& program) : program_(program), problems_(program) {}

  Status run() {
    parameters();
    arenas();
    buffers();
    constants();
    kernels();
    ports(program_.inputs, &TextLines::inputs, ArenaRole::Input);
    ports(program_.outputs, &TextLines::outputs, ArenaRole::Output);
    if (problems_.none()) checkSteps(program_, problems_);
    loops();
    for (size_t i = 0; i < program_.commands.size(); ++i) command(i);
    // Bytes can be compared only when everything above holds.
    if (problems_.none()) {
      levels();
      for (size_t i = 0; i < program_.commands.size(); ++i) aliases(i);
    }
    return problems_.status();
  }

 private:
  void parameters() {
    std::set<std::string_view> names;
    for (const graph::ParameterInfo& parameter : program_.parameters) {
      if (!names.insert(parameter.name).second) {
        problems_.add(&TextLines::arenas, 0, "program.parameter", fmt::format("parameter {} is declared twice", parameter.name));
      }
      if (std::string problem = typeProblem(parameter.type); !problem.empty()) {
        problems_.add(&TextLines::arenas, 0, "program.parameter", fmt::format("parameter {}: {}", parameter.name, problem));
      }
    }
  }

  static std::string typeProblem(const graph::TensorType& type) {
    for (const graph::Dim& dim : type.shape.dims()) {
      if (dim.isSymbol()) return "an extent is a symbol, but programs know only integers";
    }
    return graph::typeProblem(type);
  }

  void arenas() {
    for (size_t i = 0; i < program_.arenas.size(); ++i) {
      if (program_.arenas[i].size % kWord != 0)
        problems_.add(&TextLines::arenas, i, "program.arena", "the size of an arena is not a multiple of 4");
    }
  }

  void buffers() {
    for (size_t i = 0; i < program_.buffers.size(); ++i) {
      const Buffer& buffer = program_.buffers[i];
      auto wrong = [&](std::string message) {
        problems_.add(&TextLines::buffers, i, "program.buffer", fmt::format("buffer {} {}", quote(buffer.name), message));
      };
      if (std::string problem = typeProblem(buffer.type); !problem.empty()) {
        wrong("has a type that cannot be: " + problem);
        continue;
      }
      if (buffer.size == 0 || buffer.size % kWord != 0) wrong("has a size that is not a positive multiple of 4");
      if (buffer.size < buffer.type.byteSize())
        wrong(fmt::format("has {} bytes, but its type takes {}", buffer.size, buffer.type.byteSize()));
      if (!buffer.arena.valid()) continue;
      if (buffer.arena.index() >= program_.arenas.size()) {
        wrong("lies in an arena that does not exist");
        continue;
      }
      const Arena& arena = program_[buffer.arena];
      if (arena.role != buffer.role)
        wrong(fmt::format("is for {}, but lies in an arena for {}", toString(buffer.role), toString(arena.role)));
      if (buffer.offset % kPlacement != 0) wrong(fmt::format("has offset {}, which is not a multiple of {}", buffer.offset, kPlacement));
      if (!fits(buffer.offset, buffer.size, arena.size)) wrong(fmt::format("ends beyond its arena of {} bytes", arena.size));
    }
  }

  void constants() {
    std::set<BufferId> filled;
    for (size_t i = 0; i < program_.constants.size(); ++i) {
      const ConstantData& data = program_.constants[i];
      auto wrong = [&](std::string message) { problems_.add(&TextLines::constants, i, "program.constant", std::move(message)); };
      if (data.buffer.index() >= program_.buffers.size()) {
        wrong("constant data belongs to a buffer that does not exist");
        continue;
      }
      const Buffer& buffer = program_[data.buffer];
      if (!filled.insert(data.buffer).second) wrong(fmt::format("buffer {} has constant data twice", quote(buffer.name)));
      if (buffer.role != ArenaRole::Constant)
        wrong(fmt::format("buffer {} has constant data, but is for {}", quote(buffer.name), toString(buffer.role)));
      if (data.words.size() * kWord > buffer.size || data.words.size() * kWord < buffer.type.byteSize()) {
        wrong(
            fmt::format("buffer {} of {} bytes has constant data of {} bytes", quote(buffer.name), buffer.size, data.words.size() * kWord));
      }
    }
    for (size_t i = 0; i < program_.buffers.size(); ++i) {
      if (program_.buffers[i].role == ArenaRole::Constant && !filled.contains(BufferId(i))) {
        problems_.add(&TextLines::buffers, i, "program.constant",
                      fmt::format("constant buffer {} has no data", quote(program_.buffers[i].name)));
      }
    }
  }

  void kernels() {
    for (size_t i = 0; i < program_.kernels.size(); ++i) {
      const auto* symbolic = std::get_if<SymbolicKernel>(&program_.kernels[i].code);
      if (symbolic == nullptr) continue;
      if (Status status = graph::validate(symbolic->body); !status.ok()) {
        problems_.addKernel(i, status.diagnostics());
      } else if (const std::string problem =
                     graph::misfit(kindOf(symbolic->plan), symbolic->body, symbolic->body.body().nodes, /*inputs=*/true);
                 !problem.empty()) {
        problems_.add(&TextLines::kernels, i, "program.plan", problem,
                      "give the kernel a plan that fits its body, or run the pass 'schedule' on the graph again");
      }
    }
  }

  template <class Port>
  void ports(const std::vector<Port>& list, Problems::List lines, ArenaRole role) {
    std::set<std::string_view> names;
    for (size_t i = 0; i < list.size(); ++i) {
      auto wrong = [&](std::string message) {
        problems_.add(lines, i, "program.port", fmt::format("{} {} {}", toString(role), quote(list[i].name), message));
      };
      if (!names.insert(list[i].name).second) wrong("is declared twice");
      if (list[i].buffer.index() >= program_.buffers.size()) {
        wrong("has a buffer that does not exist");
      } else if (ArenaRole found = program_[list[i].buffer].role; found != role) {
        wrong(fmt::format("has a buffer for {}", toString(found)));
      }
    }
  }

  void loops() {
    for (size_t i = 0; i < program_.loops.size(); ++i) {
      const Loop& loop = program_.loops[i];
      auto wrong = [&](std::string message) { problems_.add(&TextLines::loops, i, "program.loop", std::move(message)); };
      if (loop.iterations == 0) wrong("a loop has no iterations");
      if (loop.last < loop.first || loop.last >= program_.levelCount())
        wrong(fmt::format("a loop has levels {}..{}, and the program {}", loop.first, loop.last, program_.levelCount()));
      if (i > 0 && loop.first <= program_.loops[i - 1].last) wrong("a loop begins before the one above it has ended");
    }
    if (const uint64_t runs = program_.runsInLoops(); runs > kMostRuns) {
      problems_.add(&TextLines::loops, program_.loops.size() - 1, "program.loop",
                    fmt::format("commands of loops run {} times, and the most is {}", runs, kMostRuns));
    }
  }

  void wrong(size_t index, std::string_view code, std::string message, std::string remedy = {}) {
    problems_.add(&TextLines::commands, index, std::string(code), fmt::format("{} {}", describe(program_, index), message),
                  std::move(remedy));
  }

  void command(size_t index) {
    const Command& command = program_.commands[index];
    if (index > 0 && command.level < program_.commands[index - 1].level)
      wrong(index, "program.level", "has a lower level than the one before");
    bool in_range = true;
    for (const Range& range : accesses(command)) in_range = validRange(index, range) && in_range;
    if (!in_range) return;
    if (const auto* dispatch = std::get_if<Dispatch>(&command.action)) {
      this->dispatch(index, *dispatch);
    } else if (const auto* copy = std::get_if<Copy>(&command.action)) {
      if (copy->source.size != copy->target.size) wrong(index, "program.copy", "copies between ranges of unequal sizes");
      if (overlap(touch(copy->source, index), touch(copy->target, index)))
        wrong(index, "program.copy", "copies between ranges that overlap");
    }
  }

  bool validRange(size_t index, const Range& range) {
    if (range.buffer.index() >= program_.buffers.size()) {
      wrong(index, "program.range", "uses a buffer that does not exist");
      return false;
    }
    const Buffer& buffer = program_[range.buffer];
    bool in_buffer = fits(range.offset, range.size, buffer.size);
    if (!in_buffer) {
      wrong(index, "program.range",
            fmt::format("uses bytes {}..{} of buffer {}, which has {}", range.offset, range.offset + range.size, quote(buffer.name),
                        buffer.size));
    }
    if (range.size == 0 || range.size % kWord != 0 || range.offset % kWord != 0) {
      wrong(index, "program.range", fmt::format("uses a range of buffer {} that is empty or not made of words", quote(buffer.name)));
    }
    in_buffer = validSteps(index, range, buffer) && in_buffer;
    if (range.access == kernel::Access::Write) wrong(index, "program.access", "has a range with access write; use read_write");
    return in_buffer;
  }

  /// Where a range moves, its place in the last iteration, and so those in between.
  bool validSteps(size_t index, const Range& range, const Buffer& buffer) {
    if (range.step == 0) return true;
    const Loop* loop = program_.loopOf(program_.commands[index].level);
    if (loop == nullptr) {
      wrong(index, "program.range", fmt::format("has a range of buffer {} that moves, outside of a loop", quote(buffer.name)));
      return false;
    }
    const uint64_t bytes = range.step < 0 ? uint64_t{0} - static_cast<uint64_t>(range.step) : static_cast<uint64_t>(range.step);
    const uint64_t rounds = loop->iterations == 0 ? 0 : loop->iterations - 1;
    const uint64_t room = range.step < 0 ? range.offset : buffer.size - std::min(buffer.size, range.offset + range.size);
    if (bytes % kWord == 0 && (rounds == 0 || bytes <= room / rounds)) return true;
    wrong(index, "program.range",
          fmt::format("moves {} bytes of buffer {} per iteration, which leads out of it or is not a multiple of 4", range.step,
                      quote(buffer.name)));
    return false;
  }

  void dispatch(size_t index, const Dispatch& dispatch) {
    if (dispatch.kernel.index() >= program_.kernels.size()) return wrong(index, "program.kernel", "runs a kernel that does not exist");
    for (uint32_t count : dispatch.groups) {
      if (count == 0) wrong(index, "program.groups", "runs no workgroup");
    }
    if (const auto* symbolic = std::get_if<SymbolicKernel>(&program_[dispatch.kernel].code)) symbolicBindings(index, dispatch, *symbolic);
  }

  // Bindings are the inputs of the body and then its outputs, which are written.
  void symbolicBindings(size_t index, const Dispatch& dispatch, const SymbolicKernel& kernel) {
    size_t inputs = 0;
    if (!kernel.body.regions.empty()) {
      for (graph::NodeId id : kernel.body.body().nodes) {
        bool is_input = id.index() < kernel.body.nodes.size() && kernel.body[id].op != nullptr &&
                        graph::leafKind(kernel.body[id]) == graph::LeafKind::Input;
        inputs += is_input ? 1 : 0;
      }
    }
    size_t expected = inputs + kernel.body.outputs.size();
    if (dispatch.bindings.size() != expected) {
      return wrong(index, "program.binding",
                   fmt::format("binds {} ranges, but kernel {} has {} inputs and {} outputs", dispatch.bindings.size(),
                               quote(program_[dispatch.kernel].name), inputs, kernel.body.outputs.size()));
    }
    for (size_t i = inputs; i < expected; ++i) {
      if (dispatch.bindings[i].access == kernel::Access::Read) {
        wrong(index, "program.access",
              fmt::format("binds output {} of kernel {} for reading only", i - inputs, quote(program_[dispatch.kernel].name)));
      }
    }
  }

  // Two bindings of a dispatch share bytes only when both are read. Before emit a result may be given the bytes of an operand: emit binds
  // it once.
  void aliases(size_t index) {
    const auto* dispatch = std::get_if<Dispatch>(&program_.commands[index].action);
    if (dispatch == nullptr) return;
    bool symbolic = std::holds_alternative<SymbolicKernel>(program_[dispatch->kernel].code);
    for (size_t i = 0; i < dispatch->bindings.size(); ++i) {
      const Range& a = dispatch->bindings[i];
      Touch first = touch(a, index);
      for (size_t j = i + 1; j < dispatch->bindings.size(); ++j) {
        const Range& b = dispatch->bindings[j];
        Touch second = touch(b, index);
        if (!overlap(first, second) || (!first.writes && !second.writes)) continue;
        bool in_place =
            first.begin == second.begin && first.end == second.end && first.step == second.step && first.writes != second.writes;
        if (symbolic && in_place) continue;
        wrong(index, "program.alias",
              fmt::format("writes bytes {}..{} of {}, which are in both binding {} and binding {}", std::max(first.begin, second.begin),
                          std::min(first.end, second.end), spaceName(first), i, j),
              "bind the bytes once, with access read_write, or give the result bytes of its own");
      }
    }
  }

  [[nodiscard]] std::string spaceName(const Touch& touch) const {
    return touch.placed ? "arena " + quote(program_.arenas[touch.space].name) : "buffer " + quote(program_.buffers[touch.space].name);
  }

  [[nodiscard]] Touch touch(const Range& range, size_t command) const {
    const Buffer& buffer = program_[range.buffer];
    bool placed = buffer.arena.valid();
    uint64_t begin = (placed ? buffer.offset : 0) + range.offset;
    const auto rounds = static_cast<int64_t>(program_.iterationsOf(program_.commands[command].level)) - 1;
    const auto moved = static_cast<uint64_t>(range.step * rounds);  // modulo 2^64 where it goes down
    return {.placed = placed,
            .space = placed ? buffer.arena.index() : range.buffer.index(),
            .begin = begin,
            .end = begin + range.size,
            .step = range.step,
            .low = range.step < 0 ? begin + moved : begin,
            .high = begin + range.size + (range.step > 0 ? moved : 0),
            .writes = range.access != kernel::Access::Read,
            .command = command};
  }
  static bool overlap(const Touch& a, const Touch& b) {
    if (a.placed != b.placed || a.space != b.space) return false;
    // Ranges that move alike are as far apart in every iteration as in the first.
    return a.step == b.step ? a.begin < b.end && b.begin < a.end : a.low < b.high && b.low < a.high;
  }
  static bool mayMeet(const Touch& a, const Touch& b) {
    return a.placed == b.placed && a.space == b.space && a.low < b.high && b.low < a.high;
  }

  void levels() {
    for (size_t begin = 0; begin < program_.commands.size();) {
      size_t end = begin;
      std::vector<Touch> touches;
      for (; end < program_.commands.size() && program_.commands[end].level == program_.commands[begin].level; ++end) {
        for (const Range& range : accesses(program_.commands[end])) touches.push_back(touch(range, end));
      }
      conflicts(std::move(touches));
      begin = end;
    }
  }

  // Sweeps the bytes in order; a touch can only meet those that have not ended.
  void conflicts(std::vector<Touch> touches) {
    std::sort(touches.begin(), touches.end(), [](const Touch& a, const Touch& b) { return a.key() < b.key(); });
    std::vector<Touch> open;
    std::set<std::pair<size_t, size_t>> reported;
    for (const Touch& next : touches) {
      std::erase_if(open, [&](const Touch& other) { return !mayMeet(other, next); });
      for (const Touch& other : open) {
        if (!overlap(other, next)) continue;
        if (other.command == next.command || (!other.writes && !next.writes)) continue;
        auto [first, second] = std::minmax(other.command, next.command);
        if (!reported.emplace(first, second).second) continue;
        wrong(second, "program.conflict",
              fmt::format("and {} of the same level touch bytes {}..{} of {}, and one writes them", describe(program_, first), next.begin,
                          std::min(next.end, other.end), spaceName(next)),
              "put one of them into a later level");
      }
      open.push_back(next);
    }
  }

  const Program& program_;
  Problems problems_;
};

}  // namespace

Status validateStructure(const Program& program) { return StructureValidator(program).run(); }

}  // namespace lockstep::program
