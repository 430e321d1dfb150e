// SPDX-License-Identifier: Apache-2.0
// Turns a kernel into SPIR-V, WGSL or the kernel IR's text.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <span>

#include "backends/kernel_spirv.h"
#include "frontend/io/file.h"
#include "frontend/io/jsonl.h"
#include "frontend/wgsl/wgsl.h"
#include "ir/kernel/isolate_entry.h"
#include "ir/support/nearest.h"
#include "passes/kernel/make_robust.h"
#include "tools/kernel/kernel_file.h"
#include "tools/kernel/kernel_run.h"
#include "tools/verb.h"

namespace lockstep::tools {
namespace {

constexpr std::array<std::string_view, 4> kFormats{"spv", "spvasm", "wgsl", "kir"};
constexpr std::array<std::string_view, 1> kTargets{"vulkan1.1"};

struct Output {
  std::vector<std::byte> bytes;
  std::string text;  ///< of text forms
};

/// Indices out of bounds are clamped in SPIR-V; the other forms say what the kernel says. `debug`: with the lines of the source.
Result<Output> translate(kernel::Module module, const std::string& format, const std::string& entry, bool debug) {
  const bool spirv = format == "spv" || format == "spvasm";
  if (spirv || !entry.empty()) {
    LS_TRY(module, kernel::isolateEntry(module, entry));
  }
  LS_TRY(const kernel::ValidModule valid, kernel::validate(std::move(module)));
  Output output;
  if (format == "kir") output.text = kernel::print(kernel::canonical(*valid, debug), debug);
  if (format == "wgsl") output.text = wgsl::write(*valid);
  if (spirv) {
    if (hasPrint(*valid)) fmt::print(stderr, "note: print is left out of SPIR-V\n");
    LS_TRY(const kernel::ValidModule robust, kernel::validate(passes::makeRobust(*valid, kernel::OutOfBounds::Clamp)));
    LS_TRY(KernelSpirv made, kernelSpirv(robust, debug));
    if (format == "spvasm") output.text = std::move(made.text);
    const auto words = std::as_bytes(std::span(made.words));
    if (format == "spv") output.bytes.assign(words.begin(), words.end());
  }
  if (format != "spv") {
    const auto letters = std::as_bytes(std::span(output.text));
    output.bytes.assign(letters.begin(), letters.end());
  }
  return output;
}

/// Of --format, or the ending of the file.
Result<std::string> chooseFormat(const std::string& format, const std::string& path) {
  std::string name = format;
  if (name.empty() && path != "-") name = std::filesystem::path(path).extension().string();
  if (name.starts_with('.')) name.erase(0, 1);
  if (name.empty())
    return usage("format", "what to make is not known", "give --format spv, spvasm, wgsl or kir, or -o FILE with such an ending");
  if (std::ranges::find(kFormats, name) == kFormats.end()) {
    return usage("format", fmt::format("'{}' is not a form of a kernel", name), suggest(name, kFormats));
  }
  if (name == "spv" && path == "-") return usage("format", "spv is not text", "write it to a file, or print spvasm");
  return name;
}

}  // namespace

Result<ExitCode> compileVerb(Arguments arguments) {
  std::string path, output = "-", format, entry, target = "vulkan1.1";
  std::vector<std::string> override_texts;
  bool json = false, debug = false;
  Options options("lockstep compile", "Turns a kernel into SPIR-V (.spv, .spvasm), WGSL (.wgsl) or the kernel IR's text (.kir).");
  options.argument(path, "FILE", "a kernel (.wgsl or .kir)");
  options.value(output, "-o,--output", "where it goes; the ending says what is made; - for the terminal");
  options.value(format, "--format", "what is made, where the ending does not say: spv, spvasm, wgsl or kir");
  options.choices("--format", {kFormats.begin(), kFormats.end()});
  options.value(entry, "--entry", "entry point; SPIR-V has one, and the other forms keep all where none is given");
  options.list(override_texts, "--override", "NAME=NUMBER, the value of an override constant");
  options.value(target, "--target", "what the SPIR-V is for");
  options.choices("--target", {kTargets.begin(), kTargets.end()});
  options.flag(debug, "--debug", "with the text of the kernel and the line of each instruction (spv, spvasm, kir), which debuggers show");
  options.flag(json, "--json", "one JSON object for scripts");
  LS_TRY(const bool go, options.parse(arguments));
  if (!go) return ExitCode::Ok;

  LS_TRY(const std::string form, chooseFormat(format, output));
  if (debug && form == "wgsl")
    return usage("format", "--debug makes no difference to WGSL", "SPIR-V and kernel IR have the lines of their source");
  if (std::ranges::find(kTargets, target) == kTargets.end()) {
    return usage("target", fmt::format("there is no target '{}'", target), suggest(target, kTargets));
  }
  LS_TRY(const auto overrides, parseOverrides(override_texts));
  LS_TRY(kernel::Module module, readKernelFile(path, overrides, entry));
  LS_TRY(const Output made, translate(std::move(module), form, entry, debug));
  const bool shown = output == "-";
  if (!shown) LS_CHECK(io::writeFileAtomically(output, made.bytes));
  if (json) {
    fmt::print("{}\n", io::Json::object()
                           .add("format", form)
                           .add("bytes", uint64_t{made.bytes.size()})
                           .add("file", shown ? io::Json() : io::Json(output))
                           .add("text", shown ? io::Json(made.text) : io::Json())
                           .text());
  } else if (shown) {
    fmt::print("{}", made.text);
  }
  return ExitCode::Ok;
}

}  // namespace lockstep::tools
