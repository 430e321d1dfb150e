// SPDX-License-Identifier: Apache-2.0
#include "frontend/train/batch.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "frontend/trace/tensor.h"
#include "frontend/trace/throw_error.h"
#include "frontend/trace/trace.h"
#include "ir/support/diagnostic.h"
#include "ir/support/nearest.h"
#include "runtime/memory_array.h"

namespace lockstep::detail {

namespace {

bool isDynamic(const graph::Dim& dim) { return dim.maximum() == dynamic; }

/// "f32[?,4]"
std::string describe(const TensorType& type) {
  std::string extents;
  for (const graph::Dim& dim : type.shape.dims()) {
    extents += fmt::format("{}{}", extents.empty() ? "" : ",", isDynamic(dim) ? "?" : std::to_string(dim.maximum()));
  }
  return fmt::format("{}[{}]", toString(type.dtype), extents);
}

std::string known(const std::vector<InputSpec>& inputs) {
  if (inputs.empty()) return "the program takes no inputs";
  return "declared: " + joinNames(inputs, [](const InputSpec& input) { return fmt::format("{} {}", input.name, describe(input.type)); });
}

/// The element types of BatchItem::data, in its order.
struct HostType {
  DType dtype;
  std::string_view name;
};
constexpr std::array kHostTypes{HostType{DType::F32, "float"}, HostType{DType::I32, "int32_t"}, HostType{DType::U32, "uint32_t"},
                                HostType{DType::I8, "int8_t"}, HostType{DType::U8, "uint8_t"},  HostType{DType::U16, "uint16_t"}};
static_assert(kHostTypes.size() == std::variant_size_v<decltype(BatchItem::data)>);

DType dtypeOf(const BatchItem& item) { return kHostTypes[item.data.index()].dtype; }

/// What the host gives for an input: in memory a bool is a u32 of 0 or 1, and C++ has no floats of 16 bits.
const HostType& hostType(DType dtype) {
  const DType wanted = dtype == DType::Bool ? DType::U32 : graph::isFloat(dtype) ? DType::F32 : dtype;
  return *std::ranges::find(kHostTypes, wanted, &HostType::dtype);
}

size_t countOf(const BatchItem& item) {
  return std::visit([](auto values) { return values.size(); }, item.data);
}

const BatchItem& find(const Batch& batch, const InputSpec& input, const std::vector<InputSpec>& inputs) {
  const BatchItem* found = nullptr;
  for (const BatchItem& item : batch) {
    if (item.name != input.name) continue;
    if (found != nullptr) reject("batch.twice", fmt::format("input '{}' is given twice", input.name), "give each input once");
    found = &item;
  }
  if (found == nullptr) reject("batch.missing", fmt::format("input '{}' is missing", input.name), known(inputs));
  const HostType& wanted = hostType(input.type.dtype);
  if (dtypeOf(*found) != wanted.dtype) {
    reject("batch.type", fmt::format("input '{}' is {} but gets {} data", input.name, describe(input.type), toString(dtypeOf(*found))),
           fmt::format("give a range of {}, or declare the input as ls::{}(...)", wanted.name, toString(dtypeOf(*found))));
  }
  return *found;
}

/// The dynamic extent that the length of the data means; 0 when the input has none.
int64_t extentOf(const InputSpec& input, const BatchItem& item) {
  int64_t fixed = 1;
  for (const graph::Dim& dim : input.type.shape.dims()) fixed *= isDynamic(dim) ? 1 : dim.maximum();
  const auto given = static_cast<int64_t>(countOf(item));
  if (!hasDynamicExtent(input)) {
    if (given == fixed) return 0;
    reject("batch.length", fmt::format("input '{}' is {} with {} elements but gets {}", input.name, describe(input.type), fixed, given),
           "give all elements in row-major order; an extent that changes from batch to batch is declared as ls::dynamic");
  }
  if (given > 0 && given % fixed == 0) return given / fixed;
  reject(
      "batch.length",
      fmt::format("input '{}' is {}, so it takes a multiple of {} elements, but gets {}", input.name, describe(input.type), fixed, given),
      "give whole rows");
}

}  // namespace

void checkDeclarations(const std::vector<InputSpec>& inputs, const Where& where) {
  auto rejectAt = [&](std::string message, std::string remedy) {
    throw Error(
        {.code = "compile.input", .message = std::move(message), .where = toLocation(where), .notes = {}, .remedy = std::move(remedy)});
  };
  for (size_t i = 0; i < inputs.size(); ++i) {
    const InputSpec& input = inputs[i];
    if (input.name.empty()) rejectAt("an input has no name", "give it the name that the function asks for");
    // The optimizer's scalars live in the same space of names.
    if (input.name.starts_with("step.")) rejectAt(fmt::format("the input name '{}' is reserved", input.name), "do not begin with 'step.'");
    if (input.type.dtype == DType::Bool) {
      rejectAt(fmt::format("input '{}' is bool, which the host cannot give", input.name), "use i32 and compare in the function");
    }
    if (std::ranges::count_if(input.type.shape.dims(), isDynamic) > 1) {
      rejectAt(fmt::format("input '{}' is {}, but only one extent of an input can be dynamic", input.name, describe(input.type)),
               "give the others numbers");
    }
    bool twice = std::any_of(inputs.begin(), inputs.begin() + static_cast<ptrdiff_t>(i),
                             [&](const InputSpec& other) { return other.name == input.name; });
    if (twice) rejectAt(fmt::format("input '{}' is declared twice", input.name), "give each input its own name");
  }
}

bool hasDynamicExtent(const InputSpec& input) { return std::ranges::any_of(input.type.shape.dims(), isDynamic); }

std::vector<InputSpec> withExtent(std::vector<InputSpec> inputs, int64_t extent) {
  for (InputSpec& input : inputs) {
    std::vector<int64_t> extents = input.type.shape.extents();
    std::ranges::replace(extents, dynamic, extent);
    input.type.shape = Shape(extents);
  }
  return inputs;
}

MatchedBatch matchBatch(const std::vector<InputSpec>& inputs, const Batch& batch) {
  for (const BatchItem& item : batch) {
    if (std::ranges::find(inputs, item.name, &InputSpec::name) == inputs.end()) {
      reject("batch.unknown", fmt::format("there is no input '{}'", item.name), known(inputs));
    }
  }
  MatchedBatch matched;
  const InputSpec* first = nullptr;
  for (const InputSpec& input : inputs) {
    matched.items.push_back(&find(batch, input, inputs));
    const int64_t extent = extentOf(input, *matched.items.back());
    if (extent == 0) continue;
    if (first == nullptr) {
      first = &input;
      matched.extent = extent;
    } else if (extent != matched.extent) {
      reject("batch.extent",
             fmt::format("the dynamic extent is {} in input '{}' and {} in input '{}'", matched.extent, first->name, extent, input.name),
             "give all dynamic inputs of a call the same number of rows");
    }
  }
  return matched;
}

bool needsRounding(DType dtype) { return graph::isFloat(dtype) && graph::isPacked(dtype); }

std::span<const std::byte> bytesOf(const BatchItem& item) {
  return std::visit([](auto values) { return std::as_bytes(values); }, item.data);
}

io::Array toArray(const BatchItem& item, DType dtype) {
  const TensorType type{dtype, Shape{static_cast<int64_t>(countOf(item))}};
  return needsRounding(dtype) ? encodeArray(type, std::get<std::span<const float>>(item.data)) : arrayIn(type, bytesOf(item));
}

}  // namespace lockstep::detail
