// SPDX-License-Identifier: Apache-2.0
#include "passes/fuse/cluster_graph.h"

#include <algorithm>
#include <limits>
#include <unordered_set>

namespace lockstep::passes {

using Index = ClusterGraph::Index;

Index ClusterGraph::add() {
  const auto index = static_cast<Index>(place_.size());
  sources_.emplace_back();
  readers_.emplace_back();
  place_.push_back(index);
  return index;
}

template <class Next>
std::vector<Index> ClusterGraph::reach(Index start, const Next& next) const {
  std::unordered_set<Index> seen{start};
  std::vector<Index> found{start};
  for (size_t at = 0; at < found.size(); ++at) {
    ++visits_;
    next(found[at], [&](Index other) {
      if (seen.insert(other).second) found.push_back(other);
    });
  }
  std::ranges::sort(found, {}, [this](Index cluster) { return place(cluster); });
  return found;
}

std::vector<Index> ClusterGraph::below(Index start, int64_t lowest) const {
  return reach(start, [&](Index cluster, const auto& visit) {
    for (const auto& [source, stored] : sources(cluster)) {
      if (place(source) > lowest) visit(source);
    }
  });
}

std::vector<Index> ClusterGraph::above(Index start, int64_t highest) const {
  return reach(start, [&](Index cluster, const auto& visit) {
    for (const Index reader : readers(cluster)) {
      if (place(reader) < highest) visit(reader);
    }
  });
}

void ClusterGraph::connect(Index reader, Index source, bool stored) {
  if (reader == source) return;
  if (place(reader) < place(source)) {
    // What the source needs comes before what needs the reader, in the places that all of them have together.
    std::vector<Index> moved = below(source, place(reader));
    const std::vector<Index> after = above(reader, place(source));
    moved.insert(moved.end(), after.begin(), after.end());
    std::vector<int64_t> places;
    for (const Index cluster : moved) places.push_back(place(cluster));
    std::ranges::sort(places);
    for (size_t i = 0; i < moved.size(); ++i) place(moved[i]) = places[i];
  }
  bool& through = sources_[static_cast<size_t>(reader)][source];
  through = through || stored;
  readers_[static_cast<size_t>(source)].insert(reader);
}

void ClusterGraph::merge(Index source, Index target) {
  // The place of the two together: after what either needs, before what needs either.
  const bool is_before = place(source) < place(target);
  const Index first = is_before ? source : target, last = is_before ? target : source;
  std::vector<Index> moved = below(last, place(first));
  const std::vector<Index> after = above(first, place(last));
  std::erase(moved, last);
  const size_t middle = moved.size();
  moved.insert(moved.end(), after.begin(), after.end());
  std::erase(moved, first);
  std::vector<int64_t> places{place(first), place(last)};
  for (const Index cluster : moved) places.push_back(place(cluster));
  std::ranges::sort(places);
  for (size_t i = 0; i < moved.size(); ++i) place(moved[i]) = places[i < middle ? i : i + 2];
  place(target) = places[middle];

  std::map<Index, bool>& from = sources_[static_cast<size_t>(source)];
  for (const auto& [read, stored] : from) {
    readers_[static_cast<size_t>(read)].erase(source);
    if (read == target) continue;
    bool& through = sources_[static_cast<size_t>(target)][read];
    through = through || stored;
    readers_[static_cast<size_t>(read)].insert(target);
  }
  from.clear();
  std::set<Index>& readers = readers_[static_cast<size_t>(source)];
  for (const Index reader : readers) {
    std::map<Index, bool>& reads = sources_[static_cast<size_t>(reader)];
    const bool stored = reads.at(source);
    reads.erase(source);
    if (reader == target) continue;
    bool& through = reads[target];
    through = through || stored;
    readers_[static_cast<size_t>(target)].insert(reader);
  }
  readers.clear();
}

bool ClusterGraph::readsStored(Index reader, Index source) const {
  const auto found = sources(reader).find(source);
  return found != sources(reader).end() && found->second;
}

bool ClusterGraph::needs(Index from, Index target) const {
  if (place(from) <= place(target)) return false;
  std::unordered_set<Index> seen{from};
  for (std::vector<Index> open{from}; !open.empty();) {
    const Index cluster = open.back();
    open.pop_back();
    ++visits_;
    for (const auto& [source, stored] : sources(cluster)) {
      if (source == target) return true;
      if (place(source) > place(target) && seen.insert(source).second) open.push_back(source);
    }
  }
  return false;
}

bool ClusterGraph::hasDetour(const std::set<Index>& clusters) const {
  int64_t lowest = std::numeric_limits<int64_t>::max();
  for (const Index cluster : clusters) lowest = std::min(lowest, place(cluster));
  std::unordered_set<Index> seen;
  std::vector<Index> open;
  const auto leave = [&](Index cluster) {
    ++visits_;
    for (const auto& [source, stored] : sources(cluster)) {
      if (place(source) > lowest && !clusters.contains(source) && seen.insert(source).second) open.push_back(source);
    }
  };
  for (const Index cluster : clusters) leave(cluster);
  while (!open.empty()) {
    const Index cluster = open.back();
    open.pop_back();
    if (std::ranges::any_of(sources(cluster), [&](const auto& source) { return clusters.contains(source.first); })) return true;
    leave(cluster);
  }
  return false;
}

}  // namespace lockstep::passes
