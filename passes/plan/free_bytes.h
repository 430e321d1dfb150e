// SPDX-License-Identifier: Apache-2.0
// Which bytes of an arena are free while a buffer lives. Buffers that are placed one after the other ask in the logarithm of their number,
// where a look at every one that lives at the same time would make all of them together take the square.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

namespace lockstep::passes {

/// A set of bytes: ranges that neither overlap nor touch, from begin to end.
class ByteSet {
 public:
  void add(uint64_t begin, uint64_t end);
  /// The end of the last range that has a byte of [begin, end); `begin` where all of these are free.
  [[nodiscard]] uint64_t skip(uint64_t begin, uint64_t end) const;

 private:
  std::map<uint64_t, uint64_t> ranges_;
};

class FreeBytes {
 public:
  explicit FreeBytes(uint32_t levels);
  /// The lowest offset from `begin` on at which `size` bytes are free in all levels from `first` to `last`.
  [[nodiscard]] uint64_t lowest(uint32_t first, uint32_t last, uint64_t size, uint64_t begin = 0) const;
  void take(uint32_t first, uint32_t last, uint64_t offset, uint64_t size);

 private:
  // A tree over the levels: node 1 is all of them, nodes 2n and 2n + 1 are the halves of node n.
  struct Node {
    ByteSet throughout;  ///< taken in all levels of the node
    ByteSet somewhere;   ///< taken in at least one level
  };
  template <class Visit>
  void forParts(uint32_t first, uint32_t last, const Visit& each) const;

  size_t leaves_ = 1;
  std::vector<Node> nodes_;
};

}  // namespace lockstep::passes
