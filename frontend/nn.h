// SPDX-License-Identifier: Apache-2.0
// Layers: modules with the usual parameters. A layer is called like a function inside a loss or forward function. Matrices are called W,
// biases b, gains g.
#pragma once

#include "frontend/nn_attention.h"
#include "frontend/nn_conv.h"
#include "frontend/nn_linear.h"
#include "frontend/nn_norm.h"
#include "frontend/nn_recurrent.h"
