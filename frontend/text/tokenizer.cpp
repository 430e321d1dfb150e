// SPDX-License-Identifier: Apache-2.0
#include "frontend/text/tokenizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "frontend/io/regular_file.h"
#include "frontend/text/added_tokens.h"
#include "frontend/text/bpe.h"
#include "frontend/text/pipeline.h"
#include "frontend/text/unicode.h"

namespace lockstep::text {

struct Tokenizer::Parts {
  AddedTokens added;
  Normalizer normalizer;
  PreTokenizer pre_tokenizer;
  Bpe model;
  PostProcessor post_processor;
  Decoder decoder;
  Vocabulary added_ids;
  std::unordered_map<uint32_t, std::string> tokens;
  std::unordered_set<uint32_t> special;
  size_t id_limit = 0;
};

namespace {

/// The ids of the pieces of one text; equal pieces, which text is full of, are merged once.
class PieceEncoder {
 public:
  PieceEncoder(const Bpe& model, const std::unordered_set<uint32_t>& special, const EncodeOptions& options)
      : model_(model), special_(special), options_(options) {}

  Status add(const std::string& piece, std::vector<uint32_t>& ids) {
    if (const auto known = known_.find(piece); known != known_.end()) {
      ids.insert(ids.end(), known->second.begin(), known->second.end());
      return Success{};
    }
    const size_t before = ids.size();
    const std::optional<uint32_t> whole = model_.wholePiece(piece);
    if (whole && (options_.parse_special_tokens || !special_.contains(*whole))) {
      ids.push_back(*whole);
    } else if (model_.encode(piece, ids) > 0 && options_.refuse_unknown) {
      return fail("tokenizer.text", fmt::format("the tokenizer has no token for a character of '{}'", piece));
    }
    constexpr size_t kLongest = 64, kMost = 100'000;
    if (piece.size() <= kLongest && known_.size() < kMost) {
      known_.emplace(piece, std::vector<uint32_t>(ids.begin() + static_cast<std::ptrdiff_t>(before), ids.end()));
    }
    return Success{};
  }

 private:
  const Bpe& model_;
  const std::unordered_set<uint32_t>& special_;
  const EncodeOptions& options_;
  std::unordered_map<std::string, std::vector<uint32_t>> known_;
};

}  // namespace

namespace {
constexpr uint64_t kMostTokenizerBytes = uint64_t{1} << 30;
}

Result<Tokenizer> Tokenizer::load(const std::filesystem::path& file) {
  LS_TRY(const std::string text, io::readRegularTextFile(file, kMostTokenizerBytes));
  return parse(text, file.string());
}

Result<Tokenizer> Tokenizer::parse(std::string_view json, const std::string& file) {
  LS_TRY(const JsonValue value, parseJson(json, file));
  LS_TRY(JsonFields fields, JsonFields::of(value, file, ""));
  LS_TRY(const std::string version, fields.text("version", "1.0"));
  if (version != "1.0") return fields.unsupported(fmt::format("version is '{}'", version), "known: 1.0");
  // Settings of a call, which transformers sets anew for each.
  fields.ignore("truncation");
  fields.ignore("padding");

  auto parts = std::make_shared<Parts>();
  LS_TRY(parts->added, AddedTokens::read(fields.find("added_tokens"), file));
  LS_TRY(parts->normalizer, readNormalizer(fields.find("normalizer"), file, "normalizer"));
  LS_TRY(parts->pre_tokenizer, readPreTokenizer(fields.find("pre_tokenizer"), file, "pre_tokenizer"));
  LS_TRY(parts->model, Bpe::read(fields.find("model"), file));
  LS_TRY(parts->post_processor, readPostProcessor(fields.find("post_processor"), file, "post_processor"));
  LS_TRY(parts->decoder, readDecoder(fields.find("decoder"), file, "decoder"));
  LS_CHECK(fields.onlyThese());
  LS_CHECK(parts->added.normalizeWith(parts->normalizer));

  for (const auto& [token, id] : parts->model.vocabulary()) parts->tokens.emplace(id, token);
  for (const AddedToken& token : parts->added.tokens()) {
    const auto known = parts->model.vocabulary().find(token.content);
    const auto [owner, is_new] = parts->tokens.emplace(token.id, token.content);
    if ((known != parts->model.vocabulary().end() && known->second != token.id) || (!is_new && owner->second != token.content)) {
      return fields.wrong(fmt::format("added_tokens gives '{}' the id {}, which is not what model.vocab says", token.content, token.id));
    }
    if (!parts->added_ids.emplace(token.content, token.id).second)
      return fields.wrong(fmt::format("added_tokens has '{}' twice", token.content));
    if (token.special) parts->special.insert(token.id);
  }
  for (const auto& [id, token] : parts->tokens) parts->id_limit = std::max<size_t>(parts->id_limit, id + size_t{1});
  return Tokenizer(std::move(parts));
}

Result<std::vector<uint32_t>> Tokenizer::encode(std::string_view text, const EncodeOptions& options) const {
  if (const size_t valid = validUtf8Prefix(text); valid < text.size()) {
    return fail("tokenizer.text", fmt::format("the text is not UTF-8 at byte {}", valid), {}, "convert it to UTF-8");
  }
  const SpecialTokens special = options.parse_special_tokens ? SpecialTokens::Find : SpecialTokens::LeaveAsText;
  PieceEncoder pieces(parts_->model, parts_->special, options);
  std::vector<uint32_t> ids;
  for (const TextPart& part : parts_->added.split(text, false, special)) {
    if (part.id) {
      ids.push_back(*part.id);
      continue;
    }
    LS_TRY(const std::string normalized, parts_->normalizer(std::string(text.substr(part.begin, part.end - part.begin))));
    for (const TextPart& inner : parts_->added.split(normalized, true, special)) {
      if (inner.id) {
        ids.push_back(*inner.id);
        continue;
      }
      std::vector<Piece> whole{
          {.text = normalized.substr(inner.begin, inner.end - inner.begin), .at_start = part.begin + inner.begin == 0}};
      LS_TRY(const std::vector<Piece> cut, parts_->pre_tokenizer(std::move(whole)));
      for (const Piece& piece : cut) LS_CHECK(pieces.add(piece.text, ids));
    }
  }
  if (options.add_special_tokens) ids = parts_->post_processor(std::move(ids));
  return ids;
}

namespace {

Failure noToken(uint32_t id, size_t limit) {
  return fail("tokenizer.id", fmt::format("the id {} has no token; ids go to {}", id, limit == 0 ? 0 : limit - 1), {},
              "a model's vocabulary may be larger than its tokenizer's: such ids must not be sampled");
}

}  // namespace

Result<std::string> Tokenizer::decode(std::span<const uint32_t> ids, const DecodeOptions& options) const {
  std::vector<std::string> tokens;
  for (const uint32_t id : ids) {
    const std::string* token = tokenOf(id);
    if (token == nullptr && options.skip_unknown_ids) continue;
    if (token == nullptr) return noToken(id, idLimit());
    if (!options.skip_special_tokens || !isSpecial(id)) tokens.push_back(*token);
  }
  if (tokens.empty()) return std::string();
  LS_TRY(tokens, parts_->decoder(std::move(tokens), DecodeMode::Whole));
  std::string text;
  for (const std::string& token : tokens) text += token;
  return lossyUtf8(text);
}

Result<std::string> Tokenizer::decodeBytes(std::span<const uint32_t> ids) const {
  if (ids.empty()) return std::string();
  std::vector<std::string> tokens;
  for (const uint32_t id : ids) tokens.push_back(*tokenOf(id));
  LS_TRY(tokens, parts_->decoder(std::move(tokens), DecodeMode::Stream));
  std::string bytes;
  for (const std::string& token : tokens) bytes += token;
  return bytes;
}

std::optional<uint32_t> Tokenizer::idOf(std::string_view token) const {
  if (const auto found = parts_->added_ids.find(token); found != parts_->added_ids.end()) return found->second;
  const auto found = parts_->model.vocabulary().find(token);
  return found == parts_->model.vocabulary().end() ? std::nullopt : std::optional(found->second);
}

const std::string* Tokenizer::tokenOf(uint32_t id) const {
  const auto found = parts_->tokens.find(id);
  return found == parts_->tokens.end() ? nullptr : &found->second;
}

bool Tokenizer::isSpecial(uint32_t id) const { return parts_->special.contains(id); }
size_t Tokenizer::idLimit() const { return parts_->id_limit; }
size_t Tokenizer::size() const { return parts_->tokens.size(); }

Result<std::string> StreamDecoder::push(uint32_t id) {
  const bool known = tokenizer_.tokenOf(id) != nullptr;
  if (!known && !options_.skip_unknown_ids) return noToken(id, tokenizer_.idLimit());
  if (!known || (options_.skip_special_tokens && tokenizer_.isSpecial(id))) return std::string();
  window_.push_back(id);
  LS_TRY(const std::string before, tokenizer_.decodeBytes(std::span(window_).first(given_)));
  LS_TRY(const std::string now, tokenizer_.decodeBytes(window_));
  if (now.size() <= before.size() || incompleteUtf8Tail(now) > 0) return std::string();
  window_.erase(window_.begin(), window_.begin() + static_cast<std::ptrdiff_t>(given_));
  given_ = window_.size();
  return lossyUtf8(std::string_view(now).substr(before.size()));
}

Result<std::string> StreamDecoder::finish() {
  LS_TRY(const std::string before, tokenizer_.decodeBytes(std::span(window_).first(given_)));
  LS_TRY(const std::string now, tokenizer_.decodeBytes(window_));
  window_.clear();
  given_ = 0;
  return now.size() <= before.size() ? std::string() : lossyUtf8(std::string_view(now).substr(before.size()));
}

}  // namespace lockstep::text
