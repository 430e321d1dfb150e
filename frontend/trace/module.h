// SPDX-License-Identifier: Apache-2.0
// Module: a tree of named parts with parameters. Children and parameters are members that register with their parent:
//   struct Mlp : ls::Module {
//     ls::nn::Linear l1{*this, "l1", 1, 64};
//     ls::Parameter scale{*this, "scale", {64}, ls::init::ones()};
//   };
// Their path names are l1.W, l1.b, scale, in the order of declaration. Modules neither copy nor move, because children know their parent.
//
// To use a part in two places, declare it once and hold a reference to it elsewhere; it stays one set of parameters under one name, and
// its gradient is the sum over all uses:
//   struct Head : ls::Module {
//     Head(ls::Module& parent, std::string name, const ls::nn::Embedding& tokens) : Module(parent, std::move(name)), tokens(tokens) {}
//     const ls::nn::Embedding& tokens;   // owned by the model, which declares it before the head
//   };
#pragma once

#include <concepts>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "frontend/nn/init.h"
#include "frontend/trace/tensor.h"
#include "ir/support/where.h"

namespace lockstep {

class Parameter;
class Buffer;
class ModuleIndex;

struct NamedParameter {
  std::string name;  ///< path from the root: "layers.0.attn.q.W"
  const Parameter* parameter = nullptr;
};
struct NamedBuffer {
  std::string name;
  const Buffer* buffer = nullptr;
};

/// Whether the function that is being traced is a loss, as compile() trains it; false in forward functions. For layers that differ, such
/// as dropout. Error "trace.inactive" outside of a trace.
bool is_training(Where where = Where::current());

class Module {
 public:
  Module() = default;
  /// A child. Error "module.name" when the name is empty, has other characters than letters, digits and '_', or is taken in `parent`.
  Module(Module& parent, std::string name, Where where = Where::current());
  virtual ~Module();
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  /// All parameters of this module and its children, in the order of declaration.
  [[nodiscard]] std::vector<NamedParameter> parameters() const;
  /// Likewise all buffers.
  [[nodiscard]] std::vector<NamedBuffer> buffers() const;
  /// Path from the root; empty for the root.
  [[nodiscard]] std::string path() const;
  /// Null for the root.
  [[nodiscard]] const Module* parent() const { return parent_; }

 protected:
  /// Error "module.index" unless the index is below `size`.
  void checkIndex(const ModuleIndex& index, size_t size) const;

 private:
  friend class Parameter;
  friend class Buffer;
  struct Entry {
    std::string name;
    Module* child = nullptr;
    Parameter* parameter = nullptr;
    Buffer* buffer = nullptr;
  };
  void registerPart(Entry entry, const Where& where);
  void collect(const std::string& prefix, std::vector<NamedParameter>& parameters, std::vector<NamedBuffer>& buffers) const;

  Module* parent_ = nullptr;
  std::string name_;
  std::vector<Entry> entries_;
};

struct ParameterOptions {
  std::optional<bool> decay = {};  ///< whether weight decay applies; by default as the initializer suggests
  std::optional<Fans> fans = {};   ///< for kaiming and xavier; by default as of a matrix [..., in, out]
};

/// A trainable tensor. Inside a trace it converts to its Tensor.
class Parameter {
 public:
  /// Errors: "module.name" as above, "parameter.shape" for an extent below 1 or too few axes for the initializer, "parameter.literal" for a
  /// wrong number of values.
  Parameter(Module& owner, std::string name, const std::vector<int64_t>& shape, Initializer initializer = init::randn(),
            ParameterOptions options = {}, Where where = Where::current());
  Parameter(const Parameter&) = delete;
  Parameter& operator=(const Parameter&) = delete;

  operator Tensor() const { return tensor(where_); }
  /// Error "trace.inactive" outside of a trace, "trace.parameter" when the model that is traced does not hold it.
  [[nodiscard]] Tensor tensor(Where where = Where::current()) const;

  [[nodiscard]] std::string path() const;
  [[nodiscard]] const Module& owner() const { return *owner_; }
  [[nodiscard]] const TensorType& type() const { return type_; }
  [[nodiscard]] bool decay() const { return decay_; }
  [[nodiscard]] const Where& where() const { return where_; }
  /// The values that a seed gives to the parameter at position `index` of its model.
  [[nodiscard]] std::vector<float> initial(uint64_t seed, uint32_t index) const {
    return initialValues(initializer_, type_.shape, fans_, seed, index);
  }

 private:
  Module* owner_;
  std::string name_;
  TensorType type_;
  Initializer initializer_;
  bool decay_;
  Fans fans_;
  Where where_;
};

/// A tensor that lasts from step to step and is not trained: running statistics, a counter. Of any type but bool. It is saved, loaded,
/// downloaded and uploaded under its path name, like a parameter; downloads are f32, which hold whole numbers up to 2^24 exactly,
/// checkpoints have the numbers themselves. Inside a trace it converts to its Tensor.
///   ls::Buffer calls{*this, "calls", {}, 0, ls::DType::I32};
///   calls.update(calls + 1.0);
class Buffer {
 public:
  /// Every element starts at `initial`, rounded to the nearest float of the type. Errors "module.name", "parameter.shape" as of Parameter,
  /// "buffer.type" for bool, "buffer.initial" for a number that an integer type does not have, or that is too large for a float type.
  Buffer(Module& owner, std::string name, const std::vector<int64_t>& shape, double initial = 0, DType dtype = DType::F32,
         Where where = Where::current());
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  operator Tensor() const { return tensor(where_); }
  /// The value of the step before, or what this trace has updated it to. Gradients end here. Errors as of Parameter::tensor.
  [[nodiscard]] Tensor tensor(Where where = Where::current()) const;
  /// Sets the value of the next step, in training (see is_training) and in forwards with .updates_buffers. A step whose loss is not finite
  /// changes no buffer, unless the optimizer says otherwise. What write_rows makes of the buffer itself is written in its place. Errors
  /// "buffer.training" in other forward functions, "buffer.type" for another shape or element type.
  void update(const Tensor& next, Where where = Where::current()) const;

  [[nodiscard]] std::string path() const;
  [[nodiscard]] const TensorType& type() const { return type_; }
  [[nodiscard]] double initial() const { return initial_; }
  [[nodiscard]] const Where& where() const { return where_; }

 private:
  Module* owner_;
  std::string name_;
  TensorType type_;
  double initial_;
  Where where_;
};

/// The number of a part, and where it was written: operator[] cannot have a defaulted location itself.
class ModuleIndex {
 public:
  template <std::integral T>
  ModuleIndex(T value, Where where = Where::current()) : value_(static_cast<size_t>(value)), where_(where) {}
  [[nodiscard]] size_t value() const { return value_; }
  [[nodiscard]] const Where& where() const { return where_; }

 private:
  size_t value_;
  Where where_;
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
  /// Error "module.index" beyond the last one.
  [[nodiscard]] const T& operator[](ModuleIndex i) const {
    checkIndex(i, items_.size());
    return *items_[i.value()];
  }

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
