// SPDX-License-Identifier: Apache-2.0
// Whole files in and out. Every failure names the file and the reason of the operating system.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/support/result.h"

namespace lockstep::io {

/// code "file.read". A directory or an unreadable file fails.
Result<std::vector<std::byte>> readFile(const std::filesystem::path& path);
Result<std::string> readTextFile(const std::filesystem::path& path);

/// Writes to a new file beside `path`, syncs it, renames it into place and syncs the folder: so `path` is always the old or the new content
/// and never a part, even when the process is killed or the power goes. A link stays one; a device or a pipe is written to, and stays
/// what it is. The mode of a file that was there is kept. code "file.write".
Status writeFileAtomically(const std::filesystem::path& path, std::span<const std::byte> data);
Status writeFileAtomically(const std::filesystem::path& path, std::string_view text);

/// Adds to the end of a file, which is made where there is none. When it fails, the file ends where it ended before. code "file.write".
Status appendToFile(const std::filesystem::path& path, std::string_view text);

/// What is in a folder, sorted; without "." and "..". code "file.directory". Throws std::bad_alloc where memory runs out, which
/// std::filesystem::directory_iterator does not survive in libstdc++ 12.
Result<std::vector<std::filesystem::path>> listFolder(const std::filesystem::path& folder);
/// The same; nothing where the folder cannot be read.
std::vector<std::filesystem::path> entriesOf(const std::filesystem::path& folder);

/// Removes what writeFileAtomically() left in a folder when its process was killed: regular files whose names end in ".tmp-<pid>-<count>".
/// Files that are being written stay. code "file.directory".
Status removeAbandonedWrites(const std::filesystem::path& folder);

/// Makes a directory and its parents. code "file.directory".
Status makeDirectories(const std::filesystem::path& path);

}  // namespace lockstep::io
