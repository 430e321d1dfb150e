// SPDX-License-Identifier: Apache-2.0
// What a program needs to know of a WGSL module to run it: entry points, bindings, overrides.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/wgsl/contract.h"
#include "frontend/wgsl/wgsl.h"

namespace lockstep::wgsl {

struct ReflectedOverride {
  std::string name;
  std::optional<uint32_t> id;   ///< of @id; the key of a value is then this number, not the name
  std::string type;             ///< "f32"
  std::optional<double> value;  ///< given, or the default; bools are 0 and 1. Nothing where it is not known
  bool required = false;        ///< it has no default
  Location where;
};

struct ReflectedMember {
  std::string name, type;
  uint64_t offset = 0, size = 0;  ///< bytes
};

struct ReflectedBinding {
  uint32_t group = 0, binding = 0;
  std::string name, type;  ///< "particles", "array<Particle>"
  kernel::AddressSpace space = kernel::AddressSpace::Storage;
  kernel::Access access = kernel::Access::Read;
  uint64_t size = 0;                     ///< bytes; of a runtime-sized type with one element: the smallest binding
  uint64_t stride = 0;                   ///< bytes between the elements of a runtime-sized array; 0 where there is none
  std::vector<ReflectedMember> members;  ///< of a struct
  Location where;
};

struct ReflectedEntryPoint {
  std::string name;
  // Nothing where they depend on an override without a value.
  std::optional<std::array<uint32_t, 3>> workgroup_size;
  std::optional<uint64_t> workgroup_bytes;  ///< of workgroup memory, each variable rounded up to 16
  std::vector<size_t> bindings;             ///< used by it, as positions in Reflection::bindings
  std::optional<size_t> immediate;          ///< used by it, as a position in Reflection::immediates
  std::vector<size_t> overrides;            ///< used by it, as positions in Reflection::overrides
  Location where;
};

struct Reflection {
  std::vector<std::string> extensions;  ///< that the module enables
  std::vector<ReflectedOverride> overrides;
  std::vector<ReflectedBinding> bindings;
  std::vector<ReflectedBinding> immediates;       ///< variables in immediate memory, which have no group and binding
  std::vector<ReflectedEntryPoint> entry_points;  ///< all, or the one that the options name
  std::vector<Contract> contracts;                ///< of all entry points
};

/// Everything in the order of the text. Overrides need no values; those that the options give must fit. Fails with the diagnostics of
/// check, or with wgsl.override.
Result<Reflection> reflect(std::string_view source, const ReadOptions& options = {});

}  // namespace lockstep::wgsl
