// SPDX-License-Identifier: Apache-2.0
// What a stream is connected to.
#pragma once

#include <cstdio>
#include <string>

namespace lockstep::console {

/// Whether a picture that is drawn again and again makes sense on this stream: a terminal that is not "dumb".
bool isTerminal(std::FILE* stream);
/// Columns of the terminal, 80 when they are not known.
int columnsOf(std::FILE* stream);

/// Cuts after `columns` characters, never inside one (continuation bytes of UTF-8 take no column).
std::string cutToColumns(const std::string& text, int columns);

}  // namespace lockstep::console
