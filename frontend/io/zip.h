// SPDX-License-Identifier: Apache-2.0
// Zip archives as NumPy and others write them: stored or deflated members, below 4 GiB, no encryption.
#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "ir/support/result.h"

namespace lockstep::io {

/// Contents by name.
using ZipMembers = std::map<std::string, std::vector<std::byte>, std::less<>>;

/// Reads all members, as the directory at the end lists them. `name` stands for the file in messages. Codes: zip.archive (no archive, or a
/// damaged one, also one whose members overlap), zip.method (another compression, encryption, more than 4 GiB), zip.size (members that
/// unpack to more than 4 GiB in all), zip.checksum.
Result<ZipMembers> parseZip(std::span<const std::byte> bytes, const std::string& name);

/// The bytes of an archive, the same for the same members: they carry no time. code zip.size above 4 GiB.
Result<std::vector<std::byte>> formatZip(const ZipMembers& members, bool deflated);

}  // namespace lockstep::io
