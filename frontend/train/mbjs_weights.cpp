// SPDX-License-Identifier: Apache-2.0
#include "frontend/train/mbjs_weights.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "frontend/nn/nn.h"
#include "frontend/trace/throw_error.h"

namespace lockstep {

namespace {

using io::MbjsLayer;

/// How elements of a parameter lie in the file.
enum class Order : uint8_t {
  Same,
  Transposed,  ///< [in, out] here, [out, in] there
  Reversed,    ///< along the last axis
};

/// A parameter and its part of a tensor.
struct Pair {
  const Parameter* ours = nullptr;  ///< null: the file has a bias that the layer lacks
  std::string theirs = {};          ///< empty: the layer has a bias that the file lacks
  std::vector<int64_t> shape = {};  ///< of the whole tensor
  Order order = Order::Same;
  int64_t first = 0;  ///< row of the tensor that the part begins with

  /// Where element `i` of the parameter is in the tensor.
  [[nodiscard]] size_t place(size_t i) const {
    const auto columns = static_cast<size_t>(shape.back()), begin = static_cast<size_t>(first) * (shape.size() > 1 ? columns : 1);
    if (order == Order::Same) return begin + i;
    if (order == Order::Reversed) return i / columns * columns + (columns - 1 - i % columns);
    const auto out = static_cast<size_t>(ours->type().shape.extent(1));
    return begin + i % out * columns + i / out;
  }
};

std::string listed(const std::vector<std::string>& names) { return fmt::format("{}", fmt::join(names, ", ")); }

[[noreturn]] void refuseModel(const std::string& message, const std::string& remedy) {
  throw Error({.code = "mbjs.model", .message = message, .where = {}, .notes = {}, .remedy = remedy});
}

/// The parts of a model that stand for those of a file.
struct Parts {
  struct Layer {
    const Module* mixer = nullptr;
    MbjsLayer kind = MbjsLayer::Mamba1;
    const nn::RMSNorm* norm = nullptr;
    const nn::FeedForward* mlp = nullptr;
  };
  const nn::Embedding* embedding = nullptr;
  std::vector<Layer> layers;
  const nn::RMSNorm* norm = nullptr;
};

bool isMixer(const Module& module) {
  return dynamic_cast<const nn::Mamba1*>(&module) != nullptr || dynamic_cast<const nn::Mamba2*>(&module) != nullptr ||
         dynamic_cast<const nn::Mamba3*>(&module) != nullptr || dynamic_cast<const nn::MultiHeadAttention*>(&module) != nullptr;
}

MbjsLayer kindOf(const Module& mixer) {
  if (dynamic_cast<const nn::Mamba1*>(&mixer) != nullptr) return MbjsLayer::Mamba1;
  if (const auto* mamba2 = dynamic_cast<const nn::Mamba2*>(&mixer))
    return mamba2->A_log.type().shape.rank() == 1 ? MbjsLayer::Mamba2 : MbjsLayer::Mamba3;
  if (dynamic_cast<const nn::MultiHeadAttention*>(&mixer) != nullptr) return MbjsLayer::Attention;
  refuseModel(fmt::format("'{}' is an nn::Mamba3, and a mamba3 of MBJS files is another model", mixer.path()),
              "make it an nn::Mamba2 with .complex");
}

/// Every module that has parameters, itself or below it, in the order of declaration.
std::vector<const Module*> modulesOf(const Module& model) {
  std::vector<const Module*> modules;
  std::set<const Module*> known;
  for (const NamedParameter& named : model.parameters()) {
    std::vector<const Module*> line;
    for (const Module* at = &named.parameter->owner(); at != nullptr && known.insert(at).second; at = at->parent()) line.push_back(at);
    modules.insert(modules.end(), line.rbegin(), line.rend());
  }
  return modules;
}

/// The one part of type T whose parent is right; null where there is none.
template <class T>
const T* onePart(const std::vector<const Module*>& modules, const std::string& what, const std::function<bool(const Module*)>& is_parent) {
  const T* found = nullptr;
  std::vector<std::string> names;
  for (const Module* module : modules) {
    const auto* part = dynamic_cast<const T*>(module);
    if (part == nullptr || !is_parent(part->parent())) continue;
    found = part;
    names.push_back(part->path());
  }
  if (names.size() > 1)
    refuseModel(fmt::format("{} may be any of {}", what, listed(names)), "put each mixer with its norm into a module of its own");
  return found;
}

template <class T>
const T* needed(const T* part, const std::string& what) {
  if (part == nullptr) refuseModel("the model has no " + what, "frontend/train/mbjs_weights.h says what a model is made of");
  return part;
}

Parts partsOf(const Module& model) {
  const std::vector<const Module*> modules = modulesOf(model);
  Parts parts;
  std::set<const Module*> mixers, blocks;
  for (const Module* module : modules) {
    if (!isMixer(*module)) continue;
    mixers.insert(module);
    blocks.insert(module->parent());
    const auto beside = [&](const Module* parent) { return parent == module->parent(); };
    const std::string norm = fmt::format("nn::RMSNorm beside '{}'", module->path());
    parts.layers.push_back(
        {.mixer = module,
         .kind = kindOf(*module),
         .norm = needed(onePart<nn::RMSNorm>(modules, "the " + norm, beside), norm),
         .mlp = onePart<nn::FeedForward>(modules, fmt::format("the nn::FeedForward beside '{}'", module->path()), beside)});
  }
  const auto elsewhere = [&](const Module* parent) { return !blocks.contains(parent) && !mixers.contains(parent); };
  parts.norm = needed(onePart<nn::RMSNorm>(modules, "the last norm", elsewhere), "nn::RMSNorm after its layers");
  const auto anywhere = [](const Module*) { return true; };
  parts.embedding = needed(onePart<nn::Embedding>(modules, "the nn::Embedding", anywhere), "nn::Embedding");
  return parts;
}

/// The pairs of a model, in the order of a file.
class Pairing {
 public:
  explicit Pairing(const Module& model) : parts_(partsOf(model)) {
    same(parts_.embedding->W.parameter(), "embedding");
    for (const Parts::Layer& one : parts_.layers) {
      prefix_ = fmt::format("layers.{}.", layers.size());
      layers.push_back(one.kind);
      if (const auto* mamba1 = dynamic_cast<const nn::Mamba1*>(one.mixer)) add(*mamba1, *one.norm);
      if (const auto* mamba2 = dynamic_cast<const nn::Mamba2*>(one.mixer)) add(*mamba2, *one.norm);
      if (const auto* attention = dynamic_cast<const nn::MultiHeadAttention*>(one.mixer)) add(*attention, one);
    }
    prefix_.clear();
    gain(*parts_.norm, "final_norm");
    std::set<const Parameter*> known;
    for (const Pair& pair : pairs) known.insert(pair.ours);
    std::vector<std::string> others;
    for (const NamedParameter& named : model.parameters()) {
      if (!known.contains(named.parameter)) others.push_back(named.name);
    }
    if (!others.empty())
      refuseModel("MBJS files have no place for " + listed(others),
                  "use the embedding as the head too: matmul(h, swap_axes(tokens.W, 0, 1))");
  }

  std::vector<MbjsLayer> layers;
  std::vector<Pair> pairs;

 private:
  void conv(const std::unique_ptr<Parameter>& bias) {
    if (!bias) refuseModel("MBJS files have a bias of each convolution", "make the mixers with .conv_bias");
    same(*bias, "bConv");
  }
  void add(const nn::Mamba1& m, const nn::RMSNorm& norm) {
    linear(m.in_proj, "wInProj", "bInProj");
    pairs.push_back({&m.conv_W, prefix_ + "wConv", m.conv_W.type().shape.extents(), Order::Reversed});
    conv(m.conv_b);
    linear(m.x_proj, "wXProj", "bXProj");
    turned(m.dt_W, "wDtProj");
    same(m.dt_b, "bDtProj");
    same(m.A_log, "A_log");
    same(m.D, "D_vec");
    linear(m.out_proj, "wOutProj", "bOutProj");
    gain(norm, "normWeight");
  }
  void add(const nn::Mamba2& m, const nn::RMSNorm& norm) {
    linear(m.in_proj, "wInProj", {});
    pairs.push_back({&m.conv_W, prefix_ + "wConv", m.conv_W.type().shape.extents(), Order::Reversed});
    conv(m.conv_b);
    same(m.A_log, "A_log");
    same(m.dt_bias, "dt_bias");
    same(m.D, "D_vec");
    linear(m.out_proj, "wOutProj", {});
    gain(m.norm, "normWeight");
    gain(norm, "preNormWeight");
  }
  void add(const nn::MultiHeadAttention& m, const Parts::Layer& layer) {
    int64_t rows = 0, first = 0;
    for (const nn::Linear* one : {&m.q, &m.k, &m.v}) rows += one->W.type().shape.extent(1);
    for (const nn::Linear* one : {&m.q, &m.k, &m.v}) {
      linear(*one, "wQKV", "bQKV", first, rows);
      first += one->W.type().shape.extent(1);
    }
    linear(m.o, "wO", "bO");
    gain(*layer.norm, "normWeight");
    if (layer.mlp == nullptr) return;
    linear(layer.mlp->up, "wFfn1", "bFfn1");
    linear(layer.mlp->down, "wFfn2", "bFfn2");
  }

  void same(const Parameter& parameter, std::string_view name) {
    pairs.push_back({&parameter, prefix_ + std::string(name), parameter.type().shape.extents()});
  }
  /// A gain around one would lose digits on its way, as 1 + g does not have all those of g.
  void gain(const nn::RMSNorm& norm, std::string_view name) {
    if (norm.around_one())
      refuseModel(fmt::format("'{}' has its gain around one, and MBJS files have gains themselves", norm.path()),
                  "make the norm without .around_one");
    same(norm.g, name);
  }
  void turned(const Parameter& matrix, std::string_view name) {
    const graph::Shape& shape = matrix.type().shape;
    pairs.push_back({&matrix, prefix_ + std::string(name), {shape.extent(1), shape.extent(0)}, Order::Transposed});
  }
  /// A layer is so many rows of a tensor from `first` on; 0 rows: all. Without a name the file has no bias.
  void linear(const nn::Linear& layer, std::string_view weight, std::string_view bias, int64_t first = 0, int64_t rows = 0) {
    const graph::Shape& shape = layer.W.type().shape;
    if (rows == 0) rows = shape.extent(1);
    pairs.push_back({&layer.W.parameter(), prefix_ + std::string(weight), {rows, shape.extent(0)}, Order::Transposed, first});
    if (bias.empty() && layer.b == nullptr) return;
    pairs.push_back({layer.b.get(), bias.empty() ? "" : prefix_ + std::string(bias), {rows}, Order::Same, first});
  }

  Parts parts_;
  std::string prefix_;
};

void checkLayers(const Pairing& pairing, const io::MbjsFile& file) {
  const auto names = [](const std::vector<MbjsLayer>& layers) {
    std::vector<std::string> made;
    for (const MbjsLayer layer : layers) made.emplace_back(toString(layer));
    return layers.empty() ? std::string("no layers") : listed(made);
  };
  if (pairing.layers == file.layers) return;
  refuseModel(fmt::format("the file has {}, and the model {}", names(file.layers), names(pairing.layers)),
              "make the model of the layers of the file; a mamba3 is an nn::Mamba2 with .complex");
}

void checkZeros(std::span<const float> values, const std::string& name, const char* remedy) {
  if (std::ranges::all_of(values, [](float value) { return value == 0; })) return;
  detail::reject("mbjs.bias", fmt::format("'{}' is not zero, and the other side has no place for it", name), remedy);
}

}  // namespace

ParameterValues readMbjsWeights(const Module& model, const io::MbjsFile& file) {
  const Pairing pairing(model);
  checkLayers(pairing, file);
  ParameterValues values;
  std::set<std::string> taken;
  for (const Pair& pair : pairing.pairs) {
    std::vector<float> part(pair.ours == nullptr ? 0 : static_cast<size_t>(pair.ours->type().shape.elementCount()));
    if (!pair.theirs.empty()) {
      const auto found = file.tensors.find(pair.theirs);
      if (found == file.tensors.end())
        refuseModel(fmt::format("the file has no '{}'", pair.theirs), "leave out the nn::FeedForward of attention where the file has none");
      taken.insert(pair.theirs);
      if (found->second.shape != pair.shape) {
        detail::reject("mbjs.shape",
                       fmt::format("'{}' is {} in the file, and [{}] for '{}'", pair.theirs, describe(found->second),
                                   fmt::join(pair.shape, ","), pair.ours == nullptr ? "a bias" : pair.ours->path()),
                       "declare the layer as large as it is in the file; mamba2 has no gate there");
      }
      const std::vector<float> whole = found->second.toFloats();
      if (pair.ours == nullptr) checkZeros(whole, pair.theirs, "give the layer its biases: .bias = true, of Mamba1 also .x_bias = true");
      for (size_t i = 0; i < part.size(); ++i) part[i] = whole[pair.place(i)];
    }
    if (pair.ours != nullptr) values.emplace(pair.ours->path(), std::move(part));
  }
  for (const auto& [name, array] : file.tensors) {
    if (!taken.contains(name))
      refuseModel(fmt::format("the model has no place for '{}'", name), "add the nn::FeedForward beside attention");
  }
  return values;
}

io::MbjsFile formatMbjsWeights(const Module& model, const ParameterValues& values, uint32_t version) {
  const Pairing pairing(model);
  std::map<std::string, std::vector<float>, std::less<>> wholes;
  io::MbjsFile file{.version = version, .layers = pairing.layers, .tensors = {}};
  for (const Pair& pair : pairing.pairs) {
    const auto found = pair.ours == nullptr ? values.end() : values.find(pair.ours->path());
    if (pair.ours != nullptr && found == values.end())
      detail::reject("parameters.missing", fmt::format("parameters are missing: {}", pair.ours->path()),
                     "give all of them, as download() does");
    if (pair.ours != nullptr && std::ssize(found->second) != pair.ours->type().shape.elementCount())
      detail::reject("mbjs.shape",
                     fmt::format("there are {} values for '{}', which has {} elements", found->second.size(), pair.ours->path(),
                                 pair.ours->type().shape.elementCount()),
                     "give as many, as download() does");
    if (pair.theirs.empty()) {
      checkZeros(found->second, pair.ours->path(), "make the layer without .bias");
      continue;
    }
    std::vector<float>& whole = wholes[pair.theirs];
    whole.resize(static_cast<size_t>(graph::Shape(pair.shape).elementCount()));
    if (pair.ours != nullptr) {
      for (size_t i = 0; i < found->second.size(); ++i) whole.at(pair.place(i)) = found->second[i];
    }
    file.tensors.insert_or_assign(pair.theirs, io::Array::fromFloats(pair.shape, whole));
  }
  return file;
}

}  // namespace lockstep
