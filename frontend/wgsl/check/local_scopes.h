// SPDX-License-Identifier: Apache-2.0
// The names of local declarations. An inner scope hides what an outer one declares.
#pragma once

#include <string_view>
#include <unordered_map>
#include <vector>

#include "frontend/wgsl/check/program.h"

namespace lockstep::wgsl {

class LocalScopes {
 public:
  void enter() { begins_.push_back(declared_.size()); }
  void leave() {
    for (; declared_.size() > begins_.back(); declared_.pop_back()) *declared_.back().current = declared_.back().hidden;
    begins_.pop_back();
  }
  [[nodiscard]] size_t depth() const { return begins_.size(); }

  /// What the name means here; invalid if no scope declares it.
  [[nodiscard]] EntityId find(std::string_view name) const {
    const auto found = current_.find(name);
    return found == current_.end() ? EntityId() : found->second.entity;
  }
  /// Declares in the innermost scope. If that has the name already, nothing changes. Returns what the name means then.
  EntityId declare(std::string_view name, EntityId entity) {
    Meaning& meaning = current_[name];
    if (meaning.entity.valid() && meaning.depth == depth()) return meaning.entity;
    declared_.push_back({.current = &meaning, .hidden = meaning});
    meaning = {.entity = entity, .depth = depth()};
    return entity;
  }
  /// All that can be used here, in any order.
  [[nodiscard]] std::vector<std::string_view> names() const {
    std::vector<std::string_view> names;
    for (const auto& [name, meaning] : current_) {
      if (meaning.entity.valid()) names.push_back(name);
    }
    return names;
  }

 private:
  struct Meaning {
    EntityId entity;
    size_t depth = 0;
  };
  struct Declared {
    Meaning* current;  // elements of the map stay where they are
    Meaning hidden;
  };
  std::unordered_map<std::string_view, Meaning> current_;
  std::vector<Declared> declared_;
  std::vector<size_t> begins_;
};

}  // namespace lockstep::wgsl
