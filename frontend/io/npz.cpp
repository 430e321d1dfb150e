// SPDX-License-Identifier: Apache-2.0
#include "frontend/io/npz.h"

#include <fmt/format.h>

#include "frontend/io/file.h"
#include "frontend/io/npy.h"
#include "frontend/io/zip.h"

namespace lockstep::io {

namespace {

constexpr std::string_view kEnding = ".npy";

/// Says which array it is about.
Failure inMember(const std::string& name, Failure failure) {
  for (Diagnostic& diagnostic : failure.diagnostics) diagnostic.message = fmt::format("'{}': {}", name, diagnostic.message);
  return failure;
}

}  // namespace

Result<Arrays> parseNpz(std::span<const std::byte> bytes, const std::string& name) {
  LS_TRY(const ZipMembers members, parseZip(bytes, name));
  Arrays arrays;
  for (const auto& [member, data] : members) {
    if (!member.ends_with(kEnding)) {
      return fail("npz.member", fmt::format("'{}' is not an npy file", member), {.file = name}, "write it with numpy.savez");
    }
    LS_TRY(Array array, parseNpy(data, fmt::format("{}:{}", name, member)));
    arrays.emplace(member.substr(0, member.size() - kEnding.size()), std::move(array));
  }
  return arrays;
}

Result<Arrays> readNpz(const std::filesystem::path& path) {
  LS_TRY(const std::vector<std::byte> bytes, readFile(path));
  return parseNpz(bytes, path.string());
}

Result<std::vector<std::byte>> formatNpz(const Arrays& arrays, NpzCompression compression) {
  ZipMembers members;
  for (const auto& [name, array] : arrays) {
    if (const Status status = checkNpy(array); !status.ok()) return inMember(name, status.failure());
    members.emplace(name + std::string(kEnding), formatNpy(array));
  }
  return formatZip(members, compression == NpzCompression::Deflated);
}

Status writeNpz(const std::filesystem::path& path, const Arrays& arrays, NpzCompression compression) {
  LS_TRY(const std::vector<std::byte> bytes, formatNpz(arrays, compression));
  return writeFileAtomically(path, bytes);
}

}  // namespace lockstep::io
