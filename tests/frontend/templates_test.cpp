// SPDX-License-Identifier: Apache-2.0
// The kernel templates that were read are kept, but not all of them for ever.
#include "frontend/train/templates.h"

#include <gtest/gtest.h>

namespace lockstep::detail {
namespace {

kernel::Module ofExtent(double extent) { return readTemplate("matmul_register_rows", {{"m_extent", extent}}).orThrow(); }

TEST(Templates, of_many_extents_are_not_kept) {
  const kernel::Module first = ofExtent(1);
  for (size_t extent = 2; extent < 2 + 3 * kMostTemplates; ++extent) {
    (void)ofExtent(static_cast<double>(extent));
    ASSERT_LE(templatesKept(), kMostTemplates) << extent;
  }
  EXPECT_EQ(templatesKept(), kMostTemplates);
  // One that was dropped is read again, to the same module.
  EXPECT_EQ(kernel::print(ofExtent(1)), kernel::print(first));
  const size_t kept = templatesKept();
  (void)ofExtent(1);
  EXPECT_EQ(templatesKept(), kept);
}

}  // namespace
}  // namespace lockstep::detail
