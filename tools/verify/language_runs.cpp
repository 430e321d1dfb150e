// SPDX-License-Identifier: Apache-2.0
#include "tools/verify/language_runs.h"

#include <algorithm>
#include <optional>

#include "frontend/llm/language_model.h"
#include "frontend/ops/ops.h"
#include "frontend/trace/trace.h"
#include "frontend/trace/trace_function.h"
#include "frontend/train/inference.h"
#include "ir/graph/evaluate.h"
#include "runtime/device.h"

namespace lockstep::tools {
namespace {

using llm::LanguageConfig;
using llm::LanguageModel;
using llm::TokenList;

llm::TokenList filledUp(TokenList tokens, int64_t length) {
  tokens.resize(static_cast<size_t>(length));
  return tokens;
}

// --- On a device ----------------------------------------------------------------------------------------------------------------------

class DeviceSequences : public SequenceRuns {
 public:
  explicit DeviceSequences(llm::Generator generator) : generator_(std::move(generator)) {}
  void restart() override { generator_.restart(); }
  FedTokens feed(const std::vector<TokenList>& tokens, bool every) override {
    llm::Fed fed = generator_.feed(tokens, every);
    FedTokens made{.next = std::move(fed.next), .logits = {}};
    for (const std::vector<float>& one : fed.logits) made.logits.emplace_back(one.begin(), one.end());
    return made;
  }

 private:
  llm::Generator generator_;
};

class DeviceRuns : public LanguageRuns {
 public:
  DeviceRuns(LanguageConfig config, io::TensorFile stored, const std::string& device, int64_t longest)
      : config_(std::move(config)),
        stored_(std::move(stored)),
        selector_(device),
        device_(detail::openChosenDevice(device).chosen.info.id),
        longest_(longest),
        whole_(forward<LanguageModel>({.inputs = {{"ids", i32(1, longest)}},
                                       .forward = [](const LanguageModel& model, const Inputs& in) { return model(in["ids"]); },
                                       .device = device,
                                       .seed = 0,
                                       .make = [&] { return std::make_unique<LanguageModel>(config_); }})) {
    whole_.write(stored_);
  }
  [[nodiscard]] std::string device() const override { return device_; }
  std::vector<double> whole(const TokenList& tokens) override {
    const TokenList ids = filledUp(tokens, longest_);
    std::vector<double> logits = whole_.run({{"ids", ids}}).output.doubles();
    logits.resize(tokens.size() * static_cast<size_t>(config_.vocabulary));
    return logits;
  }
  std::unique_ptr<SequenceRuns> sequences(const RunShape& shape) override {
    return std::make_unique<DeviceSequences>(llm::Generator(
        config_, stored_,
        {.device = selector_, .sequences = shape.sequences, .positions = shape.positions, .chunk = shape.chunk, .cache = shape.cache}));
  }

 private:
  LanguageConfig config_;
  io::TensorFile stored_;
  std::string selector_, device_;
  int64_t longest_;
  ModelInference<LanguageModel> whole_;
};

// --- In f64 ---------------------------------------------------------------------------------------------------------------------------

graph::Tensor integers(const std::vector<int64_t>& shape, const TokenList& values) {
  return {{DType::I32, Shape(shape)}, {values.begin(), values.end()}};
}

/// Parameters and buffers.
graph::LeafValues leavesOf(const LanguageModel& model, const io::TensorFile& stored) {
  graph::LeafValues leaves;
  const auto add = [&](const std::string& leaf, const std::string& name, const TensorType& type) {
    leaves.emplace(leaf, graph::Tensor{type, stored.tensors.at(name).toDoubles()});
  };
  for (const NamedParameter& named : model.parameters()) add(named.name, named.name, named.parameter->type());
  for (const NamedBuffer& named : model.buffers()) add(detail::bufferState(named.name), named.name, named.buffer->type());
  return leaves;
}

/// Of each row the largest of its `width` elements; the first where several are.
int32_t largest(const std::vector<double>& values, size_t row, size_t width) {
  const auto begin = values.begin() + static_cast<ptrdiff_t>(row * width);
  return static_cast<int32_t>(std::max_element(begin, begin + static_cast<ptrdiff_t>(width)) - begin);
}

/// The state is an input and an output here.
class EvaluatedSequences : public SequenceRuns {
 public:
  EvaluatedSequences(const LanguageConfig& config, const io::TensorFile& stored, const RunShape& shape)
      : model_(config), shape_(shape), leaves_(leavesOf(model_, stored)) {
    llm::checkCache(config, shape.cache);
    for (const llm::LayerConfig& layer : config.layers) {
      std::ranges::copy(llm::stateTypes(config, layer, shape.sequences, shape.positions + shape.chunk, shape.cache),
                        std::back_inserter(types_));
    }
    restart();
    step_ = trace(1);
    if (shape.chunk > 1) chunk_ = trace(shape.chunk);
  }
  void restart() override {
    lengths_.assign(static_cast<size_t>(shape_.sequences), 0);
    for (size_t i = 0; i < types_.size(); ++i)
      leaves_.insert_or_assign(nameOf(i),
                               graph::Tensor{types_[i], std::vector<double>(static_cast<size_t>(types_[i].shape.elementCount()))});
  }
  FedTokens feed(const std::vector<TokenList>& tokens, bool every) override {
    FedTokens fed{.next = TokenList(lengths_.size()), .logits = {}};
    if (every) fed.logits.resize(lengths_.size());
    std::vector<size_t> done(tokens.size());
    for (;;) {
      size_t longest = 0;
      for (size_t i = 0; i < tokens.size(); ++i) longest = std::max(longest, tokens[i].size() - done[i]);
      if (longest == 0) return fed;
      run(tokens, done, longest > 1 ? shape_.chunk : 1, every, fed);
    }
  }

 private:
  static std::string nameOf(size_t i) { return "state" + std::to_string(i); }

  graph::Graph trace(int64_t length) const {
    std::vector<InputSpec> inputs{{"ids", i32(shape_.sequences, length)}, {"at", i32(shape_.sequences)}, {"count", i32(shape_.sequences)}};
    for (size_t i = 0; i < types_.size(); ++i) inputs.push_back({nameOf(i), types_[i]});
    const detail::ModelFunction body = [&](const Module& module, const Inputs& in) -> Outputs {
      const auto& model = static_cast<const LanguageModel&>(module);
      llm::LanguageState state;
      size_t next = 0;
      for (const llm::LayerConfig& layer : model.config().layers) {
        state.push_back(llm::emptyState(layer.kind));
        for (Tensor* tensor : llm::tensorsOf(state.back())) *tensor = in[nameOf(next++)];
      }
      std::vector<std::pair<std::string, Tensor>> outputs;
      outputs.emplace_back("logits", model.head(model.hidden(in["ids"], state, {.at = in["at"], .count = in["count"]})));
      for (llm::LayerState& layer : state) {
        for (const Tensor* tensor : llm::tensorsOf(layer)) outputs.emplace_back(nameOf(outputs.size() - 1), *tensor);
      }
      return Outputs(std::move(outputs));
    };
    return detail::traceFunction(&model_, inputs, body, graph::OutputKind::Result, Where::current());
  }

  void run(const std::vector<TokenList>& tokens, std::vector<size_t>& done, int64_t length, bool every, FedTokens& fed) {
    const auto width = static_cast<size_t>(length), vocabulary = static_cast<size_t>(model_.config().vocabulary);
    TokenList ids(lengths_.size() * width), at, count;
    for (size_t i = 0; i < lengths_.size(); ++i) {
      const size_t taken = i < tokens.size() ? std::min(width, tokens[i].size() - done[i]) : 0;
      for (size_t t = 0; t < taken; ++t) ids[i * width + t] = tokens[i][done[i] + t];
      at.push_back(lengths_[i]);
      count.push_back(static_cast<int32_t>(taken));
    }
    leaves_.insert_or_assign("ids", integers({shape_.sequences, length}, ids));
    leaves_.insert_or_assign("at", integers({shape_.sequences}, at));
    leaves_.insert_or_assign("count", integers({shape_.sequences}, count));
    std::vector<graph::Tensor> made = graph::evaluate(length == 1 ? step_ : *chunk_, leaves_).orThrow();
    for (size_t i = 0; i < types_.size(); ++i) leaves_.insert_or_assign(nameOf(i), std::move(made[i + 1]));
    for (size_t i = 0; i < lengths_.size(); ++i) {
      const auto taken = static_cast<size_t>(count[i]);
      if (taken == 0) continue;
      done[i] += taken;
      lengths_[i] += count[i];
      fed.next[i] = largest(made[0].data, i * width + taken - 1, vocabulary);
      const auto begin = made[0].data.begin() + static_cast<ptrdiff_t>(i * width * vocabulary);
      if (every) fed.logits[i].insert(fed.logits[i].end(), begin, begin + static_cast<ptrdiff_t>(taken * vocabulary));
    }
  }

  LanguageModel model_;
  RunShape shape_;
  graph::LeafValues leaves_;
  std::vector<TensorType> types_;
  graph::Graph step_;
  std::optional<graph::Graph> chunk_;
  std::vector<int32_t> lengths_;
};

class EvaluatedRuns : public LanguageRuns {
 public:
  EvaluatedRuns(const LanguageConfig& config, io::TensorFile stored)
      : model_(config), stored_(std::move(stored)), leaves_(leavesOf(model_, stored_)) {}
  [[nodiscard]] std::string device() const override { return "evaluate"; }
  std::vector<double> whole(const TokenList& tokens) override {
    const int64_t length = std::ssize(tokens);
    const detail::ModelFunction body = [](const Module& module, const Inputs& in) -> Outputs {
      return static_cast<const LanguageModel&>(module)(in["ids"]);
    };
    const graph::Graph graph = detail::traceFunction(&model_, {{"ids", i32(1, length)}}, body, graph::OutputKind::Result, Where::current());
    leaves_.insert_or_assign("ids", integers({1, length}, tokens));
    return graph::evaluate(graph, leaves_).orThrow().front().data;
  }
  std::unique_ptr<SequenceRuns> sequences(const RunShape& shape) override {
    return std::make_unique<EvaluatedSequences>(model_.config(), stored_, shape);
  }

 private:
  LanguageModel model_;
  io::TensorFile stored_;
  graph::LeafValues leaves_;
};

}  // namespace

std::unique_ptr<LanguageRuns> makeLanguageRuns(const LanguageConfig& config, io::TensorFile stored, const std::string& device,
                                               int64_t longest) {
  if (device == "evaluate") return std::make_unique<EvaluatedRuns>(config, std::move(stored));
  return std::make_unique<DeviceRuns>(config, std::move(stored), device, longest);
}

}  // namespace lockstep::tools
