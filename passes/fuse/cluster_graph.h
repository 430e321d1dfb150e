// SPDX-License-Identifier: Apache-2.0
// Which cluster reads which, kept up to date while clusters grow and merge. A topological order is kept with it (Pearce and Kelly, "A
// dynamic topological sort algorithm for directed acyclic graphs", 2007), so that a question of reachability looks only at what lies
// between the two clusters.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <vector>

namespace lockstep::passes {

class ClusterGraph {
 public:
  using Index = int32_t;

  /// A cluster without reads; its index is the number of clusters before.
  Index add();
  /// `reader` reads `source`; `stored`: (also) through a storage node, which needs the whole value. The source must not need the reader.
  void connect(Index reader, Index source, bool stored);
  /// `target` takes over what `source` reads and its readers. No other cluster may be on a way between them.
  void merge(Index source, Index target);

  /// By source: whether one of the reads goes through storage.
  [[nodiscard]] const std::map<Index, bool>& sources(Index cluster) const { return sources_[static_cast<size_t>(cluster)]; }
  [[nodiscard]] const std::set<Index>& readers(Index cluster) const { return readers_[static_cast<size_t>(cluster)]; }
  [[nodiscard]] bool readsStored(Index reader, Index source) const;
  /// True when `from` reads `target`, be it by way of others. No cluster needs itself.
  [[nodiscard]] bool needs(Index from, Index target) const;

  /// Whether a path leaves these clusters and comes back to one of them.
  [[nodiscard]] bool hasDetour(const std::set<Index>& clusters) const;
  /// Whether `a` comes before `b` in the topological order.
  [[nodiscard]] bool precedes(Index a, Index b) const { return place(a) < place(b); }

  /// How many clusters needs(), hasDetour(), connect() and merge() have looked at: the work that this takes.
  [[nodiscard]] uint64_t visits() const { return visits_; }

 private:
  [[nodiscard]] int64_t& place(Index cluster) { return place_[static_cast<size_t>(cluster)]; }
  [[nodiscard]] int64_t place(Index cluster) const { return place_[static_cast<size_t>(cluster)]; }
  /// `start` and what it needs above `lowest`, or what needs it below `highest`; by place.
  [[nodiscard]] std::vector<Index> below(Index start, int64_t lowest) const;
  [[nodiscard]] std::vector<Index> above(Index start, int64_t highest) const;
  template <class Next>
  [[nodiscard]] std::vector<Index> reach(Index start, const Next& next) const;

  std::vector<std::map<Index, bool>> sources_;
  std::vector<std::set<Index>> readers_;
  std::vector<int64_t> place_;  ///< in the order: greater than those of all sources
  mutable uint64_t visits_ = 0;
};

}  // namespace lockstep::passes
