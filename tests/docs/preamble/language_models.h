// SPDX-License-Identifier: Apache-2.0
// The fragments of docs/language_models.md are pieces of one program, in order, with the includes that the page begins with.
#pragma once
