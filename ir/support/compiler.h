// SPDX-License-Identifier: Apache-2.0
// The oldest compilers that Lockstep is built and used with, as docs/install.md states them. Older ones would stop with errors inside of
// the headers: clang 14 has no std::source_location with libstdc++ 12, clang 15 no aggregates in parentheses.
#pragma once

#if (defined(__clang__) && __clang_major__ < 16) || (!defined(__clang__) && defined(__GNUC__) && __GNUC__ < 12) || __cplusplus < 202002L
#error "Lockstep needs C++20 (-std=c++20) and at least g++ 12 or clang 16: see docs/install.md"
#endif
