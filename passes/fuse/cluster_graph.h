// SPDX-License-Identifier: Apache-2.0
// Which cluster reads which, kept up to date while clusters grow and merge. Each cluster has a place, above those of all that it reads, so
// that a question of reachability looks only at what lies between the two clusters. It looks from both ends at once: a reader far down a
// model mostly has a neighbour that the source's readers have, too.
#pragma once

#include <cstddef>
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
  /// Whether `a` has a lower place than `b`. What a cluster needs precedes it.
  [[nodiscard]] bool precedes(Index a, Index b) const { return place(a) < place(b); }

  /// How many clusters needs(), hasDetour(), connect() and merge() have looked at: the work that this takes.
  [[nodiscard]] uint64_t visits() const { return visits_; }

 private:
  [[nodiscard]] int64_t& place(Index cluster) { return place_[static_cast<size_t>(cluster)]; }
  [[nodiscard]] int64_t place(Index cluster) const { return place_[static_cast<size_t>(cluster)]; }
  /// Gives places above this cluster's to what needs it.
  void raiseReaders(Index cluster);
  /// Where a search may go: only between these places, and through none of these clusters.
  struct Bounds {
    int64_t lowest, highest;
    const std::set<Index>* closed;  ///< null: all are open
  };
  /// Whether something that `readers` need (or one of them) needs one of `sources` (or is it).
  [[nodiscard]] bool meet(const std::vector<Index>& readers, const std::vector<Index>& sources, const Bounds& bounds) const;

  std::vector<std::map<Index, bool>> sources_;
  std::vector<std::set<Index>> readers_;
  std::vector<int64_t> place_;
  mutable uint64_t visits_ = 0;
};

}  // namespace lockstep::passes
