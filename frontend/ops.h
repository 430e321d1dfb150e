// SPDX-License-Identifier: Apache-2.0
// The operations on tensors. Every function checks shapes and element types at the call and throws Error with the code of the broken
// constraint (docs/errors.md), both shapes, the place of the call and where each operand was made.
#pragma once

#include "frontend/losses.h"
#include "frontend/ops_conv.h"
#include "frontend/ops_element.h"
#include "frontend/ops_gradient.h"
#include "frontend/ops_index.h"
#include "frontend/ops_network.h"
#include "frontend/ops_random.h"
#include "frontend/ops_reduce.h"
#include "frontend/ops_shape.h"
