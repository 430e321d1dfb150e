// SPDX-License-Identifier: Apache-2.0
// Text to tokens and back, by a tokenizer.json of Hugging Face: byte-level BPE (GPT-2, Llama 3, Qwen) and BPE with bytes for what has no
// token (Llama 2, Mistral, Gemma). What the file asks for and we do not do is an error when it is read; docs/tokenizer.md lists what we do.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/support/result.h"

namespace lockstep::text {

struct EncodeOptions {
  /// Adds what the post-processor adds, for example <s> in front. A chat template writes these itself.
  bool add_special_tokens = true;
  /// "<|im_end|>" in the text is that token, as for Hugging Face. Off, it is text: for text that a user wrote.
  bool parse_special_tokens = true;
  /// A character that has no token, in a file without unk_token and without all bytes, is left out, as Hugging Face does; or it is an
  /// error, code "tokenizer.text".
  bool refuse_unknown = false;
};

struct DecodeOptions {
  bool skip_special_tokens = true;
  /// An id without a token is left out, as Hugging Face does, or it is an error, code "tokenizer.id". A model's vocabulary may be larger
  /// than its tokenizer's, and a model that was not trained samples such ids.
  bool skip_unknown_ids = false;
};

/// Cheap to copy, and never changes: any number of threads may use one.
class Tokenizer {
 public:
  /// Reads tokenizer.json. Codes: file.read, json.text, tokenizer.file, tokenizer.unsupported, tokenizer.regex.
  static Result<Tokenizer> load(const std::filesystem::path& file);
  /// The same of a text; `file` stands for it in messages.
  static Result<Tokenizer> parse(std::string_view json, const std::string& file);

  /// Text that is not UTF-8 is an error: code "tokenizer.text".
  [[nodiscard]] Result<std::vector<uint32_t>> encode(std::string_view text, const EncodeOptions& options = {}) const;
  /// Bytes that are no UTF-8 become U+FFFD.
  [[nodiscard]] Result<std::string> decode(std::span<const uint32_t> ids, const DecodeOptions& options = {}) const;

  /// Of tokens as the file writes them, added ones too.
  [[nodiscard]] std::optional<uint32_t> idOf(std::string_view token) const;
  /// Null where the id has none.
  [[nodiscard]] const std::string* tokenOf(uint32_t id) const;
  [[nodiscard]] bool isSpecial(uint32_t id) const;
  /// One more than the largest id. A model's vocabulary may be larger.
  [[nodiscard]] size_t idLimit() const;
  [[nodiscard]] size_t size() const;

 private:
  friend class StreamDecoder;
  struct Parts;
  explicit Tokenizer(std::shared_ptr<const Parts> parts) : parts_(std::move(parts)) {}
  [[nodiscard]] Result<std::string> decodeBytes(std::span<const uint32_t> ids) const;
  std::shared_ptr<const Parts> parts_;
};

/// Text of tokens as they come. What is not yet a whole character is held back; the pieces together are what decode() gives for text that
/// is UTF-8. Other bytes become U+FFFD.
class StreamDecoder {
 public:
  explicit StreamDecoder(Tokenizer tokenizer, const DecodeOptions& options = {}) : tokenizer_(std::move(tokenizer)), options_(options) {}
  /// The text that this token completes; often "" for one that ends within a character. code "tokenizer.id"
  Result<std::string> push(uint32_t id);
  /// What is held back, when no more tokens come. The next push() begins another text.
  Result<std::string> finish();

 private:
  Tokenizer tokenizer_;
  DecodeOptions options_;
  std::vector<uint32_t> window_;  ///< the last tokens whose text was given, then those that wait
  size_t given_ = 0;              ///< of these
};

}  // namespace lockstep::text
