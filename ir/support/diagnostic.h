// SPDX-License-Identifier: Apache-2.0
// How anything in Lockstep says that something is wrong. A user's mistake is a Diagnostic (inside the library carried by
// Result<T>, at the public surface thrown as Error); our own bug is an InternalError.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "ir/support/location.h"

namespace lockstep {

/// A second place that helps to understand a diagnostic ("operand made here").
struct Note {
  std::string message;
  Location where;
  uint32_t length = 0;       ///< code points of the text that it is about, from `where` on; 0 = unknown
  std::string excerpt = {};  ///< excerptOf() the text, where it is in no file
  friend bool operator==(const Note&, const Note&) = default;
};

/// One problem. `code` is stable ("matmul.C2", "checkpoint.length") and names an anchor of docs/errors.md.
/// `message` is one plain sentence, lower case, without a full stop; `remedy` says what to do about it (may be empty).
struct Diagnostic {
  std::string code;
  std::string message;
  Location where;
  std::vector<Note> notes;
  std::string remedy;
  uint32_t length = 0;       ///< as in Note
  std::string excerpt = {};  ///< as in Note
  friend bool operator==(const Diagnostic&, const Diagnostic&) = default;
};

/// The line of `text` at the place and below it "  ^~~~", `length` code points wide; "" when the place is not in the text.
std::string excerptOf(std::string_view text, const Location& where, uint32_t length);

/// The text without what would act on a terminal instead of being shown on it: control characters other than line breaks and tabs, marks
/// that turn the direction of a text, and bytes that are no UTF-8. Each becomes `mark`, by default its number: "\\x1b", "\\u202e".
std::string withoutControls(std::string_view text, std::string_view mark = {});

/// Can be printed as it is: withoutControls(). "file:line:column: error: code: message", then the excerpt if there is one, and likewise
/// each note; at last the remedy.
std::string toString(const Diagnostic& diagnostic);
std::string toString(const std::vector<Diagnostic>& diagnostics);

/// Exit codes of the command-line tool; every Error carries the one it asks for.
enum class ExitCode : int {
  Ok = 0,
  Internal = 1,
  Usage = 2,
  NoDevice = 3,
  BadInput = 4,
  NumericCheck = 5,
  OutOfMemory = 6,
  DeviceLost = 7,
  IncompatibleCheckpoint = 8,
  Interrupted = 130,
};

/// A user's mistake or a failing device, as thrown by the public API.
class Error : public std::runtime_error {
 public:
  explicit Error(Diagnostic diagnostic, ExitCode exit_code = ExitCode::BadInput);
  explicit Error(std::vector<Diagnostic> diagnostics, ExitCode exit_code = ExitCode::BadInput);
  [[nodiscard]] const std::string& code() const { return diagnostics_.front().code; }
  [[nodiscard]] const std::vector<Diagnostic>& diagnostics() const { return diagnostics_; }
  [[nodiscard]] ExitCode exitCode() const { return exit_code_; }

 private:
  std::vector<Diagnostic> diagnostics_;
  ExitCode exit_code_;
};

/// A bug in Lockstep itself: a validator that fails after a pass, a case that cannot happen.
class InternalError : public std::logic_error {
 public:
  explicit InternalError(const std::string& what) : std::logic_error("internal error: " + what) {}
};

[[noreturn]] void internalError(const std::string& what);

}  // namespace lockstep
