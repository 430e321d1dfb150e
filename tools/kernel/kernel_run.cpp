// SPDX-License-Identifier: Apache-2.0
#include "tools/kernel/kernel_run.h"

#include "tools/kernel/scalars.h"
#include "tools/kernel/schedules.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>

#include "backends/dispatch.h"
#include "console/options.h"
#include "frontend/io/npy.h"
#include "ir/kernel/isolate_entry.h"
#include "ir/kernel/queries.h"
#include "ir/support/narrow_float.h"
#include "passes/kernel/make_robust.h"

namespace lockstep::tools {
namespace {

using kernel::GlobalVariable;
using kernel::Scalar;
using kernel::TypeKind;

constexpr uint64_t kMaxBytes = uint64_t{1} << 31;

template <class T>
bool parseNumber(std::string_view text, T& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

/// The scalar of which an array of scalars, vectors or atomics is made, with the width of its rows; else nullopt.
struct Elements {
  Scalar scalar = Scalar::U32;
  uint32_t width = 1;
};
std::optional<Elements> elementsOf(const kernel::Module& module, kernel::TypeId type) {
  const kernel::Type& outer = module.types[type];
  const kernel::Type& inner = outer.kind == TypeKind::Array ? module.types[outer.element] : outer;
  if (inner.kind != TypeKind::Scalar && inner.kind != TypeKind::Vector && inner.kind != TypeKind::Atomic) return std::nullopt;
  if (inner.scalar == Scalar::Bool) return std::nullopt;
  // vec3 in an array has a hole after each element.
  if (inner.kind == TypeKind::Vector && inner.rows == 3) return std::nullopt;
  return Elements{.scalar = inner.scalar, .width = inner.kind == TypeKind::Vector ? inner.rows : 1u};
}

/// The same, where a result is shown, written and compared by its elements: those of f16 are taken as words.
std::optional<Elements> plainElementsOf(const kernel::Module& module, kernel::TypeId type) {
  const std::optional<Elements> elements = elementsOf(module, type);
  return elements && elements->scalar == Scalar::F16 ? std::nullopt : elements;
}

std::string describeVariable(const kernel::Module& module, const GlobalVariable& variable) {
  const std::string what = fmt::format("({}: {})", variable.name, module.types.toString(variable.type));
  const bool bound = kernel::isBound(variable.space);
  return bound ? fmt::format("binding {}.{} {}", variable.group, variable.binding, what) : "the immediate variable " + what;
}

Failure badSpec(const std::string& spec, std::string why) {
  return fail("run.bind", fmt::format("'{}' {}", spec, why), {},
              "write FILE.npy, zeros:BYTES, iota:TYPE[N], fill:TYPE[N]=V, or zeros, fill:V and list:V,... where the type has a size");
}

/// "f32[16]"
struct Extent {
  Scalar scalar = Scalar::F32;
  uint64_t count = 0;
};
std::optional<Extent> parseExtent(std::string_view text) {
  const size_t open = text.find('[');
  if (open == std::string_view::npos || !text.ends_with(']')) return std::nullopt;
  const std::optional<Scalar> scalar = kernel::findScalar(text.substr(0, open));
  Extent extent;
  if (!scalar || *scalar == Scalar::Bool) return std::nullopt;
  extent.scalar = *scalar;
  if (!parseNumber(text.substr(open + 1, text.size() - open - 2), extent.count) || extent.count == 0 || extent.count * 4 > kMaxBytes) {
    return std::nullopt;
  }
  return extent;
}

/// A number as the bits of a scalar, of an f16 in the low half; nothing when it does not fit.
std::optional<uint32_t> bitsOf(Scalar scalar, double value) {
  if (scalar == Scalar::F32) return std::bit_cast<uint32_t>(static_cast<float>(value));
  if (scalar == Scalar::F16) {
    const uint32_t bits = doubleToHalf(value);
    return std::isfinite(value) && !std::isfinite(halfToFloat(static_cast<uint16_t>(bits))) ? std::nullopt : std::optional(bits);
  }
  if (value != static_cast<double>(static_cast<int64_t>(value))) return std::nullopt;
  if (scalar == Scalar::I32 && value >= INT32_MIN && value <= INT32_MAX) return static_cast<uint32_t>(static_cast<int32_t>(value));
  if (scalar == Scalar::U32 && value >= 0 && value <= UINT32_MAX) return static_cast<uint32_t>(value);
  return std::nullopt;
}

/// number(0), number(1), ...; nothing when one does not fit.
template <class Number>
std::optional<Bytes> fillBytes(const Extent& extent, Number number) {
  const uint64_t size = kernel::byteSize(extent.scalar);
  Bytes bytes(extent.count * size);
  for (uint64_t i = 0; i < extent.count; ++i) {
    const std::optional<uint32_t> bits = bitsOf(extent.scalar, number(i));
    if (!bits) return std::nullopt;
    std::memcpy(bytes.data() + i * size, &*bits, size);
  }
  return bytes;
}

/// All numbers of a sized type, in order.
std::vector<ScalarPlace> placesOf(const kernel::TypeTable& types, kernel::TypeId type) {
  std::vector<ScalarPlace> places;
  forEachScalar(types, type, 0, types.sizeOf(type), [&](const ScalarPlace& place) { places.push_back(place); });
  return places;
}

/// "fill:1" of a type with different scalars.
Result<Bytes> fillPlaces(const std::string& spec, const kernel::Module& module, const GlobalVariable& variable, double value) {
  const std::vector<ScalarPlace> places = placesOf(module.types, variable.type);
  Bytes bytes((module.types.sizeOf(variable.type) + 3) / 4 * 4);
  for (const ScalarPlace& place : places) {
    const std::optional<uint32_t> bits = bitsOf(place.scalar, value);
    if (!bits) return badSpec(spec, fmt::format("has a number that is no {}", kernel::toString(place.scalar)));
    std::memcpy(bytes.data() + place.offset, &*bits, kernel::byteSize(place.scalar));
  }
  return bytes;
}

/// "list:0.5,1,7": a number for each scalar of the type.
Result<Bytes> fromList(const std::string& spec, const kernel::Module& module, const GlobalVariable& variable) {
  if (module.types.isRuntimeSized(variable.type)) {
    return badSpec(spec, fmt::format("is no value for {}, which has no size", describeVariable(module, variable)));
  }
  const std::vector<ScalarPlace> places = placesOf(module.types, variable.type);
  Bytes bytes((module.types.sizeOf(variable.type) + 3) / 4 * 4);
  std::string_view rest = std::string_view(spec).substr(sizeof("list:") - 1);
  size_t given = 0;
  for (bool more = true; more; ++given) {
    const size_t end = rest.find(',');
    double value = 0;
    if (!parseNumber(rest.substr(0, end), value)) return badSpec(spec, fmt::format("has '{}', which is no number", rest.substr(0, end)));
    more = end != std::string_view::npos;
    rest.remove_prefix(more ? end + 1 : rest.size());
    if (given >= places.size()) continue;
    const ScalarPlace& place = places[given];
    const std::optional<uint32_t> bits = bitsOf(place.scalar, value);
    if (!bits) return badSpec(spec, fmt::format("has {} for number {}, which is no {}", value, given + 1, kernel::toString(place.scalar)));
    std::memcpy(bytes.data() + place.offset, &*bits, kernel::byteSize(place.scalar));
  }
  if (given == places.size()) return bytes;
  return badSpec(spec, fmt::format("has {} numbers, but {} takes {}", given, describeVariable(module, variable), places.size()));
}

Result<Bytes> fromNpy(const std::string& path, const kernel::Module& module, const GlobalVariable& variable) {
  LS_TRY(io::Array array, io::readNpy(path));
  const std::optional<Elements> any = elementsOf(module, variable.type);
  if (any && any->scalar == Scalar::F16 && array.type == io::ElementType::F16) {
    if (array.data.size() % sizeof(uint32_t) == 0) return std::move(array.data);
    return fail("run.bind", fmt::format("'{}' is {}, an odd number of f16, which fill no whole words", path, io::describe(array)), {},
                "save one more");
  }
  if (io::byteSize(array.type) != sizeof(uint32_t)) {
    return fail("run.bind", fmt::format("'{}' is {}, which {} cannot read", path, io::describe(array), describeVariable(module, variable)),
                {}, "save it as float32, int32 or uint32, or as float16 for elements of f16");
  }
  const std::optional<Elements> elements = plainElementsOf(module, variable.type);
  if (elements && io::toString(array.type) != kernel::toString(elements->scalar)) {
    return fail("run.bind",
                fmt::format("'{}' is {} but {} holds {}", path, io::describe(array), describeVariable(module, variable),
                            kernel::toString(elements->scalar)),
                {}, "convert the file with astype");
  }
  return std::move(array.data);
}

}  // namespace

std::string toString(Slot slot) { return fmt::format("{}.{}", slot.group, slot.binding); }

Result<Slot> parseSlot(const std::string& text) {
  Slot slot;
  const size_t dot = text.find('.');
  const bool good = dot == std::string::npos ? parseNumber(text, slot.binding)
                                             : parseNumber(std::string_view(text).substr(0, dot), slot.group) &&
                                                   parseNumber(std::string_view(text).substr(dot + 1), slot.binding);
  if (!good) return fail("run.bind", fmt::format("'{}' is not a group and binding", text), {}, "write GROUP.BINDING, for example 0.1");
  return slot;
}

Result<KernelRun::WhyTarget> parseWhy(const std::string& text) {
  const size_t open = text.find('[');
  KernelRun::WhyTarget target;
  const bool closed = open != std::string::npos && text.ends_with(']');
  if (!closed || !parseNumber(std::string_view(text).substr(open + 1, text.size() - open - 2), target.index))
    return console::usage("value", fmt::format("--why '{}' does not name a word of a binding", text),
                          "write GROUP.BINDING[N], for example 0.1[303]");
  LS_TRY(target.slot, console::asUsage(parseSlot(text.substr(0, open))));
  return target;
}

Result<std::array<uint32_t, 3>> parseGroups(const std::string& text) {
  std::array<uint32_t, 3> groups{1, 1, 1};
  size_t axis = 0, start = 0;
  bool good = true;
  while (good && start <= text.size()) {
    const size_t end = std::min(text.find(',', start), text.size());
    good = axis < 3 && parseNumber(std::string_view(text).substr(start, end - start), groups[std::min<size_t>(axis, 2)]) &&
           groups[std::min<size_t>(axis, 2)] > 0;
    ++axis;
    start = end + 1;
  }
  if (!good)
    return fail("run.dispatch", fmt::format("'{}' is not a number of workgroups", text), {}, "write X, X,Y or X,Y,Z, each at least 1");
  return groups;
}

Result<Bytes> makeBytes(const std::string& spec, const kernel::Module& module, const GlobalVariable& variable) {
  const bool sized = !module.types.isRuntimeSized(variable.type);
  const uint64_t type_size = (module.types.sizeOf(variable.type) + 3) / 4 * 4;
  const std::string_view text = spec;
  if (text == "zeros" || text.starts_with("zeros:") || text.starts_with("uninit:")) {
    uint64_t size = type_size;
    const std::string_view number = text.substr(text.find(':') + 1);
    if (text == "zeros") {
      if (!sized) return badSpec(spec, fmt::format("gives no size for {}", describeVariable(module, variable)));
    } else if (!parseNumber(number, size) || size == 0 || size % 4 != 0 || size > kMaxBytes) {
      return badSpec(spec, "needs a number of bytes that is a multiple of 4 and at most 2 GiB");
    }
    return Bytes(size);
  }
  if (text.starts_with("iota:")) {
    const std::optional<Extent> extent = parseExtent(text.substr(5));
    if (!extent) return badSpec(spec, "needs a type and a number of elements such as f32[16]");
    if (extent->count * kernel::byteSize(extent->scalar) % 4 != 0)
      return badSpec(spec, "has an odd number of f16, which fill no whole words");
    std::optional<Bytes> bytes = fillBytes(*extent, [](uint64_t i) { return static_cast<double>(i); });
    if (!bytes) return badSpec(spec, "has elements that do not fit their type");
    return *std::move(bytes);
  }
  if (text.starts_with("fill:")) {
    const size_t equals = text.find('=');
    const std::string_view number = equals == std::string_view::npos ? text.substr(5) : text.substr(equals + 1);
    std::optional<Extent> extent;
    if (equals != std::string_view::npos) {
      extent = parseExtent(text.substr(5, equals - 5));
    } else if (const std::optional<Elements> elements = elementsOf(module, variable.type); elements && sized) {
      extent = Extent{.scalar = elements->scalar, .count = type_size / kernel::byteSize(elements->scalar)};
    }
    if (!extent && (equals != std::string_view::npos || !sized)) {
      return badSpec(spec, fmt::format("gives no type and size for {}", describeVariable(module, variable)));
    }
    double value = 0;
    if (!parseNumber(number, value)) return badSpec(spec, "has no number");
    if (!extent) return fillPlaces(spec, module, variable, value);
    if (extent->count * kernel::byteSize(extent->scalar) % 4 != 0)
      return badSpec(spec, "has an odd number of f16, which fill no whole words");
    std::optional<Bytes> bytes = fillBytes(*extent, [&](uint64_t) { return value; });
    if (!bytes) return badSpec(spec, fmt::format("has a number that is no {}", kernel::toString(extent->scalar)));
    return *std::move(bytes);
  }
  if (text.starts_with("list:")) return fromList(spec, module, variable);
  if (!text.ends_with(".npy")) return badSpec(spec, "is not a value for a binding");
  return fromNpy(spec, module, variable);
}

bool isPlainArray(const kernel::Module& module, const GlobalVariable& variable) {
  return plainElementsOf(module, variable.type).has_value();
}

io::Array toArray(const Bytes& bytes, const kernel::Module& module, const GlobalVariable& variable) {
  const Elements elements = plainElementsOf(module, variable.type).value_or(Elements{});
  const io::ElementType type = io::findElementType(kernel::toString(elements.scalar)).value_or(io::ElementType::U32);
  const auto count = static_cast<int64_t>(bytes.size() / 4);
  io::Array array{.type = type, .shape = {count}, .data = bytes};
  array.data.resize(static_cast<size_t>(count) * 4);
  if (elements.width > 1 && count % elements.width == 0) array.shape = {count / elements.width, elements.width};
  return array;
}

Location storeTo(const kernel::Module& module, const kernel::GlobalVariable& variable) {
  for (const kernel::Instruction& x : module.instructions) {
    const bool writes =
        x.op == kernel::Op::Store || (kernel::info(x.op).group == kernel::OpGroup::Atomic && x.op != kernel::Op::AtomicLoad);
    if (writes && x.location != 0 && kernel::rootOf(module, x.operands[0]) == variable.value) return module.locations[x.location - 1];
  }
  return {};
}

const GlobalVariable* findVariable(const kernel::Module& module, Slot slot) {
  for (const GlobalVariable& variable : module.globals) {
    if (kernel::isBound(variable.space) && variable.group == slot.group && variable.binding == slot.binding) return &variable;
  }
  return nullptr;
}

namespace {

/// Of a module with one entry point.
std::string entryName(const kernel::Module& module) {
  for (const kernel::Function& function : module.functions) {
    if (function.workgroup_size) return function.name;
  }
  return {};
}

/// A binding that the module has and the entry point does not use.
Failure unusedBinding(const kernel::Module& module, const std::string& entry, Slot slot) {
  std::vector<std::string> users;
  for (const kernel::Function& function : module.functions) {
    if (!function.workgroup_size) continue;
    const Result<kernel::Module> part = kernel::isolateEntry(module, function.name);
    if (part.ok() && findVariable(*part, slot) != nullptr) users.push_back(fmt::format("'{}'", function.name));
  }
  const std::string who =
      users.empty() ? "no entry point does" : fmt::format("{} {}", fmt::join(users, ", "), users.size() == 1 ? "does" : "do");
  return fail("run.bind", fmt::format("entry point '{}' uses no variable at binding {}; {}", entry, toString(slot), who), {},
              "leave out its --bind: each entry point has the bindings that it uses, as `lockstep reflect` lists them");
}

Status checkGroups(const std::array<uint32_t, 3>& groups, const DeviceInfo& device) {
  const uint32_t most = device.profile.max_groups_per_dimension;
  for (size_t axis = 0; axis < groups.size(); ++axis) {
    if (groups[axis] <= most) continue;
    const bool fits = axis == 0 && groups[1] == 1 && groups[0] / most < most;
    return fail("run.dispatch",
                fmt::format("{} workgroups in {} are more than the {} that '{}' allows (maxComputeWorkgroupsPerDimension)", groups[axis],
                            "xyz"[axis], most, device.name),
                {},
                fits ? fmt::format("split them over y: --dispatch {},{}, and let the kernel compute its index from both and test it",
                                   (groups[0] + groups[0] / most) / (groups[0] / most + 1), groups[0] / most + 1)
                     : "split them over the dimensions, or let each invocation do more");
  }
  return Success{};
}

/// Only the reference looks at each index while it runs.
Result<kernel::OutOfBounds> policyOn(const DeviceInfo& device, std::optional<kernel::OutOfBounds> wanted) {
  const bool notices = device.kind == DeviceKind::Reference;
  if (!wanted) return notices ? kernel::OutOfBounds::Trap : kernel::OutOfBounds::Clamp;
  if (*wanted != kernel::OutOfBounds::Trap || notices) return *wanted;
  return console::usage(
      "value", fmt::format("--out-of-bounds trap: '{}' cannot report an index out of bounds, only the reference does", device.name),
      "add --device reference, or choose clamp or zero");
}

Result<std::vector<WhyLine>> explain(const KernelRun& run, const kernel::ValidModule& used, KernelDispatch dispatch,
                                     const std::vector<Bytes>& initial) {
  dispatch.module = passes::makeRobust(*used, kernel::OutOfBounds::Clamp);
  LS_TRY(const program::ValidProgram program, makeProgram(dispatch));
  const auto bound = run.bytes.find(run.why->slot);
  if (bound == run.bytes.end()) return fail("why.word", fmt::format("binding {} of --why has no --bind", toString(run.why->slot)));
  return why(program, initial, static_cast<size_t>(std::distance(run.bytes.begin(), bound)), run.why->index);
}

bool isEndless(const Finding& finding) { return finding.diagnostic.code == "loop.endless" || finding.diagnostic.code == "order.waits"; }

/// Other schedules and subgroup sizes. The program of the sanitizer looks at indices itself; theirs clamps them.
Result<std::vector<Finding>> runOtherwise(const KernelRun& run, const kernel::ValidModule& used, KernelDispatch dispatch,
                                          const std::vector<Bytes>& initial, const std::vector<Bytes>& results,
                                          const std::vector<Finding>& found) {
  dispatch.module = passes::makeRobust(*used, kernel::OutOfBounds::Clamp);
  LS_TRY(const program::ValidProgram program, makeProgram(dispatch));
  std::vector<Slot> slots;
  for (const auto& [slot, bytes] : run.bytes) slots.push_back(slot);
  const ScheduleInput input{.module = *used,
                            .program = program,
                            .initial = initial,
                            .results = results,
                            .slots = slots,
                            .loop_budget = run.sanitize->loop_budget,
                            .ends = std::ranges::none_of(found, isEndless)};
  LS_TRY(std::vector<Finding> findings, findScheduleDependence(input, run.schedules, run.schedule_seed));
  if (run.sanitize->checks.subgroups) {
    LS_TRY(std::vector<Finding> more, findSubgroupDependence(input));
    std::ranges::move(more, std::back_inserter(findings));
  }
  return findings;
}

/// What is wrong with two variables in one buffer; nothing if neither is written.
std::optional<Finding> findAlias(const kernel::Module& module, Slot slot, Slot other) {
  const GlobalVariable *one = findVariable(module, slot), *two = findVariable(module, other);
  const auto writes = [](const GlobalVariable* variable) {
    return variable != nullptr && variable->space == kernel::AddressSpace::Storage && variable->access != kernel::Access::Read;
  };
  if (two == nullptr || (!writes(one) && !writes(two))) return std::nullopt;
  const GlobalVariable& written = writes(one) ? *one : *two;
  Finding finding;
  finding.diagnostic = {
      .code = "memory.aliased",
      .message = fmt::format("{} is written and lies in the same memory as {}", written.name, &written == one ? two->name : one->name),
      .where = storeTo(module, written),
      .notes = {},
      .remedy = "bind different buffers, or different parts of one"};
  return finding;
}

Result<std::unique_ptr<Backend>> open(const DeviceInfo& device, const std::optional<SanitizeOptions>& sanitize) {
  if (!sanitize) return openDevice(device);
  return openSanitizer(*sanitize);
}

}  // namespace

bool hasPrint(const kernel::Module& module) {
  return std::ranges::any_of(module.instructions, [](const kernel::Instruction& x) { return x.op == kernel::Op::Print; });
}

Result<KernelResult> runKernel(KernelRun run) {
  LS_TRY(kernel::Module module, kernel::isolateEntry(run.module, run.entry));
  LS_TRY(const kernel::ValidModule used, kernel::validate(std::move(module)));
  if (run.sanitize && run.device != "auto" && run.device != "reference")
    return console::usage("device", fmt::format("--sanitize runs on the reference, not on '{}'", run.device), "leave out --device");
  LS_TRY(const ChosenDevice chosen, chooseDevice(run.sanitize ? "reference" : run.device));
  // The sanitizer looks at the indices themselves.
  if (run.sanitize) run.out_of_bounds = kernel::OutOfBounds::Trap;
  LS_TRY(const kernel::OutOfBounds policy, policyOn(chosen.info, run.out_of_bounds));
  KernelDispatch dispatch{
      .module = passes::makeRobust(*used, policy), .entry = {}, .groups = run.groups, .bindings = {}, .buffer_sizes = {}};
  const auto immediate = std::ranges::find(used->globals, kernel::AddressSpace::Immediate, &GlobalVariable::space);
  if (immediate != used->globals.end() && !run.immediate.empty()) {
    LS_TRY(dispatch.immediates, makeBytes(run.immediate, *used, *immediate));
  } else if (!run.immediate.empty()) {
    return fail("run.bind", fmt::format("entry point '{}' uses no immediate variable", entryName(*used)), {}, "leave out --immediate");
  }
  std::vector<Bytes> buffers;
  std::vector<Finding> findings;
  std::set<size_t> unwritten;
  for (auto& [slot, bytes] : run.bytes) {
    if (findVariable(*used, slot) == nullptr) return unusedBinding(run.module, entryName(*used), slot);
    if (run.sanitize && run.unwritten.contains(slot)) unwritten.insert(buffers.size());
    dispatch.bindings.push_back(
        {.group = slot.group, .binding = slot.binding, .buffer = buffers.size(), .offset = 0, .size = bytes.size()});
    dispatch.buffer_sizes.push_back(bytes.size());
    buffers.push_back(std::move(bytes));
  }
  for (const auto& [slot, other] : run.aliases) {
    if (findVariable(*used, slot) == nullptr) return unusedBinding(run.module, entryName(*used), slot);
    const auto target = std::ranges::find_if(
        dispatch.bindings, [&](const BufferBinding& one) { return Slot{.group = one.group, .binding = one.binding} == other; });
    if (target == dispatch.bindings.end())
      return fail("run.bind", fmt::format("binding {} is an alias of {}, which has no --bind", toString(slot), toString(other)));
    BufferBinding binding{.group = slot.group, .binding = slot.binding, .buffer = target->buffer, .offset = 0, .size = target->size};
    const std::optional<Finding> aliased = run.sanitize ? findAlias(*used, slot, other) : std::nullopt;
    if (aliased && run.sanitize->checks.memory) findings.push_back(*aliased);
    // No device runs a kernel that writes what it reads through another name; so that the rest can be looked at, it gets a copy.
    if (aliased) {
      binding.buffer = buffers.size();
      dispatch.buffer_sizes.push_back(buffers[target->buffer].size());
      buffers.push_back(buffers[target->buffer]);
    }
    dispatch.bindings.push_back(binding);
  }
  LS_CHECK(checkGroups(run.groups, chosen.info));
  LS_TRY(const program::ValidProgram program, makeProgram(dispatch));
  LS_TRY(const std::unique_ptr<Backend> backend, open(chosen.info, run.sanitize));
  LS_TRY(PreparedDispatch prepared, PreparedDispatch::make(*backend, program));
  const std::vector<Bytes> initial = run.sanitize || run.why ? buffers : std::vector<Bytes>();
  const Status ran = prepared.run(buffers, unwritten);
  std::optional<Printed> printed = prepared.takePrinted();
  if (printed && run.on_print) run.on_print(*std::move(printed));
  if (!ran.ok()) return ran.failure();
  if (run.sanitize) {
    std::ranges::move(prepared.takeFindings(), std::back_inserter(findings));
    LS_TRY(std::vector<Finding> more, runOtherwise(run, used, dispatch, initial, buffers, findings));
    std::ranges::move(more, std::back_inserter(findings));
  }
  std::vector<WhyLine> reasons;
  if (run.why) {
    LS_TRY(reasons, explain(run, used, dispatch, initial));
  }
  KernelResult result{.bytes = std::move(run.bytes), .device = chosen.info.name, .seconds = {}, .findings = std::move(findings)};
  if (run.sanitize && run.sanitize->checks.errors) {
    size_t buffer = 0;
    for (const auto& [slot, bytes] : result.bytes) {
      RoundingBounds bounds = prepared.bounds(buffer++);
      const GlobalVariable& variable = *findVariable(*used, slot);
      const bool integers = isPlainArray(*used, variable) && toArray(bytes, *used, variable).type != io::ElementType::F32;
      const bool knows = !integers && std::ranges::any_of(bounds.values, [](double value) { return !std::isnan(value); });
      if (knows) result.rounding.emplace(slot, std::move(bounds));
    }
    result.unstable = prepared.takeUnstableChoices();
  }
  for (size_t i = 0; i < run.repeat; ++i) {
    LS_TRY(const double seconds, prepared.time());
    result.seconds.push_back(seconds);
  }
  result.why = std::move(reasons);
  size_t index = 0;
  for (auto& [slot, bytes] : result.bytes) bytes = std::move(buffers[index++]);
  return result;
}

}  // namespace lockstep::tools
