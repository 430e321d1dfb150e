// SPDX-License-Identifier: Apache-2.0
#include "frontend/text/bpe.h"

#include <fmt/format.h>

#include <queue>

#include "frontend/text/unicode.h"

namespace lockstep::text {
namespace {

uint64_t pairKey(uint32_t left, uint32_t right) { return (static_cast<uint64_t>(left) << 32) | right; }

}  // namespace

Result<Bpe> Bpe::read(const JsonValue* model, const std::string& file) {
  if (model == nullptr) return fail("tokenizer.file", "model is missing", {.file = file});
  LS_TRY(JsonFields fields, JsonFields::of(*model, file, "model"));
  LS_TRY(const std::string type, fields.text("type", "BPE"));
  if (type != "BPE") return fields.unsupported(fmt::format("the model '{}' is not supported", type), "supported: BPE");
  if (const JsonValue* dropout = fields.find("dropout"); dropout != nullptr) {
    const bool is_zero =
        (dropout->integer() != nullptr && *dropout->integer() == 0) || (dropout->number() != nullptr && *dropout->number() == 0);
    if (!is_zero) return fields.unsupported("model.dropout makes tokens random, which is not supported", "set it to null");
  }
  Bpe bpe;
  LS_TRY(bpe.prefix_, fields.text("continuing_subword_prefix", ""));
  LS_TRY(bpe.suffix_, fields.text("end_of_word_suffix", ""));
  LS_TRY(bpe.fuse_unknown_, fields.boolean("fuse_unk", false));
  LS_TRY(bpe.byte_fallback_, fields.boolean("byte_fallback", false));
  LS_TRY(bpe.ignore_merges_, fields.boolean("ignore_merges", false));
  LS_CHECK(bpe.readVocabulary(fields));
  LS_CHECK(bpe.readMerges(fields));
  LS_TRY(const std::string unknown, fields.text("unk_token", ""));
  if (!unknown.empty()) {
    const auto found = bpe.vocabulary_.find(unknown);
    if (found == bpe.vocabulary_.end()) return fields.wrong(fmt::format("model.unk_token '{}' is not in the vocabulary", unknown));
    bpe.unknown_ = found->second;
  }
  LS_CHECK(fields.onlyThese());
  return bpe;
}

Status Bpe::readVocabulary(JsonFields& fields) {
  LS_TRY(const JsonValue* value, fields.required("vocab"));
  if (value->object() == nullptr) return fields.wrong(fmt::format("model.vocab is {}, wanted an object", value->kind()));
  vocabulary_.reserve(value->object()->members.size());
  std::unordered_map<uint32_t, std::string_view> owners;
  owners.reserve(value->object()->members.size());
  for (const auto& [token, id] : value->object()->members) {
    if (id.integer() == nullptr || *id.integer() < 0 || *id.integer() > INT32_MAX) {
      return fields.wrong(fmt::format("model.vocab gives '{}' no id", token));
    }
    const auto number = static_cast<uint32_t>(*id.integer());
    if (const auto [owner, is_new] = owners.emplace(number, token); !is_new) {
      return fields.wrong(fmt::format("model.vocab gives the id {} to '{}' and to '{}'", number, owner->second, token));
    }
    vocabulary_.emplace(token, number);
  }
  byte_ids_.resize(256);
  for (size_t byte = 0; byte < 256; ++byte) {
    if (const auto found = vocabulary_.find(fmt::format("<0x{:02X}>", byte)); found != vocabulary_.end()) byte_ids_[byte] = found->second;
  }
  return Success{};
}

Status Bpe::readMerges(JsonFields& fields) {
  LS_TRY(const JsonArray* list, fields.array("merges"));
  merges_.reserve(list->size());
  size_t rank = 0;
  for (const JsonValue& entry : *list) {
    if (const std::string* text = entry.string(); text != nullptr) {
      if (text->starts_with("#version")) continue;
      const size_t space = text->find(' ');
      if (space == std::string::npos || text->find(' ', space + 1) != std::string::npos) {
        return fields.wrong(fmt::format("model.merges[{}] is '{}', wanted two tokens with a space between them", rank, *text));
      }
      LS_CHECK(addMerge(std::string_view(*text).substr(0, space), std::string_view(*text).substr(space + 1), fields, rank));
    } else {
      const JsonArray* pair = entry.array();
      if (pair == nullptr || pair->size() != 2 || (*pair)[0].string() == nullptr || (*pair)[1].string() == nullptr) {
        return fields.wrong(fmt::format("model.merges[{}] is not a pair of tokens", rank));
      }
      LS_CHECK(addMerge(*(*pair)[0].string(), *(*pair)[1].string(), fields, rank));
    }
    ++rank;
  }
  return Success{};
}

Status Bpe::addMerge(std::string_view left, std::string_view right, const JsonFields& fields, size_t rank) {
  std::string merged(left);
  if (right.size() < prefix_.size()) return fields.wrong(fmt::format("model.merges[{}]: '{}' is shorter than the prefix", rank, right));
  merged += right.substr(prefix_.size());
  uint32_t ids[3] = {};
  size_t count = 0;
  for (const std::string_view token : {left, right, std::string_view(merged)}) {
    const auto found = vocabulary_.find(token);
    if (found == vocabulary_.end()) return fields.wrong(fmt::format("model.merges[{}]: '{}' is not in the vocabulary", rank, token));
    ids[count++] = found->second;
  }
  merges_[pairKey(ids[0], ids[1])] = {.rank = static_cast<uint32_t>(rank), .result = ids[2]};
  return Success{};
}

std::optional<uint32_t> Bpe::wholePiece(std::string_view piece) const {
  if (!ignore_merges_) return std::nullopt;
  const auto found = vocabulary_.find(piece);
  return found == vocabulary_.end() ? std::nullopt : std::optional(found->second);
}

size_t Bpe::encode(std::string_view piece, std::vector<uint32_t>& ids) const {
  std::vector<uint32_t> symbols;
  const size_t dropped = addCharacters(piece, symbols);
  merge(symbols);
  ids.insert(ids.end(), symbols.begin(), symbols.end());
  return dropped;
}

bool Bpe::addFallbackBytes(std::string_view character, std::vector<uint32_t>& ids) const {
  for (const char byte : character) {
    if (!byte_ids_[static_cast<unsigned char>(byte)]) return false;
  }
  for (const char byte : character) ids.push_back(*byte_ids_[static_cast<unsigned char>(byte)]);
  return true;
}

size_t Bpe::addCharacters(std::string_view piece, std::vector<uint32_t>& ids) const {
  size_t dropped = 0;
  bool unknown_waits = false;  // A run of unknown characters that may go on.
  const auto flush = [&] {
    if (unknown_waits) ids.push_back(*unknown_);
    unknown_waits = false;
  };
  std::string decorated;
  for (size_t at = 0; at < piece.size();) {
    const size_t length = std::min(utf8Length(piece[at]), piece.size() - at);
    std::string_view character = piece.substr(at, length);
    const bool first = at == 0, last = at + length == piece.size();
    at += length;
    if ((!first && !prefix_.empty()) || (last && !suffix_.empty())) {
      decorated = first ? "" : prefix_;
      decorated += character;
      if (last) decorated += suffix_;
      character = decorated;
    }
    if (const auto found = vocabulary_.find(character); found != vocabulary_.end()) {
      flush();
      ids.push_back(found->second);
    } else if (byte_fallback_ && addFallbackBytes(character, ids)) {
      continue;
    } else if (unknown_) {
      if (!fuse_unknown_) flush();
      unknown_waits = true;
    } else {
      ++dropped;
    }
  }
  flush();
  return dropped;
}

const Bpe::Merge* Bpe::mergeOf(uint32_t left, uint32_t right) const {
  const auto found = merges_.find(pairKey(left, right));
  return found == merges_.end() ? nullptr : &found->second;
}

void Bpe::merge(std::vector<uint32_t>& ids) const {
  if (ids.size() < 2 || merges_.empty()) return;
  constexpr size_t kNone = SIZE_MAX;
  struct Symbol {
    size_t previous, next;
    bool merged;
  };
  struct Candidate {
    uint32_t rank;
    size_t at;
    uint32_t result;
    bool operator>(const Candidate& other) const { return rank != other.rank ? rank > other.rank : at > other.at; }
  };
  std::vector<Symbol> symbols(ids.size());
  for (size_t i = 0; i < ids.size(); ++i) {
    symbols[i] = {.previous = i == 0 ? kNone : i - 1, .next = i + 1 == ids.size() ? kNone : i + 1, .merged = false};
  }
  std::vector<Candidate> candidates;
  for (size_t i = 0; i + 1 < ids.size(); ++i) {
    if (const Merge* found = mergeOf(ids[i], ids[i + 1])) candidates.push_back({found->rank, i, found->result});
  }
  std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> queue(std::greater<>(), std::move(candidates));
  const auto offer = [&](size_t left) {
    if (left == kNone || symbols[left].next == kNone) return;
    if (const Merge* found = mergeOf(ids[left], ids[symbols[left].next])) queue.push({found->rank, left, found->result});
  };
  while (!queue.empty()) {
    const Candidate top = queue.top();
    queue.pop();
    if (symbols[top.at].merged || symbols[top.at].next == kNone) continue;
    const size_t right = symbols[top.at].next;
    // One of the two may have been merged with another since.
    const Merge* found = mergeOf(ids[top.at], ids[right]);
    if (found == nullptr || found->result != top.result) continue;
    ids[top.at] = top.result;
    symbols[right].merged = true;
    symbols[top.at].next = symbols[right].next;
    if (symbols[right].next != kNone) symbols[symbols[right].next].previous = top.at;
    offer(symbols[top.at].previous);
    offer(top.at);
  }
  size_t kept = 0;
  for (size_t i = 0; i < ids.size(); ++i) {
    if (!symbols[i].merged) ids[kept++] = ids[i];
  }
  ids.resize(kept);
}

}  // namespace lockstep::text
