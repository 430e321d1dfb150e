// SPDX-License-Identifier: Apache-2.0
// Inputs for readers of files and folders: they lie in a folder that every input makes anew. A text of several files has a line
// "==== name" before each; names have no folders.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string_view>

namespace lockstep::fuzz {

/// The folder of this process, empty. In memory where the system has a place for that.
const std::filesystem::path& emptyFolder();
/// `bytes` as a file of that folder.
std::filesystem::path writeFile(std::string_view name, std::span<const std::byte> bytes);
/// Each section as a file. What is before the first line "====" counts for nothing.
void writeSections(std::string_view text);

}  // namespace lockstep::fuzz
