// SPDX-License-Identifier: Apache-2.0
// The fragments of docs/state_space.md are pieces of one program, in order, with the includes that the page begins with.
#pragma once
