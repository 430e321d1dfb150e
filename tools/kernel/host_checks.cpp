// SPDX-License-Identifier: Apache-2.0
#include "tools/kernel/host_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <iterator>

#include "frontend/io/file.h"
#include "frontend/io/npy.h"
#include "ir/kernel/isolate_entry.h"
#include "tools/kernel/layout_text.h"

namespace lockstep::tools {
namespace {

using kernel::GlobalVariable;
using kernel::TypeId;
using kernel::TypeKind;
using Kind = wgsl::ContractPart::Kind;

/// The bytes that a run binds to a variable; null where there are none.
const Bytes* bytesOf(const KernelRun& run, const GlobalVariable& variable) {
  Slot slot{.group = variable.group, .binding = variable.binding};
  if (const auto alias = run.aliases.find(slot); alias != run.aliases.end()) slot = alias->second;
  const auto bound = run.bytes.find(slot);
  return kernel::isBound(variable.space) && bound != run.bytes.end() ? &bound->second : nullptr;
}

/// What the names of contracts stand for in a run.
class HostValues {
 public:
  HostValues(const KernelRun& run, const kernel::Module& used) : run_(run), used_(used) {
    const auto immediate = std::ranges::find(used.globals, kernel::AddressSpace::Immediate, &GlobalVariable::space);
    if (immediate == used.globals.end() || run.immediate.empty()) return;
    // What is wrong with the value is said when the kernel runs.
    if (const Result<Bytes> bytes = makeBytes(run.immediate, used, *immediate); bytes.ok()) immediate_ = *bytes;
  }

  [[nodiscard]] const GlobalVariable* find(const std::string& name) const {
    const auto found = std::ranges::find(used_.globals, name, &GlobalVariable::name);
    return found == used_.globals.end() ? nullptr : &*found;
  }

  [[nodiscard]] std::optional<int64_t> operator()(const wgsl::ContractPart& part) const {
    if (part.kind == Kind::Workgroups) return run_.groups[part.axis];
    if (part.kind == Kind::WorkgroupSize) return (*used_.entryPoint()->workgroup_size)[part.axis];
    const GlobalVariable* variable = find(part.path[0]);
    if (variable == nullptr) return std::nullopt;
    const bool immediate = variable->space == kernel::AddressSpace::Immediate;
    const Bytes* bytes = immediate ? &immediate_ : bytesOf(run_, *variable);
    if (bytes == nullptr || bytes->empty()) return std::nullopt;
    if (part.kind == Kind::Size) return static_cast<int64_t>(bytes->size());
    return part.kind == Kind::Length ? lengthOf(*variable, *bytes) : integerAt(part, *variable, *bytes);
  }

 private:
  [[nodiscard]] std::optional<int64_t> lengthOf(const GlobalVariable& variable, const Bytes& bytes) const {
    const kernel::TypeTable& types = used_.types;
    const RuntimeArray array = runtimeArrayOf(types, variable.type);
    if (array.type.valid()) {
      return bytes.size() < array.offset ? 0 : static_cast<int64_t>((bytes.size() - array.offset) / types.strideOf(array.type));
    }
    const kernel::Type& type = types[variable.type];
    const TypeId last = type.kind == TypeKind::Struct ? type.members.back().type : variable.type;
    return types[last].kind == TypeKind::Array ? std::optional<int64_t>(types[last].count) : std::nullopt;
  }

  /// NAME.member.member, the components of vectors among them.
  [[nodiscard]] std::optional<int64_t> integerAt(const wgsl::ContractPart& part, const GlobalVariable& variable, const Bytes& bytes) const {
    TypeId id = variable.type;
    uint64_t offset = 0;
    kernel::TypeTable types = used_.types;
    for (size_t i = 1; i < part.path.size(); ++i) {
      const kernel::Type& type = types[id];
      if (type.kind == TypeKind::Struct) {
        const auto member = std::ranges::find(type.members, part.path[i], &kernel::Member::name);
        if (member == type.members.end()) return std::nullopt;
        offset += member->offset;
        id = member->type;
        continue;
      }
      const size_t component = part.path[i].size() == 1 ? std::string_view("xyzw").find(part.path[i]) : std::string_view::npos;
      if (type.kind != TypeKind::Vector || component >= type.rows) return std::nullopt;
      offset += component * kernel::byteSize(type.scalar);
      id = types.scalar(type.scalar);
    }
    const kernel::Type& type = types[id];
    const bool number = type.kind == TypeKind::Scalar || type.kind == TypeKind::Atomic;
    uint32_t word = 0;
    if (!number || offset + sizeof(word) > bytes.size()) return std::nullopt;
    std::memcpy(&word, bytes.data() + offset, sizeof(word));
    if (type.scalar == kernel::Scalar::U32) return int64_t{word};
    return type.scalar == kernel::Scalar::I32 ? std::optional<int64_t>(static_cast<int32_t>(word)) : std::nullopt;
  }

  const KernelRun& run_;
  const kernel::Module& used_;
  Bytes immediate_;
};

std::string dispatchRemedy(const wgsl::BrokenContract& broken) {
  std::string numbers;
  for (const std::optional<int64_t>& wanted : broken.wanted) {
    if (!wanted || *wanted < 1) return "change the number of workgroups, or the buffers that it follows from";
    numbers += fmt::format("{}{}", numbers.empty() ? "" : ",", *wanted);
  }
  return fmt::format("dispatch {}: --dispatch {}", numbers, numbers);
}

/// Bytes of the scalars of a type without the holes between them; 0 where that is not a question.
uint64_t packedSize(const kernel::TypeTable& types, TypeId id) {
  const kernel::Type& type = types[id];
  if (type.kind == TypeKind::Struct) {
    uint64_t size = 0;
    for (const kernel::Member& member : type.members) size += packedSize(types, member.type);
    return size;
  }
  if (type.kind == TypeKind::Array) return uint64_t{type.count} * packedSize(types, type.element);
  const uint64_t scalars = type.kind == TypeKind::Matrix ? uint64_t{type.columns} * type.rows : type.width();
  return scalars * kernel::byteSize(type.scalar);
}

std::string sizeText(uint64_t bytes) { return fmt::format("{} {}", bytes, bytes == 1 ? "byte" : "bytes"); }

Finding strideFinding(std::string message, std::string remedy, Finding::Severity severity) {
  return {.severity = severity,
          .diagnostic = {.code = "layout.stride", .message = std::move(message), .where = {}, .notes = {}, .remedy = std::move(remedy)},
          .invocation = {}};
}

/// Rows of a file that are no elements of the array that they are bound to.
std::optional<Finding> wrongRows(const kernel::TypeTable& types, const GlobalVariable& variable, TypeId array, const std::string& file,
                                 const io::Array& data) {
  if (data.shape.size() < 2 || data.shape.back() <= 0) return std::nullopt;
  const TypeId element = types[array].element;
  const uint64_t stride = types.strideOf(array), packed = packedSize(types, element);
  const uint64_t row = static_cast<uint64_t>(data.shape.back()) * io::byteSize(data.type);
  if (row % stride == 0 || stride % row == 0) return std::nullopt;
  // Rows of numbers may be read in vectors of another length, if none has a hole and none lies in two rows that are shorter than it.
  const bool has_holes = packed < stride;
  if (!has_holes && row > stride) return std::nullopt;
  const std::string text = types.toString(element);
  std::string message = fmt::format("{} is bound to rows of {} ({}, {}), but its elements of type {} are {} apart", variable.name,
                                    sizeText(row), file, io::describe(data), text, sizeText(stride));
  if (row == packed) message += fmt::format(": {} of numbers and {} of padding", sizeText(packed), sizeText(stride - packed));
  return strideFinding(std::move(message),
                       row == packed ? fmt::format("pad each row to {} on the host, or declare an array of scalars", sizeText(stride))
                                     : fmt::format("give the file rows of {}", sizeText(stride)),
                       has_holes ? Finding::Severity::Error : Finding::Severity::Warning);
}

/// Bytes at the end of a buffer that are no whole element.
std::optional<Finding> leftOver(const kernel::TypeTable& types, const GlobalVariable& variable, const RuntimeArray& array, uint64_t size) {
  const uint64_t stride = types.strideOf(array.type);
  if (size < array.offset) return std::nullopt;
  const uint64_t count = (size - array.offset) / stride, used = array.offset + count * stride;
  // A host rounds the size up to whole words, or as WGSL rounds that of the type.
  const uint64_t align = std::max<uint64_t>(types.alignOf(variable.type), 4);
  if (size <= (used + align - 1) / align * align) return std::nullopt;
  const TypeId element = types[array.type].element;
  const uint64_t packed = packedSize(types, element);
  std::string message = fmt::format("{} are left over at the end of {}: it has {}, and {} elements of type {} are {} apart",
                                    sizeText(size - used), variable.name, sizeText(size), count, types.toString(element), sizeText(stride));
  const bool is_packed = packed < stride && (size - array.offset) % packed == 0;
  if (is_packed)
    message += fmt::format("; {} elements of {} without padding would fill it", (size - array.offset) / packed, sizeText(packed));
  return strideFinding(std::move(message),
                       is_packed ? fmt::format("pad each element to {} on the host", sizeText(stride))
                                 : fmt::format("bind a multiple of {}{}", sizeText(stride),
                                               array.offset == 0 ? "" : fmt::format(" behind the first {}", sizeText(array.offset))),
                       Finding::Severity::Error);
}

}  // namespace

std::vector<Finding> findBrokenContracts(const wgsl::Reflection& reflection, const KernelRun& run) {
  std::vector<Finding> findings;
  const Result<kernel::Module> used = kernel::isolateEntry(run.module, run.entry);
  if (reflection.contracts.empty() || !used.ok()) return findings;
  const HostValues values(run, *used);
  for (const wgsl::Contract& contract : reflection.contracts) {
    const bool is_used = std::ranges::all_of(contract.variables(), [&](const std::string& name) { return values.find(name) != nullptr; });
    if (contract.isOfEntry() ? contract.entry != used->entryPoint()->name : !is_used) continue;
    const std::optional<wgsl::BrokenContract> broken = wgsl::findBroken(contract, std::cref(values));
    if (!broken) continue;
    Finding finding;
    finding.diagnostic = {.code = contract.is_dispatch ? "contract.dispatch" : "contract.require",
                          .message = broken->message + (broken->values.empty() ? "" : fmt::format(" ({})", broken->values)),
                          .where = contract.where,
                          .notes = {},
                          .remedy = contract.is_dispatch ? dispatchRemedy(*broken) : "bind what the kernel's text asks for",
                          .length = contract.length};
    findings.push_back(std::move(finding));
  }
  return findings;
}

Result<std::vector<Finding>> findStrides(const wgsl::Reflection* reflection, const KernelRun& run,
                                         const std::map<Slot, std::string>& files) {
  std::vector<Finding> findings;
  const kernel::TypeTable& types = run.module.types;
  for (const GlobalVariable& variable : run.module.globals) {
    const Bytes* bytes = bytesOf(run, variable);
    if (bytes == nullptr) continue;
    const RuntimeArray runtime = runtimeArrayOf(types, variable.type);
    const TypeId array = runtime.type.valid() ? runtime.type : types[variable.type].kind == TypeKind::Array ? variable.type : TypeId();
    std::optional<Finding> found;
    const auto file = files.find({.group = variable.group, .binding = variable.binding});
    if (array.valid() && file != files.end()) {
      LS_TRY(const io::Array data, io::readNpy(file->second));
      found = wrongRows(types, variable, array, file->second, data);
    }
    if (!found && runtime.type.valid()) found = leftOver(types, variable, runtime, bytes->size());
    if (!found) continue;
    if (reflection != nullptr) {
      const auto declared = std::ranges::find_if(reflection->bindings, [&](const wgsl::ReflectedBinding& one) {
        return one.group == variable.group && one.binding == variable.binding && one.name == variable.name;
      });
      if (declared != reflection->bindings.end()) found->diagnostic.where = declared->where;
    }
    findings.push_back(*std::move(found));
  }
  return findings;
}

Result<std::vector<Finding>> findHostMistakes(const std::string& path, const std::map<std::string, double>& overrides, const KernelRun& run,
                                              const std::map<Slot, std::string>& files) {
  const bool layouts = run.sanitize && run.sanitize->checks.layouts;
  std::optional<wgsl::Reflection> reflection;
  if (path.ends_with(".wgsl")) {
    LS_TRY(const std::string text, io::readTextFile(path));
    if (layouts || text.find("lockstep:") != std::string::npos) {
      LS_TRY(reflection, wgsl::reflect(text, {.file_name = path, .overrides = overrides, .entry_point = run.entry}));
    }
  }
  std::vector<Finding> findings;
  if (reflection) findings = findBrokenContracts(*reflection, run);
  if (!findings.empty() && !run.sanitize) {
    Failure failure;
    for (Finding& finding : findings) failure.diagnostics.push_back(std::move(finding.diagnostic));
    return failure;
  }
  if (layouts) {
    LS_TRY(std::vector<Finding> strides, findStrides(reflection ? &*reflection : nullptr, run, files));
    std::ranges::move(strides, std::back_inserter(findings));
  }
  return findings;
}

}  // namespace lockstep::tools
