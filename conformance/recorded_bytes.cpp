// SPDX-License-Identifier: Apache-2.0
#include "conformance/recorded_bytes.h"

#include <zlib.h>

#include <array>
#include <cstdint>

namespace lockstep::conformance {
namespace {

constexpr std::string_view kAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

std::optional<std::vector<uint8_t>> decodeBase64(std::string_view text) {
  std::vector<uint8_t> bytes;
  uint32_t bits = 0;
  int count = 0;
  for (const char c : text.substr(0, text.find('='))) {
    const size_t digit = kAlphabet.find(c);
    if (digit == std::string_view::npos) return std::nullopt;
    bits = bits << 6u | static_cast<uint32_t>(digit);
    count += 6;
    if (count >= 8) {
      count -= 8;
      bytes.push_back(static_cast<uint8_t>(bits >> static_cast<uint32_t>(count)));
    }
  }
  return bytes;
}

std::optional<Bytes> inflateRaw(std::vector<uint8_t> packed, size_t size) {
  Bytes bytes(size);
  z_stream stream{};
  if (inflateInit2(&stream, -MAX_WBITS) != Z_OK) return std::nullopt;
  stream.next_in = packed.data();
  stream.avail_in = static_cast<unsigned>(packed.size());
  stream.next_out = reinterpret_cast<unsigned char*>(bytes.data());
  stream.avail_out = static_cast<unsigned>(size);
  const int end = inflate(&stream, Z_FINISH);
  const bool complete = end == Z_STREAM_END && stream.avail_out == 0;
  inflateEnd(&stream);
  if (!complete) return std::nullopt;
  return bytes;
}

}  // namespace

std::optional<Bytes> decodeBytes(std::string_view text, size_t size, const Bytes& before) {
  if (text == "0") return Bytes(size);
  if (text == "=") return before.size() == size ? std::optional(before) : std::nullopt;
  if (!text.starts_with('z')) return std::nullopt;
  std::optional<std::vector<uint8_t>> packed = decodeBase64(text.substr(1));
  return packed ? inflateRaw(std::move(*packed), size) : std::nullopt;
}

}  // namespace lockstep::conformance
