// SPDX-License-Identifier: Apache-2.0
// How a body's values lie in its bindings: words, packed elements of words, and vectors of words.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "ir/graph/packed_element.h"
#include "passes/emit/body_emitter.h"

namespace lockstep::passes {

using graph::DType;
using kernel::Op;

namespace {

constexpr int64_t kMostWords = 4;  // of a vector

uint32_t unsigned32(int64_t value) { return static_cast<uint32_t>(static_cast<uint64_t>(value)); }

}  // namespace

kernel::TypeId BodyEmitter::entryType(const Memory& memory) {
  const kernel::Scalar scalar = graph::memoryScalar(memory.dtype);
  return memory.words == 1 ? builder_.types().scalar(scalar) : builder_.types().vector(scalar, static_cast<uint32_t>(memory.words));
}

BodyEmitter::Memory BodyEmitter::declare(const std::vector<uint32_t>& bindings, const graph::TensorType& type, kernel::Access access,
                                         const std::string& name, const BodyBindings& how) {
  Memory memory{.dtype = type.dtype, .bindings = bindings, .windows = {}};
  const int64_t words = std::min(kMostWords, how.width / memory.perWord());
  const bool is_scalar = std::ranges::any_of(bindings, [&](uint32_t binding) { return how.scalars.contains(binding); });
  if (words > 1 && !is_scalar && type.shape.elementCount() % (words * memory.perWord()) == 0) memory.words = words;
  int64_t left = (type.shape.elementCount() + memory.perWord() - 1) / memory.perWord();
  for (size_t i = 0; i < bindings.size(); ++i) {
    const int64_t held = i + 1 < bindings.size() ? window_ : left;
    left -= held;
    kernel::ValueId& variable = variables_[bindings[i]];
    if (!variable.valid()) {
      const auto entries = static_cast<uint32_t>((held + memory.words - 1) / memory.words);
      variable = builder_.global({.name = bindings.size() == 1 ? name : fmt::format("{}_{}", name, i),
                                  .value = {},
                                  .type = builder_.types().array(entryType(memory), entries),
                                  .space = kernel::AddressSpace::Storage,
                                  .access = access,
                                  .group = 0,
                                  .binding = bindings[i],
                                  .initializer = {}});
    }
    memory.windows.push_back(variable);
  }
  return memory;
}

kernel::ValueId BodyEmitter::entryIndex(kernel::ValueId number, int64_t per_entry, int64_t further) {
  if (per_entry == 1 && further == 0) return number;
  const std::pair key{number, std::array{per_entry, further}};
  for (size_t i = scopes_.size(); i-- > 0;) {
    if (const auto found = scopes_[i].entry_indices.find(key); found != scopes_[i].entry_indices.end()) return found->second;
  }
  kernel::ValueId index;
  if (further > 0) {
    index = builder_.make(Op::Add, {entryIndex(number, per_entry, 0), builder_.u32(unsigned32(further))});
  } else if (const auto known = multiples_.find(number); known != multiples_.end() && known->second.factor % per_entry == 0) {
    const int64_t factor = known->second.factor / per_entry;
    index = factor == 1 ? known->second.of : builder_.make(Op::Mul, {known->second.of, builder_.u32(unsigned32(factor))});
  } else {
    index = builder_.make(Op::Div, {number, builder_.u32(unsigned32(per_entry))});
  }
  scopes_.back().entry_indices[key] = index;
  return index;
}

void BodyEmitter::inWindow(const Memory& memory, kernel::ValueId index, const std::function<void(kernel::ValueId, kernel::ValueId)>& use) {
  const std::vector<kernel::ValueId>& windows = memory.windows;
  if (windows.size() == 1) return use(windows.front(), index);
  const kernel::ValueId per_window = builder_.u32(unsigned32(window_ / memory.words));
  kernel::ValueId number = builder_.make(Op::Div, {index, per_window});
  kernel::ValueId inside = builder_.make(Op::Rem, {index, per_window});
  std::function<void(size_t)> from = [&](size_t i) {
    if (i + 1 == windows.size()) return use(windows[i], inside);
    kernel::ValueId here = builder_.make(Op::Eq, {number, builder_.u32(unsigned32(static_cast<int64_t>(i)))});
    builder_.ifThen(here, [&] { use(windows[i], inside); }, [&] { from(i + 1); });
  };
  from(0);
}

kernel::ValueId BodyEmitter::decoded(DType dtype, kernel::ValueId word, kernel::ValueId place) {
  if (graph::isPacked(dtype)) return graph::emitDecoded(builder_, dtype, word, place);
  return dtype == DType::Bool ? builder_.make(Op::Ne, {word, builder_.u32(0)}) : word;
}

kernel::ValueId BodyEmitter::encoded(DType dtype, std::span<const kernel::ValueId> elements) {
  if (!graph::isPacked(dtype)) {
    const kernel::ValueId element = elements.front();
    return builder_.typeOf(element).isBool() ? builder_.make(Op::Select, {builder_.u32(0), builder_.u32(1), element}) : element;
  }
  const auto bits = static_cast<uint32_t>(8 * graph::byteSize(dtype));
  kernel::ValueId word;
  for (size_t i = 0; i < elements.size(); ++i) {
    kernel::ValueId part = graph::emitEncoded(builder_, dtype, elements[i]);
    if (i > 0) part = builder_.make(Op::Shl, {part, builder_.u32(bits * static_cast<uint32_t>(i))});
    word = i == 0 ? part : builder_.make(Op::Or, {word, part});
  }
  return word;
}

kernel::ValueId BodyEmitter::loadEntry(graph::ValueId input, kernel::ValueId index, kernel::ValueId word, bool proven) {
  const Memory& memory = input_memory_[inputs_.at(input)];
  const bool is_remembered = memory.perEntry() > 1 && !word.valid();
  for (size_t i = scopes_.size(); i-- > 0 && is_remembered;) {
    if (const auto found = scopes_[i].entries.find({input, index}); found != scopes_[i].entries.end()) return found->second;
  }
  kernel::ValueId loaded, held;
  if (memory.windows.size() > 1) {
    const kernel::TypeId type = word.valid() ? builder_.types().scalar(graph::memoryScalar(memory.dtype)) : entryType(memory);
    held = builder_.var(type, "element");
  }
  inWindow(memory, index, [&](kernel::ValueId window, kernel::ValueId at) {
    loaded = builder_.load(builder_.access(window, word.valid() ? std::vector{at, word} : std::vector{at}, proven));
    if (held.valid()) builder_.store(held, loaded);
  });
  if (held.valid()) loaded = builder_.load(held);
  if (is_remembered) scopes_.back().entries[{input, index}] = loaded;
  return loaded;
}

BodyEmitter::Place BodyEmitter::placeOf(const Memory& memory, kernel::ValueId linear) {
  Place place{linear, {}, {}};
  const kernel::ValueId per_entry = builder_.u32(unsigned32(memory.perEntry())), per_word = builder_.u32(unsigned32(memory.perWord()));
  if (memory.perEntry() > 1) {
    place.entry = builder_.make(Op::Div, {linear, per_entry});
    place.element = builder_.make(Op::Rem, {linear, per_entry});
  }
  if (memory.words == 1) return place;
  read_by_element_.insert(memory.bindings.begin(), memory.bindings.end());
  place.word = place.element;
  if (memory.perWord() > 1) {
    place.word = builder_.make(Op::Div, {place.element, per_word});
    place.element = builder_.make(Op::Rem, {place.element, per_word});
  }
  return place;
}

kernel::ValueId BodyEmitter::load(graph::ValueId input, kernel::ValueId linear, bool proven) {
  const Place place = placeOf(input_memory_[inputs_.at(input)], linear);
  return decoded(body_.typeOf(input).dtype, loadEntry(input, place.entry, place.word, proven), place.element);
}

kernel::ValueId BodyEmitter::within(kernel::ValueId index, kernel::ValueId inside) {
  if (!inside.valid()) return index;
  const std::pair key{index, inside};
  for (size_t i = scopes_.size(); i-- > 0;) {
    if (const auto found = scopes_[i].within.find(key); found != scopes_[i].within.end()) return found->second;
  }
  return scopes_.back().within[key] = builder_.make(Op::Select, {builder_.u32(0), index, inside});
}

kernel::ValueId BodyEmitter::loadAt(graph::ValueId input, PositionId position, kernel::ValueId inside) {
  const Memory& memory = input_memory_[inputs_.at(input)];
  const bool proven = positions_[position].proven;
  const Lanes lanes = lanesOf(position);
  const int64_t per_entry = memory.perEntry(), per_word = memory.perWord();
  if (per_entry == 1 || lanes.form != LaneForm::Neighbours || lanes.width % per_entry != 0)
    return load(input, within(linear(position), inside), proven);
  const kernel::ValueId index = within(entryIndex(linear(lanes.first), per_entry, lanes.lane / per_entry), inside);
  const kernel::ValueId entry = loadEntry(input, index, {}, proven);
  const auto word = static_cast<uint32_t>(lanes.lane % per_entry / per_word);
  return decoded(memory.dtype, memory.words == 1 ? entry : builder_.extract(entry, word), builder_.u32(unsigned32(lanes.lane % per_word)));
}

void BodyEmitter::storeEntry(const Memory& memory, kernel::ValueId index, std::span<const kernel::ValueId> words) {
  const kernel::ValueId entry =
      memory.words == 1 ? words.front() : builder_.construct(entryType(memory), std::vector(words.begin(), words.end()));
  inWindow(memory, index, [&](kernel::ValueId window, kernel::ValueId at) { builder_.store(builder_.access(window, {at}, true), entry); });
}

void BodyEmitter::store(size_t index, PositionId position, kernel::ValueId emitted) {
  const Memory& memory = result_memory_[index];
  if (memory.perWord() > 1) internalError("an element of a packed result was stored alone");
  const kernel::ValueId word = encoded(memory.dtype, std::span(&emitted, 1));
  const Place place = placeOf(memory, linear(position));
  inWindow(memory, place.entry, [&](kernel::ValueId window, kernel::ValueId at) {
    builder_.store(builder_.access(window, place.word.valid() ? std::vector{at, place.word} : std::vector{at}, true), word);
  });
}

void BodyEmitter::storeFrom(size_t index, kernel::ValueId first, std::span<const kernel::ValueId> values) {
  const Memory& memory = result_memory_[index];
  const auto per_entry = static_cast<size_t>(memory.perEntry()), per_word = static_cast<size_t>(memory.perWord());
  if (memory.words > 1 && values.size() % per_entry != 0) {  // a part of a vector, of which others store the rest
    read_by_element_.insert(memory.bindings.begin(), memory.bindings.end());
    return;
  }
  for (size_t lane = 0; lane < values.size(); lane += per_entry) {
    std::vector<kernel::ValueId> words;
    for (size_t i = lane; i < std::min(lane + per_entry, values.size()); i += per_word)
      words.push_back(encoded(memory.dtype, values.subspan(i, std::min(per_word, values.size() - i))));
    storeEntry(memory, entryIndex(first, memory.perEntry(), static_cast<int64_t>(lane / per_entry)), words);
  }
}

void BodyEmitter::storeWord(size_t index, kernel::ValueId number, std::span<const kernel::ValueId> elements) {
  const Memory& memory = result_memory_[index];
  const kernel::ValueId word = encoded(memory.dtype, elements);
  if (memory.words == 1) return storeEntry(memory, number, std::span(&word, 1));
  read_by_element_.insert(memory.bindings.begin(), memory.bindings.end());  // and everything is emitted once more
}

void BodyEmitter::storeNeighbours(std::span<const size_t> which, std::span<const kernel::ValueId> numbers,
                                  const std::function<PositionId(const graph::Shape&, kernel::ValueId)>& at) {
  std::vector<std::vector<kernel::ValueId>> values(which.size());
  const auto position = [&](size_t i, kernel::ValueId number) { return at(body_.shapeOf(body_.outputs[which[i]].value), number); };
  for (const kernel::ValueId number : numbers) {
    for (size_t i = 0; i < which.size(); ++i) values[i].push_back(value(body_.outputs[which[i]].value, position(i, number)));
  }
  for (size_t i = 0; i < which.size(); ++i) storeFrom(which[i], linear(position(i, numbers.front())), values[i]);
}

void BodyEmitter::storeVector(kernel::ValueId place, int64_t width, int64_t count) {
  std::vector<size_t> all(body_.outputs.size());
  std::iota(all.begin(), all.end(), size_t{0});
  pushScope();
  storeNeighbours(all, neighbours(place, width, count),
                  [&](const graph::Shape& shape, kernel::ValueId number) { return flat(shape, number); });
  popScope();
}

void BodyEmitter::storeAll(std::span<const kernel::ValueId> linears) {
  struct Stored {
    size_t result;
    PositionId position;
    kernel::ValueId value;
  };
  pushScope();
  std::vector<Stored> all;
  for (const kernel::ValueId linear : linears) {
    for (size_t i = 0; i < body_.outputs.size(); ++i) {
      const PositionId position = flat(body_.shapeOf(body_.outputs[i].value), linear);
      all.push_back({i, position, value(body_.outputs[i].value, position)});
    }
  }
  for (const Stored& stored : all) store(stored.result, stored.position, stored.value);
  popScope();
}

}  // namespace lockstep::passes
