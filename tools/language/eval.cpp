// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>

#include "frontend/io/jsonl.h"
#include "tools/language/text_input.h"
#include "tools/language/text_model.h"
#include "tools/verb.h"

namespace lockstep::tools {
namespace {

struct Sum {
  double loss = 0;  ///< nats
  size_t tokens = 0;
};

/// -log of the softmax of the logits, at the token.
double crossEntropy(std::span<const float> logits, int32_t token) {
  const double most = *std::ranges::max_element(logits);
  double sum = 0;
  for (const float one : logits) sum += std::exp(one - most);
  return most + std::log(sum) - logits[static_cast<size_t>(token)];
}

/// Each token of a window but the first, from those of the window before it. Logits come in pieces: those of a window may be gigabytes.
Sum lossOf(llm::Generator& generator, std::span<const int32_t> window) {
  generator.restart();
  const auto width = static_cast<size_t>(generator.config().vocabulary), piece = static_cast<size_t>(generator.options().chunk);
  Sum sum;
  for (size_t start = 0; start + 1 < window.size(); start += piece) {
    const auto part = window.subspan(start, std::min(piece, window.size() - 1 - start));
    const std::vector<float> logits = generator.feed({llm::TokenList(part.begin(), part.end())}, true).logits[0];
    for (size_t t = 0; t < part.size(); ++t) sum.loss += crossEntropy(std::span(logits).subspan(t * width, width), window[start + t + 1]);
    sum.tokens += part.size();
  }
  return sum;
}

}  // namespace

Result<ExitCode> evalVerb(Arguments arguments) {
  TextModelChoices model;
  std::string path;
  bool json = false;
  Options options(
      "lockstep eval",
      "Measures the perplexity of a text: the exponential of the mean cross entropy of its tokens. The text is cut into windows "
      "of --context tokens; each token but the first of a window is predicted from those before it in the window.");
  model.addTo(options);
  options.value(path, "--text", "the file with the text, - for stdin");
  options.flag(json, "--json", "one JSON object for scripts");
  LS_TRY(const bool go, options.parse(arguments));
  if (!go) return ExitCode::Ok;
  if (path.empty()) return usage("value", "--text is required", "see 'lockstep eval --help'");
  if (model.context < 0) return usage("value", "--context is less than 0");

  LS_TRY(const std::string text, readTextInput(path));
  LS_TRY(const TextModelFiles files, TextModelFiles::load(model.folder));
  LS_TRY(const llm::TokenList tokens, files.encode(text));
  if (tokens.size() < 2) return fail("language_model.tokens", "the text has one token, and none to foretell", {}, "give it more text");
  LS_TRY(llm::Generator generator, makeGenerator(files, model, false));
  const auto positions = static_cast<size_t>(generator.options().positions);
  if (positions < 2) return usage("value", "--context is 1, and windows have two tokens at least");
  Sum all;
  size_t windows = 0;
  for (size_t start = 0; start + 1 < tokens.size(); start += positions, ++windows) {
    const Sum one = lossOf(generator, std::span(tokens).subspan(start, std::min(positions, tokens.size() - start)));
    all.loss += one.loss;
    all.tokens += one.tokens;
  }
  const double mean = all.loss / static_cast<double>(all.tokens);
  if (json) {
    fmt::print("{}\n", io::Json::object()
                           .add("perplexity", std::exp(mean))
                           .add("cross_entropy", mean)
                           .add("tokens", uint64_t{all.tokens})
                           .add("windows", uint64_t{windows})
                           .add("context", uint64_t{positions})
                           .add("device", generator.device())
                           .text());
  } else {
    fmt::print("perplexity {:.4f}: {:.5f} nats for each of {} tokens, in {} windows of {} on {}\n", std::exp(mean), mean, all.tokens,
               windows, positions, generator.device());
  }
  return ExitCode::Ok;
}

}  // namespace lockstep::tools
