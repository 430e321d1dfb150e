// SPDX-License-Identifier: Apache-2.0
// Module: a tree of named parts with parameters. Children and parameters are members that register with their parent:
//   struct Mlp : ls::Module {
//     ls::nn::Linear l1{*this, "l1", 1, 64};
//     ls::Parameter scale{*this, "scale", {64}, ls::init::ones()};
//   };
// Their path names are l1.W, l1.b, scale, in the order of declaration. Modules neither copy nor move, because children know their parent.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <source_location>
#include <string>
#include <utility>
#include <vector>

#include "frontend/init.h"
#include "frontend/tensor.h"

namespace lockstep {

class Parameter;

struct NamedParameter {
  std::string name;  ///< path from the root: "layers.0.attn.q.W"
  const Parameter* parameter = nullptr;
};

class Module {
 public:
  Module() = default;
  /// A child. Error "module.name" when the name is empty, has other characters than letters, digits and '_', or is taken in `parent`.
  Module(Module& parent, std::string name, std::source_location where = std::source_location::current());
  virtual ~Module();
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  /// All parameters of this module and its children, in the order of declaration.
  [[nodiscard]] std::vector<NamedParameter> parameters() const;
  /// Path from the root; empty for the root.
  [[nodiscard]] std::string path() const;

 private:
  friend class Parameter;
  struct Entry {
    std::string name;
    Module* child = nullptr;
    Parameter* parameter = nullptr;
  };
  void registerPart(Entry entry, const std::source_location& where);
  void collect(const std::string& prefix, std::vector<NamedParameter>& into) const;

  Module* parent_ = nullptr;
  std::string name_;
  std::vector<Entry> entries_;
};

struct ParameterOptions {
  std::optional<bool> decay = {};  ///< whether weight decay applies; by default as the initializer suggests
  int64_t fan_in = 0;              ///< inputs that one output element sums over (kaiming); 0: all axes but the last
};

/// A trainable tensor. Inside a trace it converts to its Tensor.
class Parameter {
 public:
  /// Errors: "module.name" as above, "parameter.shape" for an extent below 1, "parameter.literal" for a wrong number of values.
  Parameter(Module& owner, std::string name, std::vector<int64_t> shape, Initializer initializer = init::randn(),
            ParameterOptions options = {}, std::source_location where = std::source_location::current());
  Parameter(const Parameter&) = delete;
  Parameter& operator=(const Parameter&) = delete;

  operator Tensor() const { return tensor(where_); }
  /// Error "trace.inactive" outside of a trace, "trace.parameter" when the model that is traced does not hold it.
  [[nodiscard]] Tensor tensor(std::source_location where = std::source_location::current()) const;

  [[nodiscard]] std::string path() const;
  [[nodiscard]] const Module& owner() const { return *owner_; }
  [[nodiscard]] const TensorType& type() const { return type_; }
  [[nodiscard]] bool decay() const { return decay_; }
  [[nodiscard]] const std::source_location& where() const { return where_; }
  /// The values that a seed gives to the parameter at position `index` of its model.
  [[nodiscard]] std::vector<float> initial(uint64_t seed, uint32_t index) const {
    return initialValues(initializer_, type_.shape, fan_in_, seed, index);
  }

 private:
  Module* owner_;
  std::string name_;
  TensorType type_;
  Initializer initializer_;
  bool decay_;
  int64_t fan_in_;
  std::source_location where_;
};

/// A sequence of equal modules, named 0, 1, 2, …: ModuleList<Block> layers{*this, "layers", 3, width};
template <class T>
class ModuleList : public Module {
 public:
  template <class... Arguments>
  ModuleList(Module& parent, std::string name, size_t count, const Arguments&... arguments) : Module(parent, std::move(name)) {
    for (size_t i = 0; i < count; ++i) items_.push_back(std::make_unique<T>(*this, std::to_string(i), arguments...));
  }
  [[nodiscard]] size_t size() const { return items_.size(); }
  [[nodiscard]] const T& operator[](size_t i) const { return *items_.at(i); }

  class Iterator {
   public:
    explicit Iterator(typename std::vector<std::unique_ptr<T>>::const_iterator at) : at_(at) {}
    const T& operator*() const { return **at_; }
    Iterator& operator++() {
      ++at_;
      return *this;
    }
    bool operator==(const Iterator&) const = default;

   private:
    typename std::vector<std::unique_ptr<T>>::const_iterator at_;
  };
  [[nodiscard]] Iterator begin() const { return Iterator(items_.begin()); }
  [[nodiscard]] Iterator end() const { return Iterator(items_.end()); }

 private:
  std::vector<std::unique_ptr<T>> items_;
};

}  // namespace lockstep
