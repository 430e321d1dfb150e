// SPDX-License-Identifier: Apache-2.0
// What the tests of the WGSL reader share.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "frontend/wgsl/wgsl.h"

namespace lockstep::wgsl::testing {

/// Reads a module that must be good: every diagnostic and every complaint of the validator fails the test. The result has also been
/// printed and parsed back.
kernel::Module readGood(const std::string& source, const ReadOptions& options = {});

/// "line:column code: message" of the first diagnostic; "accepted" when there is none.
std::string firstError(const std::string& source, const ReadOptions& options = {});

/// `statements` in the body of a compute shader after a few declarations: struct S, function f(i32) -> i32, buffers buf and out.
std::string inShader(const std::string& statements);

/// The module's text without the names of results and parameters: the writer makes some up, and changes those that hide a word it needs.
std::string withoutNames(kernel::Module module);
/// Empty when the written module reads back as the same one and is then written in the same words; else what differs.
std::string roundTripProblem(const kernel::Module& module);

std::string readFile(const std::filesystem::path& path);
/// The WGSL files of tests/frontend/wgsl/data, sorted.
std::vector<std::filesystem::path> dataFiles();
/// "// overrides: A=1, B=2.5" in the first line of a file.
ReadOptions optionsOf(const std::string& source);

}  // namespace lockstep::wgsl::testing
