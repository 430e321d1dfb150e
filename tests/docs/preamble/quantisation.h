// SPDX-License-Identifier: Apache-2.0
// The fragments of docs/quantisation.md are pieces of one program, in order, with the includes that it has itself.
#pragma once
