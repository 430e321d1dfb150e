// SPDX-License-Identifier: Apache-2.0
#include "passes/fuse/cluster_graph.h"

#include <algorithm>
#include <limits>
#include <unordered_map>
#include <unordered_set>
#include <utility>

namespace lockstep::passes {

using Index = ClusterGraph::Index;

namespace {

/// Between the places of two clusters that are made one after the other, so that one which moves up rarely pushes others.
constexpr int64_t kGap = int64_t{1} << 20;

}  // namespace

Index ClusterGraph::add() {
  const auto index = static_cast<Index>(place_.size());
  sources_.emplace_back();
  readers_.emplace_back();
  place_.push_back(index * kGap);
  return index;
}

void ClusterGraph::raiseReaders(Index cluster) {
  // In the order of their old places every cluster is met after all that it needs, hence once.
  std::set<std::pair<int64_t, Index>> raised{{place(cluster), cluster}};
  std::unordered_map<Index, int64_t> least;  // places that were asked for
  while (!raised.empty()) {
    const Index next = raised.begin()->second;
    raised.erase(raised.begin());
    if (const auto wanted = least.find(next); wanted != least.end()) place(next) = wanted->second;
    ++visits_;
    for (const Index reader : readers(next)) {
      ++visits_;
      if (place(reader) > place(next)) continue;
      int64_t& wanted = least[reader];
      wanted = std::max(wanted, place(next) + 1);
      raised.emplace(place(reader), reader);
    }
  }
}

void ClusterGraph::connect(Index reader, Index source, bool stored) {
  if (reader == source) return;
  bool& through = sources_[static_cast<size_t>(reader)][source];
  through = through || stored;
  readers_[static_cast<size_t>(source)].insert(reader);
  if (place(reader) > place(source)) return;
  place(reader) = place(source) + 1;
  raiseReaders(reader);
}

void ClusterGraph::merge(Index source, Index target) {
  std::map<Index, bool>& from = sources_[static_cast<size_t>(source)];
  for (const auto& [read, stored] : from) {
    readers_[static_cast<size_t>(read)].erase(source);
    if (read == target) continue;
    bool& through = sources_[static_cast<size_t>(target)][read];
    through = through || stored;
    readers_[static_cast<size_t>(read)].insert(target);
  }
  from.clear();
  bool must_raise = place(source) > place(target);
  place(target) = std::max(place(source), place(target));
  std::set<Index>& readers = readers_[static_cast<size_t>(source)];
  for (const Index reader : readers) {
    ++visits_;
    std::map<Index, bool>& reads = sources_[static_cast<size_t>(reader)];
    const bool stored = reads.at(source);
    reads.erase(source);
    if (reader == target) continue;
    bool& through = reads[target];
    through = through || stored;
    readers_[static_cast<size_t>(target)].insert(reader);
    must_raise = must_raise || place(reader) <= place(target);
  }
  readers.clear();
  if (must_raise) raiseReaders(target);
}

bool ClusterGraph::readsStored(Index reader, Index source) const {
  const auto found = sources(reader).find(source);
  return found != sources(reader).end() && found->second;
}

bool ClusterGraph::meet(const std::vector<Index>& readers, const std::vector<Index>& sources, const Bounds& bounds) const {
  // One search goes down from the readers, one up from the sources; the one that has looked at less goes on.
  struct Search {
    std::unordered_set<Index> seen;
    std::vector<Index> found;
    size_t at = 0, looked_at = 0;
  };
  Search down{{readers.begin(), readers.end()}, readers}, up{{sources.begin(), sources.end()}, sources};
  if (std::ranges::any_of(readers, [&](Index reader) { return up.seen.contains(reader); })) return true;
  const auto isOpen = [&](Index cluster) {
    const bool between = place(cluster) >= bounds.lowest && place(cluster) <= bounds.highest;
    return between && (bounds.closed == nullptr || !bounds.closed->contains(cluster));
  };
  // True when the other search has been there.
  const auto visit = [&](Search& search, const Search& other, Index cluster) {
    ++search.looked_at;
    ++visits_;
    if (!isOpen(cluster)) return false;
    if (other.seen.contains(cluster)) return true;
    if (search.seen.insert(cluster).second) search.found.push_back(cluster);
    return false;
  };
  while (down.at < down.found.size() && up.at < up.found.size()) {
    if (down.looked_at <= up.looked_at) {
      for (const auto& [source, stored] : this->sources(down.found[down.at++])) {
        if (visit(down, up, source)) return true;
      }
    } else {
      for (const Index reader : this->readers(up.found[up.at++])) {
        if (visit(up, down, reader)) return true;
      }
    }
  }
  return false;
}

bool ClusterGraph::needs(Index from, Index target) const {
  if (place(from) <= place(target)) return false;
  return meet({from}, {target}, {.lowest = place(target), .highest = place(from), .closed = nullptr});
}

bool ClusterGraph::hasDetour(const std::set<Index>& clusters) const {
  Bounds bounds{.lowest = std::numeric_limits<int64_t>::max(), .highest = std::numeric_limits<int64_t>::min(), .closed = &clusters};
  for (const Index cluster : clusters) {
    bounds.lowest = std::min(bounds.lowest, place(cluster));
    bounds.highest = std::max(bounds.highest, place(cluster));
  }
  // What is outside and read by one of them, or reads one of them.
  std::set<Index> read, reading;
  for (const Index cluster : clusters) {
    for (const auto& [source, stored] : sources(cluster)) {
      if (!clusters.contains(source) && place(source) > bounds.lowest) read.insert(source);
    }
    for (const Index reader : readers(cluster)) {
      if (!clusters.contains(reader) && place(reader) < bounds.highest) reading.insert(reader);
    }
  }
  return meet({read.begin(), read.end()}, {reading.begin(), reading.end()}, bounds);
}

}  // namespace lockstep::passes
