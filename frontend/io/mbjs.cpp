// SPDX-License-Identifier: Apache-2.0
#include "frontend/io/mbjs.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>

#include "frontend/io/file.h"

namespace lockstep::io {
namespace {

constexpr uint32_t kMbjsMagic = 0x4D424A53, kNewest = 3, kHalves = 3;

/// The extents that shapes are made of; One stands for an axis that is not there.
enum Extent : uint8_t {
  One,
  Width,
  Inner,
  TwoInner,
  Taps,
  Rank,
  Projected,  ///< rank + 2 states
  States,
  Heads,
  Two,
  Mixed,   ///< inner, b and c
  Inputs,  ///< mixed and a step for each head
  ThreeWidth,
  FourWidth,
  kExtents
};
using Extents = std::array<uint64_t, kExtents>;
using Counts = std::span<const uint64_t>;

struct TensorRow {
  std::string_view name;
  Extent first, second = One;
};

constexpr TensorRow kMamba1Rows[] = {{"wInProj", TwoInner, Width}, {"bInProj", TwoInner}, {"wConv", Inner, Taps},     {"bConv", Inner},
                                     {"wXProj", Projected, Inner}, {"bXProj", Projected}, {"wDtProj", Inner, Rank},   {"bDtProj", Inner},
                                     {"A_log", Inner, States},     {"D_vec", Inner},      {"wOutProj", Width, Inner}, {"bOutProj", Width},
                                     {"normWeight", Width}};
constexpr TensorRow kMamba2Rows[] = {{"wInProj", Inputs, Width}, {"wConv", Mixed, Taps}, {"bConv", Mixed},
                                     {"A_log", Heads},           {"dt_bias", Heads},     {"D_vec", Heads},
                                     {"wOutProj", Width, Inner}, {"normWeight", Inner},  {"preNormWeight", Width}};
constexpr TensorRow kMamba3Rows[] = {{"wInProj", Inputs, Width}, {"wConv", Mixed, Taps}, {"bConv", Mixed},
                                     {"A_log", Heads, Two},      {"dt_bias", Heads},     {"D_vec", Heads},
                                     {"wOutProj", Width, Inner}, {"normWeight", Inner},  {"preNormWeight", Width}};
constexpr TensorRow kAttentionRows[] = {
    {"wQKV", ThreeWidth, Width}, {"bQKV", ThreeWidth}, {"wO", Width, Width}, {"bO", Width}, {"normWeight", Width}};
/// After those of attention, where it has a feed-forward part.
constexpr TensorRow kFeedForwardRows[] = {{"wFfn1", FourWidth, Width}, {"bFfn1", FourWidth}, {"wFfn2", Width, FourWidth}, {"bFfn2", Width}};

constexpr std::string_view kOneModel = "check that layers and tensors are those of one model";

uint64_t quotient(uint64_t a, uint64_t b) { return b == 0 ? 0 : a / b; }

// The extents that only a layer's own tensors tell; those that follow from others are put in later. Wrong ones fit no shape.
void solveMamba1(Counts counts, Extents& e) {
  e[Inner] = counts[9];
  e[Taps] = quotient(counts[2], e[Inner]);
  e[States] = quotient(counts[8], e[Inner]);
  e[Rank] = quotient(counts[6], e[Inner]);
}
void solveMamba2(Counts counts, Extents& e) {
  e[Inner] = counts[7];
  e[Heads] = counts[5];
  e[Mixed] = counts[2];
  e[Taps] = quotient(counts[1], e[Mixed]);
}
void solveAttention(Counts, Extents&) {}

/// A tensor whose extents make shapes that no layer has; empty where all is well.
struct Misfit {
  std::string_view tensor;
  std::string what;
  std::string_view remedy = kOneModel;
};
Misfit misfitOfTaps(const Extents& e) {
  if (e[Taps] >= 2) return {};
  return {"wConv", "and a convolution of one tap, where every layer has two or more",
          "write the file from a model whose convolutions have two taps or more; most have 4"};
}
Misfit misfitOfInner(std::string_view tensor, const Extents& e) {
  if (e[Inner] % e[Width] == 0) return {};
  return {tensor, fmt::format("and {} channels are not a multiple of the width {}", e[Inner], e[Width])};
}
Misfit misfitOfMamba1(const Extents& e) {
  if (Misfit inner = misfitOfInner("D_vec", e); !inner.what.empty()) return inner;
  return misfitOfTaps(e);
}
/// `parts`: the least that b and c take together.
Misfit misfitOfMamba2(const Extents& e, uint64_t parts) {
  if (Misfit inner = misfitOfInner("normWeight", e); !inner.what.empty()) return inner;
  if (e[Inner] % e[Heads] != 0) return {"A_log", fmt::format("and {} channels cannot be split into {} heads", e[Inner], e[Heads])};
  if (e[Mixed] > e[Inner] && (e[Mixed] - e[Inner]) % parts == 0) return misfitOfTaps(e);
  return {"bConv", fmt::format("not {} channels and a multiple of {} for b and c", e[Inner], parts)};
}
Misfit misfitOfReal(const Extents& e) { return misfitOfMamba2(e, 2); }
Misfit misfitOfComplex(const Extents& e) { return misfitOfMamba2(e, 4); }
Misfit misfitOfAttention(const Extents&) { return {}; }

struct Kind {
  std::string_view name;
  std::span<const TensorRow> rows;
  void (*solve)(Counts counts, Extents& extents);
  Misfit (*misfit)(const Extents& extents);
};
constexpr std::array<Kind, 4> kKinds{{{"mamba1", kMamba1Rows, solveMamba1, misfitOfMamba1},
                                      {"mamba2", kMamba2Rows, solveMamba2, misfitOfReal},
                                      {"mamba3", kMamba3Rows, solveMamba2, misfitOfComplex},
                                      {"attention", kAttentionRows, solveAttention, misfitOfAttention}}};
const Kind& kindOf(MbjsLayer layer) { return kKinds[static_cast<size_t>(layer)]; }

Extents extentsOf(const Kind& kind, Counts counts, uint64_t width) {
  Extents e{};
  e[One] = 1;
  e[Two] = 2;
  e[Width] = width;
  kind.solve(counts, e);
  e[TwoInner] = 2 * e[Inner];
  e[Projected] = e[Rank] + 2 * e[States];
  e[Inputs] = e[Mixed] + e[Heads];
  e[ThreeWidth] = 3 * width;
  e[FourWidth] = 4 * width;
  return e;
}

/// Of extents that may be too large for their product.
bool fits(uint64_t count, uint64_t first, uint64_t second) {
  return first != 0 && second != 0 && count % first == 0 && count / first == second;
}
bool fits(Counts counts, std::span<const TensorRow> rows, const Extents& e) {
  if (counts.size() < rows.size()) return false;
  for (size_t i = 0; i < rows.size(); ++i) {
    if (!fits(counts[i], e[rows[i].first], e[rows[i].second])) return false;
  }
  return true;
}

struct Tensor {
  std::string name;
  std::vector<int64_t> shape;
};

/// The tensors of a file in their order, from their numbers of elements.
class Layout {
 public:
  Layout(Counts counts, const std::vector<MbjsLayer>& layers, Location where)
      : counts_(counts), layers_(layers), where_(std::move(where)), width_(counts.empty() ? 0 : counts.back()) {}

  Result<std::vector<Tensor>> run() {
    size_t least = 2;
    for (const MbjsLayer layer : layers_) least += kindOf(layer).rows.size();
    if (counts_.size() < least) return wrongCount(least);
    if (width_ == 0 || counts_[0] == 0 || counts_[0] % width_ != 0)
      return wrongShape("embedding", counts_[0], fmt::format("not rows of {}, as final_norm has elements", width_));
    tensors_.push_back({"embedding", {signedOf(counts_[0] / width_), signedOf(width_)}});
    for (size_t i = 0; i < layers_.size(); ++i) LS_CHECK(layer(i));
    if (counts_.size() != tensors_.size() + 1) return wrongCount(tensors_.size() + 1);
    tensors_.push_back({"final_norm", {signedOf(width_)}});
    return std::move(tensors_);
  }

 private:
  static int64_t signedOf(uint64_t extent) { return static_cast<int64_t>(extent); }
  [[nodiscard]] Counts rest() const { return counts_.subspan(tensors_.size(), counts_.size() - 1 - tensors_.size()); }

  Status layer(size_t index) {
    const Kind& kind = kindOf(layers_[index]);
    // Feed-forward parts of layers before it may have taken what the least number left.
    if (rest().size() < kind.rows.size()) return wrongCount(tensors_.size() + kind.rows.size() + 1);
    const Extents e = extentsOf(kind, rest(), width_);
    for (const TensorRow& row : kind.rows) {
      const uint64_t count = rest().front();
      if (!fits(count, e[row.first], e[row.second])) {
        return wrongShape(
            fmt::format("layers.{}.{}", index, row.name), count,
            fmt::format("not the {} that the other tensors of this {} lead to",
                        row.second == One ? fmt::format("{}", e[row.first]) : fmt::format("{} x {}", e[row.first], e[row.second]),
                        kind.name));
      }
      add(index, row, e);
    }
    LS_CHECK(fitsAModel(index, kind, e));
    if (layers_[index] != MbjsLayer::Attention || !fits(rest(), kFeedForwardRows, e)) return Success{};
    for (const TensorRow& row : kFeedForwardRows) add(index, row, e);
    return Success{};
  }
  [[nodiscard]] Status fitsAModel(size_t index, const Kind& kind, const Extents& e) const {
    const Misfit misfit = kind.misfit(e);
    if (misfit.what.empty()) return Success{};
    const auto row = std::ranges::find(kind.rows, misfit.tensor, &TensorRow::name);
    return wrongShape(fmt::format("layers.{}.{}", index, misfit.tensor), e[row->first] * e[row->second], misfit.what, misfit.remedy);
  }
  void add(size_t index, const TensorRow& row, const Extents& e) {
    Tensor tensor{fmt::format("layers.{}.{}", index, row.name), {signedOf(e[row.first])}};
    if (row.second != One) tensor.shape.push_back(signedOf(e[row.second]));
    tensors_.push_back(std::move(tensor));
  }

  [[nodiscard]] Failure wrongCount(size_t expected) const {
    constexpr size_t kShown = 8;
    std::vector<std::string_view> names;
    for (size_t i = 0; i < std::min(kShown, layers_.size()); ++i) names.push_back(toString(layers_[i]));
    return fail("mbjs.count",
                fmt::format("there are {} tensors, and {} of an embedding, {} layers ({}{}) and a final norm", counts_.size(), expected,
                            layers_.size(), fmt::join(names, ", "), layers_.size() > kShown ? ", ..." : ""),
                where_, "use the file as it was written, and a version that lists its layers unless all are mamba1");
  }
  [[nodiscard]] Failure wrongShape(const std::string& name, uint64_t count, const std::string& what,
                                   std::string_view remedy = kOneModel) const {
    return fail("mbjs.shape", fmt::format("'{}' has {} elements, {}", name, count, what), where_, std::string(remedy));
  }

  Counts counts_;
  const std::vector<MbjsLayer>& layers_;
  Location where_;
  uint64_t width_;
  std::vector<Tensor> tensors_;
};

/// Words and bytes from the front of a file.
class Reader {
 public:
  Reader(std::span<const std::byte> bytes, Location where) : rest_(bytes), where_(std::move(where)) {}
  Result<std::span<const std::byte>> bytes(uint64_t size, const char* what) {
    if (size > rest_.size())
      return fail("mbjs.length", fmt::format("the file ends within {}: {} bytes where {} should be", what, rest_.size(), size), where_,
                  "get the whole file");
    const auto taken = rest_.first(size);
    rest_ = rest_.subspan(size);
    return taken;
  }
  Result<uint32_t> word(const char* what) {
    LS_TRY(const auto taken, bytes(sizeof(uint32_t), what));
    uint32_t value = 0;
    std::memcpy(&value, taken.data(), sizeof(value));
    return value;
  }
  [[nodiscard]] size_t left() const { return rest_.size(); }
  [[nodiscard]] const Location& where() const { return where_; }

 private:
  std::span<const std::byte> rest_;
  Location where_;
};

Result<std::vector<MbjsLayer>> readLayers(Reader& reader) {
  LS_TRY(const uint32_t count, reader.word("the number of layers"));
  LS_TRY(const auto kinds, reader.bytes((uint64_t{count} + 3) / 4 * 4, "the kinds of layers"));
  std::vector<MbjsLayer> layers;
  for (size_t i = 0; i < count; ++i) {
    const auto kind = std::to_integer<uint8_t>(kinds[i]);
    if (kind >= kKinds.size()) {
      return fail("mbjs.layer", fmt::format("layer {} is of kind {}", i, kind), reader.where(),
                  "kinds are 0 (mamba1), 1 (mamba2), 2 (mamba3) and 3 (attention)");
    }
    layers.push_back(static_cast<MbjsLayer>(kind));
  }
  return layers;
}

Result<std::vector<uint64_t>> readCounts(Reader& reader) {
  LS_TRY(const uint32_t count, reader.word("the number of tensors"));
  LS_TRY(const auto sizes, reader.bytes(uint64_t{count} * sizeof(uint32_t), "the sizes of tensors"));
  std::vector<uint64_t> counts;
  for (size_t i = 0; i < count; ++i) {
    uint32_t size = 0;
    std::memcpy(&size, sizes.data() + i * sizeof(size), sizeof(size));
    counts.push_back(size);
  }
  return counts;
}

void append(std::vector<std::byte>& bytes, uint64_t value) {
  const auto word = static_cast<uint32_t>(value);
  const auto* begin = reinterpret_cast<const std::byte*>(&word);
  bytes.insert(bytes.end(), begin, begin + sizeof(word));
}

/// Every tensor that a file of these layers has, in its order.
std::vector<std::string> namesOf(const MbjsFile& file) {
  std::vector<std::string> names{"embedding"};
  const auto add = [&](size_t index, std::span<const TensorRow> rows) {
    for (const TensorRow& row : rows) names.push_back(fmt::format("layers.{}.{}", index, row.name));
  };
  for (size_t i = 0; i < file.layers.size(); ++i) {
    add(i, kindOf(file.layers[i]).rows);
    const bool has_more = file.layers[i] == MbjsLayer::Attention && file.tensors.contains(fmt::format("layers.{}.wFfn1", i));
    if (has_more) add(i, kFeedForwardRows);
  }
  names.emplace_back("final_norm");
  return names;
}

/// The tensors to be written, in their order.
Result<std::vector<const Array*>> tensorsOf(const MbjsFile& file) {
  std::vector<const Array*> tensors;
  std::vector<uint64_t> counts;
  const std::vector<std::string> names = namesOf(file);
  for (const std::string& name : names) {
    const auto found = file.tensors.find(name);
    if (found == file.tensors.end())
      return fail("mbjs.tensor", fmt::format("there is no tensor '{}'", name), {}, "give every tensor that the file's layers have");
    tensors.push_back(&found->second);
    counts.push_back(found->second.elementCount());
  }
  for (const auto& [name, array] : file.tensors) {
    if (std::ranges::find(names, name) != names.end()) continue;
    return fail("mbjs.tensor", fmt::format("the file's layers have no tensor '{}'", name), {}, "leave it out, or add its layer");
  }
  LS_TRY(const std::vector<Tensor> layout, Layout(counts, file.layers, {}).run());
  for (size_t i = 0; i < layout.size(); ++i) {
    if (tensors[i]->shape == layout[i].shape && counts[i] <= std::numeric_limits<uint32_t>::max()) continue;
    return fail("mbjs.shape",
                fmt::format("'{}' is {}, and [{}] by its layer", names[i], describe(*tensors[i]), fmt::join(layout[i].shape, ",")), {},
                "matrices lie as [out, in], and a tensor has fewer than 2^32 elements");
  }
  return tensors;
}

}  // namespace

std::string_view toString(MbjsLayer layer) { return kindOf(layer).name; }

Result<MbjsFile> parseMbjs(std::span<const std::byte> bytes, const std::string& name) {
  Reader reader(bytes, {.file = name});
  LS_TRY(const uint32_t magic, reader.word("its magic number"));
  if (magic != kMbjsMagic)
    return fail("mbjs.magic", fmt::format("the file begins with 0x{:08X} and not with 0x{:08X}", magic, kMbjsMagic), reader.where(),
                "give a checkpoint of MambaCode.js");
  MbjsFile file;
  LS_TRY(file.version, reader.word("its version"));
  if (file.version < 1 || file.version > kNewest)
    return fail("mbjs.version", fmt::format("version {} is not known", file.version), reader.where(), "versions 1, 2 and 3 are read");
  if (file.version > 1) {
    LS_TRY(file.layers, readLayers(reader));
  }
  LS_TRY(const std::vector<uint64_t> counts, readCounts(reader));
  if (file.version == 1) file.layers.assign(counts.size() < 2 ? 0 : (counts.size() - 2) / std::size(kMamba1Rows), MbjsLayer::Mamba1);
  LS_TRY(const std::vector<Tensor> tensors, Layout(counts, file.layers, reader.where()).run());

  const ElementType type = file.version == kHalves ? ElementType::F16 : ElementType::F32;
  const uint64_t size = std::accumulate(counts.begin(), counts.end(), uint64_t{0}) * byteSize(type);
  if (size < reader.left())
    return fail("mbjs.length", fmt::format("the file goes on after its data: {} bytes where {} should be", reader.left(), size),
                reader.where(), "get the file as it was written");
  LS_TRY(std::span<const std::byte> data, reader.bytes(size, "its data"));
  for (size_t i = 0; i < tensors.size(); ++i) {
    const auto part = data.first(counts[i] * byteSize(type));
    data = data.subspan(part.size());
    Array array{type, tensors[i].shape, {part.begin(), part.end()}};
    if (type != ElementType::F32) array = Array::fromFloats(array.shape, array.toFloats());
    file.tensors.emplace(tensors[i].name, std::move(array));
  }
  return file;
}

Result<MbjsFile> readMbjs(const std::filesystem::path& path) {
  LS_TRY(const std::vector<std::byte> bytes, readFile(path));
  return parseMbjs(bytes, path.string());
}

Result<std::vector<std::byte>> formatMbjs(const MbjsFile& file) {
  const bool plain = std::ranges::all_of(file.layers, [](MbjsLayer layer) { return layer == MbjsLayer::Mamba1; });
  if (file.version < 1 || file.version > kNewest || (file.version == 1 && !plain))
    return fail("mbjs.version", fmt::format("version {} cannot hold these layers", file.version), {},
                "write version 2 (f32) or 3 (f16); version 1 has mamba1 alone");
  LS_TRY(const std::vector<const Array*> tensors, tensorsOf(file));
  std::vector<std::byte> bytes;
  append(bytes, kMbjsMagic);
  append(bytes, file.version);
  if (file.version > 1) {
    append(bytes, file.layers.size());
    for (const MbjsLayer layer : file.layers) bytes.push_back(static_cast<std::byte>(layer));
    bytes.resize((bytes.size() + 3) / 4 * 4);
  }
  append(bytes, tensors.size());
  for (const Array* array : tensors) append(bytes, array->elementCount());
  const std::vector<std::string> names = namesOf(file);
  for (size_t tensor = 0; tensor < tensors.size(); ++tensor) {
    const std::vector<double> values = tensors[tensor]->toDoubles();
    const Array written = Array::from(file.version == kHalves ? ElementType::F16 : ElementType::F32, tensors[tensor]->shape, values);
    for (size_t i = 0; i < values.size(); ++i) {
      if (std::isfinite(written.at(i)) || !std::isfinite(values[i])) continue;
      return fail("mbjs.value", fmt::format("element {} of '{}' is {}, beyond what f16 holds", i, names[tensor], values[i]), {},
                  "write version 2, which is f32");
    }
    bytes.insert(bytes.end(), written.data.begin(), written.data.end());
  }
  return bytes;
}

Status writeMbjs(const std::filesystem::path& path, const MbjsFile& file) {
  LS_TRY(const std::vector<std::byte> bytes, formatMbjs(file));
  return writeFileAtomically(path, bytes);
}

}  // namespace lockstep::io
