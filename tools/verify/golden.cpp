// SPDX-License-Identifier: Apache-2.0
#include "tools/verify/golden.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

#include "tools/verify/rate_expression.h"

namespace lockstep::tools {
namespace {

using Json = nlohmann::json;

/// Interprets one file; carries its name for messages.
class Interpreter {
 public:
  Interpreter(const io::TensorFile& file, const std::string& name) : file_(file), name_(name) {}

  Result<GoldenFile> run() {
    GoldenFile golden;
    if (file_.find("losses") != nullptr) {
      LS_TRY(golden.training, readTraining());
    } else {
      LS_TRY(golden.cases, readCases());
    }
    return golden;
  }

 private:
  [[nodiscard]] Failure error(const std::string& code, std::string message) const {
    return fail("golden." + code, std::move(message), {.file = name_},
                "the file is not golden data in the format that tools/verify/golden.h states");
  }

  Result<Json> metadata(const std::string& key) const {
    Json json = Json::parse(file_.metadata.find(key)->second, nullptr, false);
    if (json.is_discarded() || !json.is_object()) return error("metadata", fmt::format("the metadata of '{}' is not a JSON object", key));
    return json;
  }

  Result<graph::Attribute> attribute(const std::string& where, const Json& value) const {
    if (value.is_boolean()) return graph::Attribute(value.get<bool>());
    if (value.is_number_integer()) return graph::Attribute(value.get<int64_t>());
    if (value.is_number()) return graph::Attribute(value.get<double>());
    if (value.is_string()) return graph::Attribute(value.get<std::string>());
    if (value.is_array()) {
      std::vector<int64_t> list;
      for (const Json& item : value) {
        if (!item.is_number_integer()) return error("metadata", fmt::format("{} is a list of something else than whole numbers", where));
        list.push_back(item.get<int64_t>());
      }
      return graph::Attribute(std::move(list));
    }
    return error("metadata", fmt::format("{} has a value that no op takes", where));
  }

  Result<GoldenCase> readCase(const std::string& name) const {
    LS_TRY(const Json json, metadata(name));
    const auto op = json.find("op");
    if (op == json.end() || !op->is_string()) return error("metadata", fmt::format("the metadata of case '{}' names no op", name));
    GoldenCase result{.name = name, .op = op->get<std::string>()};
    if (const auto attributes = json.find("attrs"); attributes != json.end()) {
      if (!attributes->is_object()) return error("metadata", fmt::format("the attributes of case '{}' are not an object", name));
      for (const auto& [key, value] : attributes->items()) {
        if (value.is_null()) continue;  // an option that was not given
        LS_TRY(graph::Attribute converted, attribute(fmt::format("attribute '{}' of case '{}'", key, name), value));
        result.attributes.set(key, std::move(converted));
      }
    }
    return result;
  }

  Result<std::vector<GoldenCase>> readCases() {
    if (file_.metadata.empty()) return error("metadata", "the file has no metadata, so it has no cases");
    std::map<std::string, GoldenCase, std::less<>> cases;
    for (const auto& [name, unused] : file_.metadata) {
      LS_TRY(GoldenCase one, readCase(name));
      cases.emplace(name, std::move(one));
    }
    struct Part {
      std::string_view infix;
      ArrayMap GoldenCase::* member;
    };
    constexpr std::array<Part, 4> kParts = {{{"/in/", &GoldenCase::inputs},
                                             {"/out/", &GoldenCase::outputs},
                                             {"/cotangent/", &GoldenCase::cotangents},
                                             {"/grad/", &GoldenCase::gradients}}};
    for (const auto& [name, array] : file_.tensors) {
      bool placed = false;
      for (const Part& part : kParts) {
        const size_t split = name.find(part.infix);
        if (split == std::string::npos) continue;
        const auto found = cases.find(std::string_view(name).substr(0, split));
        const std::string role = name.substr(split + part.infix.size());
        if (found == cases.end() || role.empty()) continue;
        (found->second.*part.member).emplace(role, array);
        placed = true;
        break;
      }
      if (!placed) return error("tensor", fmt::format("tensor '{}' belongs to no case", name));
    }
    std::vector<GoldenCase> result;
    for (auto& [name, one] : cases) {
      LS_CHECK(checkCase(one));
      result.push_back(std::move(one));
    }
    return result;
  }

  Status checkCase(const GoldenCase& one) const {
    if (one.outputs.empty()) return error("case", fmt::format("case '{}' has no expected output", one.name));
    for (const auto& [name, cotangent] : one.cotangents) {
      const auto output = one.outputs.find(name);
      if (output == one.outputs.end() || output->second.shape != cotangent.shape) {
        return error("case", fmt::format("cotangent '{}' of case '{}' has no output of its shape", name, one.name));
      }
    }
    for (const auto& [name, gradient] : one.gradients) {
      const auto input = one.inputs.find(name);
      if (input == one.inputs.end() || input->second.shape != gradient.shape) {
        return error("case", fmt::format("gradient '{}' of case '{}' has no operand of its shape", name, one.name));
      }
    }
    if (!one.gradients.empty() && one.cotangents.empty()) {
      return error("case", fmt::format("case '{}' has gradients but no cotangent", one.name));
    }
    return Success{};
  }

  Result<GoldenTraining> readTraining() {
    GoldenTraining training;
    if (file_.metadata.size() != 1) return error("metadata", "the file of a training run needs exactly one metadata entry, its model");
    training.model = std::filesystem::path(name_).stem().string();
    constexpr std::string_view kPrefix = "train_";
    training.model = training.model.starts_with(kPrefix) ? training.model.substr(kPrefix.size()) : file_.metadata.begin()->first;
    LS_TRY(const Json json, metadata(file_.metadata.begin()->first));
    const auto optimizer = json.find("optimizer");
    if (optimizer == json.end() || !optimizer->is_object()) return error("metadata", "the metadata has no optimizer");
    LS_CHECK(readOptimizer(*optimizer, training));

    std::map<int64_t, ArrayMap> batches;
    for (const auto& [name, array] : file_.tensors) {
      const size_t slash = name.find('/');
      const std::string group = name.substr(0, slash);
      const std::string rest = slash == std::string::npos ? "" : name.substr(slash + 1);
      if (name == "losses") {
        training.losses = array.toDoubles();
      } else if (name == "grad_norms") {
        continue;
      } else if (group == "init" && !rest.empty()) {
        training.initial.emplace(rest, array);
      } else if (group == "grad1" && !rest.empty()) {
        training.first_gradients.emplace(rest, array);
      } else if (group == "final" && !rest.empty()) {
        training.final.emplace(rest, array);
        training.recorded_in_f32 |= array.type == io::ElementType::F32;
      } else if (const auto number = batchNumber(group); number && !rest.empty()) {
        batches[*number].emplace(rest, array);
      } else {
        return error("tensor", fmt::format("tensor '{}' has no place in a training run", name));
      }
    }
    int64_t expected = 1;
    for (auto& [number, batch] : batches) {
      if (number != expected++) return error("train", fmt::format("the batch of step {} is missing", expected - 1));
      training.batches.push_back(std::move(batch));
    }
    if (training.batches.size() != training.losses.size() || training.batches.empty()) {
      return error("train", fmt::format("{} batches but {} losses", training.batches.size(), training.losses.size()));
    }
    LS_CHECK(checkSameParameters(training.initial, training.final, "final"));
    if (!training.first_gradients.empty()) LS_CHECK(checkSameParameters(training.initial, training.first_gradients, "grad1"));
    return training;
  }

  Status checkSameParameters(const ArrayMap& initial, const ArrayMap& other, std::string_view group) const {
    if (initial.empty()) return error("train", "there are no parameters init/*");
    for (const auto& [name, array] : initial) {
      const auto found = other.find(name);
      if (found == other.end() || found->second.shape != array.shape) {
        return error("train", fmt::format("parameter '{}' has no {}/{} of its shape", name, group, name));
      }
    }
    if (other.size() != initial.size()) return error("train", fmt::format("{}/* has parameters that init/* lacks", group));
    return Success{};
  }

  static std::optional<int64_t> batchNumber(const std::string& group) {
    constexpr std::string_view kPrefix = "batch";
    if (!group.starts_with(kPrefix) || group.size() == kPrefix.size() || group.size() > kPrefix.size() + 9) return std::nullopt;
    int64_t number = 0;
    for (const char c : group.substr(kPrefix.size())) {
      if (c < '0' || c > '9') return std::nullopt;
      number = number * 10 + (c - '0');
    }
    return number;
  }

  Status readOptimizer(const Json& json, GoldenTraining& training) const {
    const auto kind = json.find("kind");
    const std::string name = kind != json.end() && kind->is_string() ? kind->get<std::string>() : "";
    passes::OptimizerConfig& config = training.optimizer;
    if (name == "adam") {
      config.kind = passes::OptimizerKind::Adam;
    } else if (name == "adamw") {
      config.kind = passes::OptimizerKind::AdamW;
    } else if (name == "sgd") {
      config.kind = passes::OptimizerKind::Sgd;
    } else {
      return error("train", fmt::format("optimizer '{}' is none of adam, adamw, sgd", name));
    }
    struct Number {
      const char* key;
      double passes::OptimizerConfig::* member;
    };
    constexpr std::array<Number, 6> kNumbers = {{{"weight_decay", &passes::OptimizerConfig::weight_decay},
                                                 {"momentum", &passes::OptimizerConfig::momentum},
                                                 {"clip_grad_norm", &passes::OptimizerConfig::clip_grad_norm},
                                                 {"beta1", &passes::OptimizerConfig::beta1},
                                                 {"beta2", &passes::OptimizerConfig::beta2},
                                                 {"eps", &passes::OptimizerConfig::epsilon}}};
    // Golden runs clip without an epsilon.
    config.clip_epsilon = 0;
    for (const auto& [key, value] : json.items()) {
      const auto* number = std::ranges::find_if(kNumbers, [&](const Number& row) { return key == row.key; });
      if (number != kNumbers.end()) {
        if (!value.is_number()) return error("train", fmt::format("'{}' of the optimizer is not a number", key));
        config.*number->member = value.get<double>();
      } else if (key == "nesterov") {
        if (!value.is_boolean()) return error("train", "'nesterov' of the optimizer is neither true nor false");
        config.nesterov = value.get<bool>();
      } else if (key == "lr" && value.is_number()) {
        training.rate = [rate = value.get<double>()](int64_t) { return rate; };
      } else if (key == "lr_of_step_1_based" && value.is_string()) {
        LS_TRY(training.rate, parseRate(value.get<std::string>()));
      } else if (key != "kind" && key != "decay") {
        // An option that is not understood would change the run silently.
        return error("train", fmt::format("'{}' of the optimizer is unknown", key));
      }
    }
    if (!training.rate) return error("train", "the optimizer has no learning rate");
    if (json.contains("decay")) {
      // The text says which parameters decay in words; all such files mean the same rule.
      training.decays = [](const std::string& parameter) { return !parameter.ends_with(".g") && !parameter.ends_with(".b"); };
    } else {
      training.decays = [](const std::string&) { return true; };
    }
    return Success{};
  }

  const io::TensorFile& file_;
  const std::string& name_;
};

}  // namespace

Result<GoldenFile> interpretGolden(const io::TensorFile& file, const std::string& name) { return Interpreter(file, name).run(); }

Result<GoldenFile> readGolden(const std::filesystem::path& path) {
  LS_TRY(const io::TensorFile file, io::readSafetensors(path));
  return interpretGolden(file, path.string());
}

}  // namespace lockstep::tools
