// SPDX-License-Identifier: Apache-2.0
// Reachability of clusters that grow and merge, against a search from scratch, and the work that fuse takes with it.
#include "passes/fuse/cluster_graph.h"

#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <random>

#include "ir/graph/builder.h"
#include "passes/fuse/clusters.h"

namespace lockstep::passes {
namespace {

using Index = ClusterGraph::Index;

/// The same without an order: reads by reader, with what goes through storage.
class Plain {
 public:
  void add() { reads_.emplace_back(); }
  void connect(Index reader, Index source, bool stored) {
    if (reader == source) return;
    bool& through = of(reader)[source];
    through = through || stored;
  }
  void merge(Index source, Index target) {
    for (const auto& [read, stored] : of(source)) connect(target, read, stored);
    of(source).clear();
    for (Index reader = 0; reader < static_cast<Index>(reads_.size()); ++reader) {
      const auto found = of(reader).find(source);
      if (found == of(reader).end()) continue;
      const bool stored = found->second;
      of(reader).erase(found);
      connect(reader, target, stored);
    }
  }
  [[nodiscard]] const std::map<Index, bool>& sources(Index cluster) const { return reads_[static_cast<size_t>(cluster)]; }
  [[nodiscard]] bool needs(Index from, Index target) const {
    return std::ranges::any_of(sources(from), [&](const auto& read) { return read.first == target || needs(read.first, target); });
  }

 private:
  std::map<Index, bool>& of(Index cluster) { return reads_[static_cast<size_t>(cluster)]; }
  std::vector<std::map<Index, bool>> reads_;
};

/// A path over another cluster, from one to the other.
bool hasWayBetween(const Plain& plain, Index from, Index target) {
  return std::ranges::any_of(plain.sources(from),
                             [&](const auto& read) { return read.first != target && plain.needs(read.first, target); });
}

TEST(ClusterGraph, agrees_with_a_search_from_scratch) {
  std::mt19937 random(7);
  const auto pick = [&](size_t count) { return static_cast<Index>(random() % count); };
  for (int round = 0; round < 300; ++round) {
    ClusterGraph graph;
    Plain plain;
    std::vector<Index> live;
    for (int step = 0; step < 60; ++step) {
      const size_t what = random() % 4;
      if (live.size() < 2 || what == 0) {
        live.push_back(graph.add());
        plain.add();
      } else if (what < 3) {
        const Index reader = live[static_cast<size_t>(pick(live.size()))], source = live[static_cast<size_t>(pick(live.size()))];
        const bool stored = random() % 3 == 0;
        if (reader == source || plain.needs(source, reader)) continue;
        graph.connect(reader, source, stored);
        plain.connect(reader, source, stored);
      } else {
        const size_t at = static_cast<size_t>(pick(live.size()));
        const Index source = live[at], target = live[static_cast<size_t>(pick(live.size()))];
        if (source == target || hasWayBetween(plain, target, source) || hasWayBetween(plain, source, target)) continue;
        graph.merge(source, target);
        plain.merge(source, target);
        live.erase(live.begin() + static_cast<std::ptrdiff_t>(at));
      }
      for (const Index a : live) {
        EXPECT_EQ(graph.sources(a), plain.sources(a));
        for (const Index b : live) {
          if (a == b) continue;
          ASSERT_EQ(graph.needs(a, b), plain.needs(a, b)) << round << " " << a << " " << b;
          if (plain.needs(a, b)) {
            EXPECT_TRUE(graph.precedes(b, a));
          }
          EXPECT_EQ(graph.hasDetour({a, b}), hasWayBetween(plain, a, b) || hasWayBetween(plain, b, a)) << round;
          EXPECT_EQ(graph.readers(b).contains(a), plain.sources(a).contains(b));
        }
      }
    }
  }
}

/// relu(x + b_i) · w_i, again and again, with a sum of columns of each.
uint64_t workOf(int layers) {
  using namespace graph;
  Builder b;
  const auto leaf = [&](const std::string& name, std::vector<int64_t> shape) {
    return b.make("input", {}, {{"name", name}, {"dtype", DType::F32}, {"shape", std::move(shape)}});
  };
  ValueId x = leaf("x", {128, 64});
  for (int i = 0; i < layers; ++i) {
    const std::string number = std::to_string(i);
    x = b.make("relu",
               {b.make("add", {x, b.make("broadcast_to", {leaf("b" + number, {64})}, {{"shape", std::vector<int64_t>{128, 64}}})})});
    x = b.make("matmul", {x, leaf("w" + number, {64, 64})});
    b.output(OutputKind::Result, "s" + number, b.make("sum", {x}, {{"axes", std::vector<int64_t>{0}}, {"keep_dims", false}}));
  }
  b.output(OutputKind::Result, "x", x);
  const Graph graph = b.take();
  return makeClusters(graph, storageNodes(graph), {}).visits;
}

TEST(ClusterGraph, work_grows_with_the_model_and_not_with_its_square) {
  const uint64_t few = workOf(100), many = workOf(800);
  EXPECT_GT(few, 0u);
  EXPECT_LT(many, 10 * few);
}

}  // namespace
}  // namespace lockstep::passes
