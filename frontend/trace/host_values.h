// SPDX-License-Identifier: Apache-2.0
// Values on the host: what goes into a step (Batch) and what comes out of it (HostTensor, Captures).
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <ranges>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "ir/graph/type.h"
#include "ir/support/variant.h"
#include "ir/support/where.h"

namespace lockstep {

/// A named input of a compiled program.
struct InputSpec {
  std::string name;
  graph::TensorType type;
};

/// Data of one input for one call: row-major, with the element type and the number of elements that were declared; an f16 or bf16 input
/// takes floats, which are rounded to the nearest, ties to even. A view of a variable or of a span, which must live as long as the item; a
/// temporary container moves into the item.
struct BatchItem {
  template <class T>
  static constexpr bool kIsElement = std::same_as<T, float> || std::same_as<T, int32_t> || std::same_as<T, uint32_t> ||
                                     std::same_as<T, int8_t> || std::same_as<T, uint8_t> || std::same_as<T, uint16_t>;

  template <std::ranges::range Range>
  BatchItem(std::string_view input, Range&& values) : name(input) {
    using Element = std::ranges::range_value_t<Range>;
    constexpr bool right_type = kIsElement<Element>, in_one_piece = std::ranges::contiguous_range<Range>;
    static_assert(
        right_type,
        "a batch takes vectors, arrays and spans of float, int32_t, uint32_t, uint16_t, int8_t or uint8_t: convert the values, as in "
        "std::vector<float>(v.begin(), v.end())");
    static_assert(in_one_piece || !right_type, "a batch takes values in one piece: a std::vector, std::array or std::span");
    if constexpr (!right_type || !in_one_piece) {
      return;
    } else if constexpr (std::is_lvalue_reference_v<Range> || std::ranges::borrowed_range<Range>) {
      data = std::span<const Element>(std::ranges::data(values), std::ranges::size(values));
    } else {
      auto held = std::make_shared<const std::remove_cvref_t<Range>>(std::forward<Range>(values));
      data = std::span<const Element>(std::ranges::data(*held), std::ranges::size(*held));
      owner = std::move(held);
    }
  }
  template <class Element>
  BatchItem(std::string_view input, std::initializer_list<Element> values) : BatchItem(input, std::vector<Element>(values)) {}

  std::string name;
  std::variant<std::span<const float>, std::span<const int32_t>, std::span<const uint32_t>, std::span<const int8_t>,
               std::span<const uint8_t>, std::span<const uint16_t>>
      data;
  std::shared_ptr<const void> owner;  ///< of elements that the item holds itself; copies of the item share them
};
/// Every declared input once, in any order.
using Batch = std::vector<BatchItem>;

/// A tensor that was read back.
class HostTensor {
 public:
  HostTensor() = default;
  HostTensor(std::string name, graph::TensorType type, std::span<const std::byte> bytes);
  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] const graph::TensorType& type() const { return type_; }
  [[nodiscard]] const graph::Shape& shape() const { return type_.shape; }
  // Error "value.type" when the element type is another one. floats() are f32, f16 or bf16; ints() i32 or i8; uints() u32, u16, u8, or
  // bool, which is 0 or 1.
  [[nodiscard]] std::span<const float> floats(Where where = Where::current()) const&;
  [[nodiscard]] std::span<const int32_t> ints(Where where = Where::current()) const&;
  [[nodiscard]] std::span<const uint32_t> uints(Where where = Where::current()) const&;
  // Of a tensor that is about to go, the elements themselves: `for (float value : forward.run(batch).output.floats())`.
  [[nodiscard]] std::vector<float> floats(Where where = Where::current()) &&;
  [[nodiscard]] std::vector<int32_t> ints(Where where = Where::current()) &&;
  [[nodiscard]] std::vector<uint32_t> uints(Where where = Where::current()) &&;
  /// Elements of any type as f64.
  [[nodiscard]] std::vector<double> doubles() const;

 private:
  std::string name_;
  graph::TensorType type_;
  Variant<std::vector<float>, std::vector<int32_t>, std::vector<uint32_t>> data_;
};

/// The captures of one step.
class Captures {
 public:
  Captures() = default;
  explicit Captures(std::vector<HostTensor> values);
  [[nodiscard]] bool has(std::string_view name) const;
  /// Error "capture.unknown" that lists the names there are.
  [[nodiscard]] const HostTensor& get(std::string_view name, Where where = Where::current()) const;
  [[nodiscard]] std::vector<std::string> names() const;  ///< sorted
  /// A float capture [H, ...] or [1, H, ...] as one vector for each H. Error "capture.heads" for other types and ranks below 2.
  [[nodiscard]] std::vector<std::vector<float>> per_head(std::string_view name, Where where = Where::current()) const;

 private:
  std::map<std::string, HostTensor, std::less<>> values_;
};

/// "f32[2,3] [[1, 2, 3], [4, 5, 6]]"; of an axis of more than 8 elements only the first and last three are shown.
std::string to_string(const HostTensor& tensor);

/// Takes one line for each ls::print of a step.
using PrintFunction = std::function<void(std::string_view line)>;

/// Values of parameters by path name, row-major.
using ParameterValues = std::map<std::string, std::vector<float>, std::less<>>;

}  // namespace lockstep
