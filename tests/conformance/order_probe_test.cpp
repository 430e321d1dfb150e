// SPDX-License-Identifier: Apache-2.0
#include "conformance/order_probe.h"

#include <gtest/gtest.h>

#include "frontend/wgsl/wgsl.h"

namespace lockstep::conformance {
namespace {

// Eight invocations draw numbers; each writes its own. The last word does not depend on who came first.
constexpr const char* kTickets = R"(
@group(0) @binding(0) var<storage, read_write> next: atomic<u32>;
@group(0) @binding(1) var<storage, read_write> drawn: array<u32>;
@compute @workgroup_size(8)
fn draw(@builtin(local_invocation_index) i: u32) {
  drawn[i] = atomicAdd(&next, 1u);
  drawn[8] = 5u;
}
)";

class OrderProbe : public testing::Test {
 protected:
  void SetUp() override {
    KernelDispatch dispatch{.module = wgsl::read(kTickets).orThrow(), .entry = {}, .bindings = {}, .buffer_sizes = {4, 36}};
    dispatch.bindings = {{.group = 0, .binding = 0, .buffer = 0, .offset = 0, .size = 4},
                         {.group = 0, .binding = 1, .buffer = 1, .offset = 0, .size = 36}};
    EXPECT_TRUE(showsOrder(dispatch.module));
    program_.emplace(makeProgram(dispatch).orThrow());
  }
  std::vector<WordDifference> unexplained(std::vector<WordDifference> differences) {
    return unexplainedByOrder(*program_, {Bytes(4), Bytes(36)}, std::move(differences), 64);
  }
  std::optional<program::ValidProgram> program_;
};

TEST_F(OrderProbe, ExplainsWhatSomeOrderLeaves) {
  EXPECT_EQ(unexplained({{.buffer = 1, .word = 0, .recorded = 0, .found = 7}, {.buffer = 1, .word = 3, .recorded = 3, .found = 0}}).size(),
            0u);
}

TEST_F(OrderProbe, KeepsAValueThatNoOrderLeaves) {
  const auto rest = unexplained({{.buffer = 1, .word = 0, .recorded = 0, .found = 8}, {.buffer = 1, .word = 1, .recorded = 1, .found = 2}});
  ASSERT_EQ(rest.size(), 1u);
  EXPECT_EQ(toString(rest[0]), "buffer 1, byte 0: expected 0x00000000, found 0x00000008");
}

TEST_F(OrderProbe, KeepsAWordThatIsTheSameInEveryOrder) {
  EXPECT_EQ(unexplained({{.buffer = 1, .word = 8, .recorded = 5, .found = 4}}).size(), 1u);
  EXPECT_EQ(unexplained({{.buffer = 0, .word = 0, .recorded = 8, .found = 7}}).size(), 1u);
}

TEST(CompareBuffers, NamesWordsInTheirOrder) {
  const Bytes a(6), b{std::byte{1}, {}, {}, {}, std::byte{2}, {}};
  const auto differences = compareBuffers({a, a}, {a, b});
  ASSERT_EQ(differences.size(), 2u);
  EXPECT_EQ(toString(differences[0]), "buffer 1, byte 0: expected 0x00000000, found 0x00000001");
  EXPECT_EQ(toString(differences[1]), "buffer 1, byte 4: expected 0x00000000, found 0x00000002");
}

}  // namespace
}  // namespace lockstep::conformance
