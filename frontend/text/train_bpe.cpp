// SPDX-License-Identifier: Apache-2.0
#include "frontend/text/train_bpe.h"

#include <fmt/format.h>

#include <algorithm>
#include <queue>
#include <set>
#include <unordered_map>

#include "frontend/io/jsonl.h"
#include "frontend/text/added_tokens.h"
#include "frontend/text/bpe.h"
#include "frontend/text/pipeline.h"
#include "frontend/text/unicode.h"

namespace lockstep::text {
namespace {

using TokenPair = std::pair<uint32_t, uint32_t>;

struct CountedWord {
  std::vector<uint32_t> ids;
  int64_t count = 0;
};

/// Pairs of neighbours in words: how often each occurs, and in which words.
class PairCounts {
 public:
  explicit PairCounts(std::vector<CountedWord> words) : words_(std::move(words)) {
    for (size_t i = 0; i < words_.size(); ++i) {
      for (size_t at = 0; at + 1 < words_[i].ids.size(); ++at) add({words_[i].ids[at], words_[i].ids[at + 1]}, words_[i].count, i);
    }
    for (const auto& [pair, entry] : pairs_) queue_.push({entry.count, pair});
  }

  struct Top {
    TokenPair pair;
    int64_t count = 0;
  };
  /// The pair that occurs most; 0 times when there is none.
  Top top() {
    while (!queue_.empty()) {
      const Candidate candidate = queue_.top();
      queue_.pop();
      const auto found = pairs_.find(candidate.pair);
      const int64_t count = found == pairs_.end() ? 0 : found->second.count;
      if (count == candidate.count && count > 0) return {.pair = candidate.pair, .count = count};
      // Its count went down since it was queued; counts that go up are queued anew.
      if (count > 0 && count < candidate.count) queue_.push({count, candidate.pair});
    }
    return {};
  }

  void merge(TokenPair pair, uint32_t merged) {
    std::set<TokenPair> grown;
    const std::vector<size_t> places = std::move(pairs_[pair].words);
    for (const size_t place : places) mergeIn(place, pair, merged, grown);
    pairs_.erase(pair);
    for (const TokenPair& each : grown) {
      if (const auto found = pairs_.find(each); found != pairs_.end()) queue_.push({found->second.count, each});
    }
  }

 private:
  struct PairHash {
    size_t operator()(const TokenPair& pair) const {
      return std::hash<uint64_t>()((static_cast<uint64_t>(pair.first) << 32) | pair.second);
    }
  };
  struct Entry {
    int64_t count = 0;
    std::vector<size_t> words = {};
  };
  struct Candidate {
    int64_t count;
    TokenPair pair;
    bool operator<(const Candidate& other) const { return count != other.count ? count < other.count : pair > other.pair; }
  };

  void add(TokenPair pair, int64_t count, size_t word) {
    Entry& entry = pairs_[pair];
    entry.count += count;
    if (count > 0 && (entry.words.empty() || entry.words.back() != word)) entry.words.push_back(word);
  }

  void mergeIn(size_t place, TokenPair pair, uint32_t merged, std::set<TokenPair>& grown) {
    CountedWord& word = words_[place];
    std::vector<uint32_t> ids;
    const size_t size = word.ids.size();
    for (size_t at = 0; at < size; ++at) {
      if (at + 1 >= size || TokenPair(word.ids[at], word.ids[at + 1]) != pair) {
        ids.push_back(word.ids[at]);
        continue;
      }
      if (!ids.empty()) {
        add({ids.back(), pair.first}, -word.count, place);
        add({ids.back(), merged}, word.count, place);
        grown.insert({ids.back(), merged});
      }
      if (at + 2 < size) {
        add({pair.second, word.ids[at + 2]}, -word.count, place);
        // Where the pair follows once more, that round counts what lies between the two.
        add({merged, word.ids[at + 2]}, word.count, place);
        grown.insert({merged, word.ids[at + 2]});
      }
      ids.push_back(merged);
      ++at;
    }
    word.ids = std::move(ids);
  }

  std::vector<CountedWord> words_;
  std::unordered_map<TokenPair, Entry, PairHash> pairs_;
  std::priority_queue<Candidate> queue_;
};

Failure untrainable(const std::string& message) { return fail("tokenizer.train", message); }

/// The pieces of the text between special tokens, each with how often it occurs, in the order of their first occurrence.
Result<std::vector<std::pair<std::string, int64_t>>> countPieces(std::string_view text, const std::vector<std::string>& special_tokens) {
  TextSet special;
  for (size_t i = 0; i < special_tokens.size(); ++i) special.add(special_tokens[i], i);
  LS_TRY(const Pattern pattern, Pattern::ofRegex(byteLevelPattern()));
  std::vector<std::pair<std::string, int64_t>> pieces;
  Vocabulary known;
  size_t begin = 0;
  while (begin < text.size()) {
    const std::optional<TextSet::Found> found = special.find(text, begin);
    const std::string_view part = text.substr(begin, (found ? found->begin : text.size()) - begin);
    LS_TRY(const std::vector<Match> matches, pattern.matches(part));
    for (const Match& match : matches) {
      const std::string_view piece = part.substr(match.begin, match.end - match.begin);
      const auto place = known.find(piece);
      if (place != known.end()) {
        ++pieces[place->second].second;
      } else {
        known.emplace(piece, static_cast<uint32_t>(pieces.size()));
        pieces.emplace_back(piece, 1);
      }
    }
    begin = found ? found->end : text.size();
  }
  return pieces;
}

struct Learned {
  std::vector<std::string> tokens;  ///< by id
  std::vector<TokenPair> merges;
};

io::Json byteLevelJson(bool add_prefix_space) {
  return io::Json::object()
      .add("type", "ByteLevel")
      .add("add_prefix_space", add_prefix_space)
      .add("trim_offsets", true)
      .add("use_regex", true);
}

std::string toTokenizerJson(const Learned& learned, size_t special_count) {
  io::Json added = io::Json::array(), vocabulary = io::Json::object(), merges = io::Json::array();
  for (size_t id = 0; id < learned.tokens.size(); ++id) {
    vocabulary.add(learned.tokens[id], static_cast<uint64_t>(id));
    if (id >= special_count) continue;
    added.add(io::Json::object()
                  .add("id", static_cast<uint64_t>(id))
                  .add("content", learned.tokens[id])
                  .add("single_word", false)
                  .add("lstrip", false)
                  .add("rstrip", false)
                  .add("normalized", false)
                  .add("special", true));
  }
  for (const auto& [left, right] : learned.merges) merges.add(io::Json::array().add(learned.tokens[left]).add(learned.tokens[right]));
  const io::Json model = io::Json::object()
                             .add("type", "BPE")
                             .add("dropout", io::Json())
                             .add("unk_token", io::Json())
                             .add("continuing_subword_prefix", io::Json())
                             .add("end_of_word_suffix", io::Json())
                             .add("fuse_unk", false)
                             .add("byte_fallback", false)
                             .add("ignore_merges", false)
                             .add("vocab", vocabulary)
                             .add("merges", merges);
  return io::Json::object()
             .add("version", "1.0")
             .add("truncation", io::Json())
             .add("padding", io::Json())
             .add("added_tokens", added)
             .add("normalizer", io::Json())
             .add("pre_tokenizer", byteLevelJson(false))
             .add("post_processor", byteLevelJson(true))
             .add("decoder", byteLevelJson(true))
             .add("model", model)
             .text() +
         "\n";
}

}  // namespace

Result<std::string> trainByteLevelBpe(std::string_view text, const BpeTraining& training) {
  if (const size_t valid = validUtf8Prefix(text); valid < text.size()) {
    return untrainable(fmt::format("the text is not UTF-8 at byte {}", valid));
  }
  constexpr size_t kBytes = 256, kMostTokens = 1'000'000;
  Learned learned{.tokens = training.special_tokens, .merges = {}};
  const size_t least = kBytes + learned.tokens.size();
  if (training.vocabulary_size < least || training.vocabulary_size > kMostTokens) {
    return untrainable(fmt::format("a vocabulary of {} tokens, wanted {} (the bytes and {} special tokens) to {}", training.vocabulary_size,
                                   least, learned.tokens.size(), kMostTokens));
  }
  // By character, so that the ids are those that Hugging Face's trainer gives.
  std::vector<std::string> alphabet(byteLevelAlphabet().begin(), byteLevelAlphabet().end());
  std::ranges::sort(alphabet);
  learned.tokens.insert(learned.tokens.end(), alphabet.begin(), alphabet.end());
  Vocabulary ids;
  for (size_t id = 0; id < learned.tokens.size(); ++id) {
    const std::string& token = learned.tokens[id];
    if (token.empty() || validUtf8Prefix(token) < token.size()) return untrainable("a special token is empty or not UTF-8");
    if (!ids.emplace(token, static_cast<uint32_t>(id)).second)
      return untrainable(fmt::format("the special token '{}' is there twice, or a byte", token));
  }

  LS_TRY(const auto pieces, countPieces(text, training.special_tokens));
  std::vector<CountedWord> words;
  for (const auto& [piece, count] : pieces) {
    CountedWord word{.ids = {}, .count = count};
    for (const char byte : piece) word.ids.push_back(ids.find(byteLevelAlphabet()[static_cast<unsigned char>(byte)])->second);
    words.push_back(std::move(word));
  }
  PairCounts counts(std::move(words));
  while (learned.tokens.size() < training.vocabulary_size) {
    const PairCounts::Top top = counts.top();
    if (top.count < 1 || static_cast<uint64_t>(top.count) < training.least_count) break;
    const std::string token = learned.tokens[top.pair.first] + learned.tokens[top.pair.second];
    const auto [place, is_new] = ids.emplace(token, static_cast<uint32_t>(learned.tokens.size()));
    if (is_new) learned.tokens.push_back(token);
    learned.merges.push_back(top.pair);
    counts.merge(top.pair, place->second);
  }
  return toTokenizerJson(learned, training.special_tokens.size());
}

}  // namespace lockstep::text
