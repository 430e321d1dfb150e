// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <array>

#include "tools/verb.h"

namespace lockstep::tools {
namespace {

struct ExitStatus {
  ExitCode code;
  std::string_view meaning;
};
constexpr std::array kExitStatuses = {
    ExitStatus{ExitCode::Ok, "it worked"},
    ExitStatus{ExitCode::Internal, "a bug in Lockstep"},
    ExitStatus{ExitCode::Usage, "the command line is wrong"},
    ExitStatus{ExitCode::NoDevice, "there is no such device"},
    ExitStatus{ExitCode::BadInput, "a file is wrong or cannot be read"},
    ExitStatus{ExitCode::NumericCheck, "numbers differ, or the loss is not finite"},
    ExitStatus{ExitCode::OutOfMemory, "the machine or the device has too little memory"},
    ExitStatus{ExitCode::DeviceLost, "the device stopped working"},
    ExitStatus{ExitCode::IncompatibleCheckpoint, "a checkpoint of another model or optimizer"},
    ExitStatus{ExitCode::Interrupted, "interrupted by SIGINT, SIGTERM, SIGHUP, SIGPIPE or SIGXFSZ; what was reached is written"},
};

/// Text of troff: no character of it is an instruction or becomes a typographic one.
std::string escaped(std::string_view text) {
  std::string result;
  bool line_start = true;
  for (const char c : text) {
    if (line_start && (c == '.' || c == '\'')) result += "\\&";
    line_start = c == '\n';
    switch (c) {
      case '\\':
        result += "\\e";
        break;
      case '-':
        result += "\\-";
        break;
      case '\'':
        result += "\\(aq";
        break;
      case '`':
        result += "\\(ga";
        break;
      case '^':
        result += "\\(ha";
        break;
      case '~':
        result += "\\(ti";
        break;
      default:
        result += c;
    }
  }
  return result;
}

std::string bold(std::string_view text) { return fmt::format("\\fB{}\\fR", escaped(text)); }
std::string italic(std::string_view text) { return fmt::format("\\fI{}\\fR", escaped(text)); }

std::string headOf(const console::OptionRow& row) {
  if (row.argument) return row.required ? italic(row.names[0]) : fmt::format("[{}]", italic(row.names[0]));
  std::string head;
  for (const std::string& name : row.names) head += (head.empty() ? "" : ", ") + bold(name);
  return row.value.empty() ? head : fmt::format("{} {}", head, italic(row.value));
}

std::string bodyOf(const console::OptionRow& row) {
  return row.initial.empty() ? escaped(row.text) : fmt::format("{} [{}]", escaped(row.text), escaped(row.initial));
}

std::string sectionOf(const Verb& verb) {
  const console::CommandDescription description = console::describe([&] { (void)verb.function({}); });
  std::string synopsis = bold(description.command);
  for (const console::OptionRow& row : description.rows) {
    if (row.argument) synopsis += " " + headOf(row);
  }
  std::string section = fmt::format(".SS {}\n{} [{}]\n.PP\n", verb.name, synopsis, italic("OPTIONS"));
  // The lines of a table must stay.
  const bool table = description.summary.find('\n') != std::string::npos;
  section += (table ? ".nf\n" : "") + escaped(description.summary) + (table ? "\n.fi\n" : "\n");
  for (const console::OptionRow& row : description.rows) section += fmt::format(".TP\n{}\n{}\n", headOf(row), bodyOf(row));
  return section;
}

}  // namespace

Result<ExitCode> manualVerb(Arguments arguments) {
  Options options("lockstep manual", "Prints the manual page of all verbs as troff: lockstep manual | man -l -");
  LS_TRY(const bool go, options.parse(arguments));
  if (!go) return ExitCode::Ok;

  std::string page = fmt::format(
      ".TH LOCKSTEP 1 \"\" \"lockstep {}\" \"User Commands\"\n"
      ".SH NAME\nlockstep \\- compiles and trains neural networks on any Vulkan GPU\n"
      ".SH SYNOPSIS\n{} [{}] {} [{}]\n.br\n{} {} | {}\n"
      ".SH VERBS\n",
      LOCKSTEP_VERSION, bold("lockstep"), bold("-v"), italic("VERB"), italic("ARGUMENTS"), bold("lockstep"), bold("--help"),
      bold("--version"));
  for (const Verb& verb : verbs()) page += sectionOf(verb);
  page += ".SH EXIT STATUS\n";
  for (const ExitStatus& status : kExitStatuses) {
    page += fmt::format(".TP\n.B {}\n{}\n", static_cast<int>(status.code), escaped(status.meaning));
  }
  fmt::print("{}", page);
  return ExitCode::Ok;
}

}  // namespace lockstep::tools
