// SPDX-License-Identifier: Apache-2.0
// The fragments of docs/porting.md are pieces of one program, in order, with the includes that the first one has.
#pragma once
