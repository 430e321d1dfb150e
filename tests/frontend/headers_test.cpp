// SPDX-License-Identifier: Apache-2.0
// The public headers state what they need: this file sees them in an order in which nothing helps the first one.
#include "frontend/nn.h"
#include "frontend/ops.h"
#include "frontend/optim.h"
// clang-format off
#include "frontend/module.h"
#include "frontend/init.h"
#include "frontend/tensor.h"
// clang-format on
#include <gtest/gtest.h>

TEST(Headers, alias_names_the_namespace) { EXPECT_EQ(ls::f32(2, 3).shape.elementCount(), 6); }
