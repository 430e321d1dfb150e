// SPDX-License-Identifier: Apache-2.0
// The program of README.md includes what it needs itself.
#pragma once
