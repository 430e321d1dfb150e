// SPDX-License-Identifier: Apache-2.0
// A std::variant whose copying may throw.
#pragma once

#include <cstddef>
#include <type_traits>
#include <utility>
#include <variant>

namespace lockstep {

/// libstdc++ 12 destroys an alternative that was never made when the copying of a variant throws and every alternative is one that never
/// leaves a variant empty (strings, vectors and what is trivially copyable). Here the copy is made first and moved in.
template <class... Types>
class Variant : public std::variant<Types...> {
  using Base = std::variant<Types...>;
  static_assert((std::is_nothrow_move_constructible_v<Types> && ...));

 public:
  using Base::Base;
  using Base::operator=;
  Variant() = default;
  Variant(Variant&&) noexcept = default;
  Variant& operator=(Variant&&) noexcept = default;
  Variant(const Variant& other) : Base() { copy(other); }
  Variant& operator=(const Variant& other) {
    if (this != &other) copy(other);
    return *this;
  }
  ~Variant() = default;
  friend bool operator==(const Variant& a, const Variant& b) { return static_cast<const Base&>(a) == static_cast<const Base&>(b); }

 private:
  void copy(const Variant& other) {
    Base& here = *this;
    std::visit(
        [&here]<class T>(const T& value) {
          T made = value;
          here.template emplace<T>(std::move(made));
        },
        static_cast<const Base&>(other));
  }
};

}  // namespace lockstep

template <class... Types>
struct std::variant_size<lockstep::Variant<Types...>> : std::variant_size<std::variant<Types...>> {};
template <size_t I, class... Types>
struct std::variant_alternative<I, lockstep::Variant<Types...>> : std::variant_alternative<I, std::variant<Types...>> {};
