// SPDX-License-Identifier: Apache-2.0
// Copies of a variant for which there is no memory: libstdc++ 12 crashes with std::variant here.
#include "ir/support/variant.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <new>
#include <string>
#include <vector>

namespace lockstep {
namespace {

/// An allocator that can be told to fail.
template <class T>
struct Failing {
  using value_type = T;
  static inline bool fails = false;
  T* allocate(size_t count) {
    if (fails) throw std::bad_alloc();
    return std::allocator<T>().allocate(count);
  }
  void deallocate(T* pointer, size_t count) { std::allocator<T>().deallocate(pointer, count); }
  friend bool operator==(const Failing&, const Failing&) = default;
};
using Numbers = std::vector<int64_t, Failing<int64_t>>;
using Value = Variant<int64_t, std::string, Numbers>;

TEST(Variant, copy_that_fails_leaves_both_as_they_were) {
  const Value source = Numbers{1, 2, 3};
  Value target = std::string("old");
  Failing<int64_t>::fails = true;
  EXPECT_THROW(const Value copy = source, std::bad_alloc);
  EXPECT_THROW(target = source, std::bad_alloc);
  Failing<int64_t>::fails = false;
  EXPECT_EQ(std::get<std::string>(target), "old");
  EXPECT_EQ(std::get<Numbers>(source), (Numbers{1, 2, 3}));
  target = source;
  EXPECT_TRUE(target == source);
}

TEST(Variant, takes_and_gives_what_a_standard_one_does) {
  Value value = int64_t{3};
  EXPECT_EQ(std::get<int64_t>(value), 3);
  value = "text";
  EXPECT_EQ(value.index(), 1u);
  const Value& itself = value;
  value = itself;
  EXPECT_EQ(std::get<std::string>(value), "text");
  const Value moved = std::move(value);
  EXPECT_TRUE(std::holds_alternative<std::string>(moved));
  static_assert(std::variant_size_v<Value> == 3);
  static_assert(std::is_same_v<std::variant_alternative_t<2, Value>, Numbers>);
}

}  // namespace
}  // namespace lockstep
