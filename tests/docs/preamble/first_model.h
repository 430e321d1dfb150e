// SPDX-License-Identifier: Apache-2.0
// What the fragments of docs/first_model.md stand behind: each is a piece of one program, in order.
#pragma once

#include <fmt/format.h>

#include "frontend/data/loader.h"
#include "frontend/data/random.h"
#include "frontend/lockstep.h"
