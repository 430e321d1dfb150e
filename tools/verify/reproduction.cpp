// SPDX-License-Identifier: Apache-2.0
#include "tools/verify/reproduction.h"

#include <fmt/format.h>

#include <cstring>

#include "frontend/io/file.h"
#include "frontend/io/npy.h"
#include "frontend/wgsl/wgsl.h"

namespace lockstep::tools {
namespace {

namespace fs = std::filesystem;

std::string quoted(const std::string& text) {
  const bool plain = text.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789:=+@._,-") == std::string::npos;
  if (plain) return text;
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

/// The kernel knows packed elements as words only, which have no bounds: alone they are compared bit by bit.
bool hasBounds(const KernelDifference& difference) { return !difference.run.isPacked(difference.binding); }

}  // namespace

std::string runLine(const KernelDifference& difference, const std::string& device) {
  const JudgedDispatch& run = difference.run;
  const auto& groups = run.dispatch.groups;
  std::string line = fmt::format("run kernel.kir --dispatch {},{},{}", groups[0], groups[1], groups[2]);
  for (size_t i = 0; i < run.dispatch.bindings.size(); ++i) line += fmt::format(" --bind 0.{0}=before_{0}.npy", i);
  if (!run.dispatch.immediates.empty()) {
    line += " --immediate list:";
    for (size_t i = 0; i < run.dispatch.immediates.size(); i += sizeof(uint32_t)) {
      uint32_t word = 0;
      std::memcpy(&word, run.dispatch.immediates.data() + i, sizeof(word));
      line += fmt::format("{}{}", i == 0 ? "" : ",", word);
    }
  }
  line += fmt::format(" --expect 0.{0}=expected_{0}.npy", difference.binding);
  if (hasBounds(difference)) line += fmt::format(" --within 0.{0}=bound_{0}.npy", difference.binding);
  return line + " --device " + device;
}

Status writeReproduction(const fs::path& folder, const KernelDifference& difference, const std::string& device, const std::string& report) {
  const JudgedDispatch& run = difference.run;
  LS_CHECK(io::makeDirectories(folder));
  const auto name = [&](std::string_view what, size_t binding) { return folder / fmt::format("{}_{}.npy", what, binding); };
  LS_CHECK(io::writeFileAtomically(folder / "kernel.kir", std::string_view(kernel::print(kernel::canonical(run.dispatch.module)))));
  LS_CHECK(io::writeFileAtomically(folder / "kernel.wgsl", std::string_view(wgsl::write(run.dispatch.module))));
  for (size_t i = 0; i < run.dispatch.bindings.size(); ++i) LS_CHECK(io::writeNpy(name("before", i), run.arrayOf(run.before, i)));
  const io::Array want = run.arrayOf(run.want, difference.binding);
  LS_CHECK(io::writeNpy(name("expected", difference.binding), want));
  LS_CHECK(io::writeNpy(name("got", difference.binding), run.arrayOf(run.got, difference.binding)));
  if (hasBounds(difference)) {
    LS_CHECK(io::writeNpy(name("bound", difference.binding), io::Array::fromDoubles(want.shape, difference.bounds)));
  }
  LS_CHECK(io::writeFileAtomically(folder / "difference.txt", std::string_view(report)));
  const std::string script = fmt::format(
      "#!/bin/sh\n# Shows the difference of difference.txt again; exit code 5. On another device: sh run.sh reference\n"
      "device=${{1:-{}}}\ncd \"$(dirname \"$0\")\" || exit 4\n\"${{LOCKSTEP:-lockstep}}\" {}\n",
      quoted(device), runLine(difference, "\"$device\""));
  return io::writeFileAtomically(folder / "run.sh", std::string_view(script));
}

}  // namespace lockstep::tools
