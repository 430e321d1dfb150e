// SPDX-License-Identifier: Apache-2.0
// Where in the source an instruction comes from: OpLine, and OpSource with the text. Debuggers and messages of validation show both.
#include <algorithm>
#include <array>

#include "backends/vulkan/spirv_emitter.h"

namespace lockstep::vulkan {
namespace {

constexpr uint32_t kMostWords = 0xFFFF;  ///< of one instruction

uint32_t opcodeOf(uint32_t head) { return head & 0xFFFF; }
uint32_t wordCountOf(uint32_t head) { return head >> 16; }

/// Whether an instruction of the module stands before the names of files.
bool isBeforeSources(uint32_t opcode) {
  constexpr std::array<uint32_t, 6> kOps{spv::OpCapability,  spv::OpExtension,  spv::OpExtInstImport,
                                         spv::OpMemoryModel, spv::OpEntryPoint, spv::OpExecutionMode};
  return std::ranges::find(kOps, opcode) != kOps.end();
}

/// An instruction whose last operand is a text. A byte above 127 is one of UTF-8.
void append(std::vector<uint32_t>& words, uint32_t opcode, const std::vector<uint32_t>& operands, std::string_view text) {
  const size_t head = words.size();
  words.push_back(0);
  words.insert(words.end(), operands.begin(), operands.end());
  const size_t first = words.size();
  words.resize(first + text.size() / 4 + 1);
  for (size_t i = 0; i < text.size(); ++i) words[first + i / 4] |= uint32_t{static_cast<uint8_t>(text[i])} << (i % 4 * 8);
  words[head] = static_cast<uint32_t>(words.size() - head) << 16 | opcode;
}

/// As much of a text as one instruction with this many operands before it takes; a character of UTF-8 is not divided.
std::string_view takePart(std::string_view& text, size_t operands) {
  size_t size = std::min<size_t>(text.size(), (kMostWords - 2 - operands) * 4);
  const auto continues = [&](size_t at) { return at < text.size() && (static_cast<uint8_t>(text[at]) & 0xC0) == 0x80; };
  while (size > 0 && continues(size)) --size;
  const std::string_view part = text.substr(0, size);
  text.remove_prefix(size);
  return part;
}

}  // namespace

spv::Id Emitter::sourceFile(const std::string& file) {
  auto [known, is_new] = source_files_.try_emplace(file, spv::NoResult);
  if (is_new) known->second = builder_.getUniqueId();
  return known->second;
}

void Emitter::markLine(uint32_t location) {
  if (!options_.source_lines) return;
  spv::Block* block = builder_.getBuildPoint();
  if (location != 0 && !module_.locations[location - 1].known()) location = 0;
  if (block != lined_block_) line_ = 0;
  lined_block_ = block;
  if (location == line_) return;
  line_ = location;
  if (location == 0) {
    block->addInstruction(std::make_unique<spv::Instruction>(spv::OpNoLine));
    return;
  }
  const Location& place = module_.locations[location - 1];
  auto line = std::make_unique<spv::Instruction>(spv::OpLine);
  line->addIdOperand(sourceFile(place.file));
  line->addImmediateOperand(place.line);
  line->addImmediateOperand(place.column);
  block->addInstruction(std::move(line));
}

void Emitter::continueIn(spv::Block& block) {
  const uint32_t location = line_;
  builder_.setBuildPoint(&block);
  markLine(location);
}

// The language is 0, unknown: the number of WGSL is younger than many tools, which refuse what they do not know.
std::vector<uint32_t> Emitter::withSources(const std::vector<uint32_t>& words) const {
  constexpr size_t kHeader = 5;
  std::vector<uint32_t> made(words.begin(), words.begin() + kHeader);
  size_t at = kHeader;
  const auto copy = [&](size_t count) { made.insert(made.end(), words.begin() + at, words.begin() + at + count), at += count; };
  while (at < words.size() && isBeforeSources(opcodeOf(words[at]))) copy(wordCountOf(words[at]));
  for (const auto& [file, id] : source_files_) append(made, spv::OpString, {id}, file.substr(0, file.find('\0')));
  // A module has one text, that of the file that it was read from.
  const std::string& main = module_.locations.front().file;
  for (const auto& [file, id] : source_files_) {
    std::string_view text = file == main ? std::string_view(module_.source) : std::string_view();
    text = text.substr(0, text.find('\0'));
    if (text.empty()) continue;
    append(made, spv::OpSource, {spv::SourceLanguageUnknown, 0, id}, takePart(text, 3));
    while (!text.empty()) append(made, spv::OpSourceContinued, {}, takePart(text, 0));
  }
  while (at < words.size()) {
    const size_t count = wordCountOf(words[at]), next = at + count;
    const uint32_t following = next < words.size() ? opcodeOf(words[next]) : 0;
    // A line of an instruction that made no words.
    const bool is_idle = opcodeOf(words[at]) == spv::OpLine && (following == spv::OpLine || following == spv::OpNoLine);
    if (is_idle) {
      at = next;
    } else {
      copy(count);
    }
  }
  return made;
}

}  // namespace lockstep::vulkan
