// SPDX-License-Identifier: Apache-2.0
// What compare.mjs compares with other implementations. usage: text_dump encode TOKENIZER TEXTS RESULTS
//   TEXTS holds a JSON text a line, RESULTS gets a line of ids for each, then what they decode to, or the code of the error.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdio>
#include <nlohmann/json.hpp>
#include <sstream>

#include "frontend/io/file.h"
#include "frontend/text/tokenizer.h"

namespace lockstep::text {
namespace {

std::string lineOf(const Tokenizer& tokenizer, const std::string& text) {
  nlohmann::json line;
  const Result<std::vector<uint32_t>> ids = tokenizer.encode(text);
  if (!ids) {
    line["error"] = ids.diagnostics()[0].code;
    return line.dump();
  }
  line["ids"] = *ids;
  for (const bool skip : {false, true}) line[skip ? "skipped" : "decoded"] = tokenizer.decode(*ids, skip).orThrow();
  StreamDecoder stream(tokenizer, false);
  std::string streamed;
  for (const uint32_t id : *ids) streamed += stream.push(id).orThrow();
  line["streamed"] = streamed + stream.finish().orThrow();
  return line.dump();
}

void encodeAll(const std::string& file, const std::string& texts, const std::string& results) {
  const Tokenizer tokenizer = Tokenizer::load(file).orThrow();
  std::istringstream lines(io::readTextFile(texts).orThrow());
  std::string out;
  for (std::string line; std::getline(lines, line);) out += lineOf(tokenizer, nlohmann::json::parse(line).get<std::string>()) + "\n";
  (void)io::writeFileAtomically(results, std::string_view(out)).orThrow();
}

}  // namespace
}  // namespace lockstep::text

int main(int count, char** arguments) {
  try {
    const std::string what = count > 1 ? arguments[1] : "";
    if (what == "encode" && count == 5) {
      lockstep::text::encodeAll(arguments[2], arguments[3], arguments[4]);
      return 0;
    }
    std::fputs("usage: text_dump encode TOKENIZER TEXTS RESULTS\n", stderr);
    return 2;
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
}
