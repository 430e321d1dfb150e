// SPDX-License-Identifier: Apache-2.0
// WGSL text <-> kernel IR. Compute shaders only.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "ir/kernel/module.h"
#include "ir/support/result.h"

namespace lockstep::wgsl {

enum class Severity : uint8_t { Off, Info, Warning, Error };

/// What the reader says about a text that it accepts.
struct Warning {
  Severity severity = Severity::Warning;  ///< Warning or Info
  Diagnostic diagnostic;
};

/// What the buffer of a uniform variable holds; empty where it is not known.
using UniformContents = std::function<std::vector<std::byte>(const kernel::Module&, const kernel::GlobalVariable&)>;

struct ReadOptions {
  std::string file_name = "kernel.wgsl";
  /// Values of overrides, by name, or by decimal id for overrides with @id. They are substituted while reading: an override without a
  /// default needs one if an entry point uses it, and a key that no override has is an error.
  std::map<std::string, double> overrides;
  /// The entry point whose overrides need values; empty: all of them.
  std::string entry_point = {};
  /// Treats substituted overrides as `const`, so that they may size arrays in any address space. An extension of WGSL for kernel templates.
  bool overrides_are_constants = false;
  /// Workgroups of the dispatch, where they are known: for warnings about what overflows. Zeros: not known.
  std::array<uint32_t, 3> groups = {};
  /// What the dispatch binds, where it is known: for the same warnings.
  UniformContents uniforms = {};
  /// Where warnings go, in the order of the text, also when reading fails; they are dropped if null.
  std::vector<Warning>* warnings = nullptr;
};

/// Whether the text is a WGSL module: what WGSL calls shader-creation errors. Overrides have no values, so nothing that depends on them
/// is evaluated; of the options only file_name and warnings count. Empty: no errors.
std::vector<Diagnostic> check(std::string_view source, const ReadOptions& options = {});

/// WGSL -> kernel IR: check, then the values of overrides are put in, and what depends on them is evaluated (errors that only follow from
/// them have code wgsl.override). Functions that no entry point reaches are kept, with the names of their parameters, so that hooks can be
/// replaced later; but those that lack a value of an override, or belong to fragment shaders, are left out.
/// Diagnostics carry line and column and come in the order of the text; there may be several. Any input is answered, none crashes.
Result<kernel::Module> read(std::string_view source, const ReadOptions& options = {});

/// The diagnostics as text. Each of them, and each of their notes, has its line of the source with the place marked: "  ^~~~".
std::string renderDiagnostics(const std::vector<Diagnostic>& diagnostics, std::string_view source);

/// The same for warnings, which are called so.
std::string renderWarnings(const std::vector<Warning>& warnings, std::string_view source);

/// Kernel IR -> WGSL text, formatted and stable; names are kept where they are WGSL names and unique. The module must be valid.
/// read(write(m)) computes the same as m. What WGSL cannot say is dropped: strict float mode, origins, in-bounds marks.
std::string write(const kernel::Module& module);

}  // namespace lockstep::wgsl
