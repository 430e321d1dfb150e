// SPDX-License-Identifier: Apache-2.0
// What happens to clusters once every node has one. Three rules, each of which saves a value its way through memory:
//   mergeMap         a map that another cluster reads element by element, or row by row, moves into that cluster;
//   mergeTogether    maps that do not fit a reader one by one, because each leaves values to pass on, may fit all at once;
//   absorbPrologues  a cheap map that only one contraction or column reduction reads moves into its loads.
// No rule may close a cycle: a source that also reaches its target through a third cluster stays (a detour).
#include <algorithm>

#include "passes/cost.h"
#include "passes/fuse/cluster_state.h"
#include "passes/fuse/views.h"
#include "passes/visits.h"

namespace lockstep::passes {

using namespace graph;

namespace {

/// How a member of a cluster reads a value of another one: from the space of its operand (a reduction, a contraction) or of its result.
struct MemberRead {
  const Read& read;
  const Shape& shape;
  const Shape& source;
  bool seed, row;  ///< not an element op; an element op with one value per row
};

/// Whether `target` reads `source` never through storage, and `accepts` holds for every read.
template <class Accepts>
bool everyRead(const ClusterState& state, int32_t target, int32_t source, Accepts accepts) {
  const Graph& graph = state.graph;
  if (state.links.readsStored(target, source)) return false;
  for (NodeId id : state.cluster(target).members) {
    const Node& node = graph[id];
    for (const Read& read : state.readsOf(node)) {
      countVisits();
      if (!state.isMember(source, read.base)) continue;
      bool seed = !std::holds_alternative<ElementLowering>(*node.op->lower);
      bool row = state.row_aligned[id.index()] != 0 && !seed;
      const Shape& shape = graph.shapeOf(seed ? node.operands[0] : node.results[0]);
      if (!read.exact || !accepts(MemberRead{read, shape, graph.shapeOf(read.base), seed, row})) return false;
    }
  }
  return true;
}

/// Whether every read of `source` by `target` finds the element that the reader's invocation makes.
bool readsInPlace(const ClusterState& state, int32_t target, int32_t source) {
  const Cluster& to = state.cluster(target);
  if (to.elements != state.cluster(source).elements || to.kind == GroupKind::Columns) return false;  // whose elements are its results'
  return everyRead(state, target, source, [&](const MemberRead& r) {
    if (r.seed && to.kind != GroupKind::Rows) return false;  // the operand side of a contraction
    return !r.row && isLinearIdentity(r.read.map, r.shape, r.source);
  });
}

/// Whether `source` has one value for each row of `target`, and every read of it finds the value of the reader's row.
bool readsRowValues(const ClusterState& state, int32_t target, int32_t source) {
  const Cluster& to = state.cluster(target);
  if (to.kind != GroupKind::Rows || state.cluster(source).elements * to.columns != to.elements) return false;
  return everyRead(state, target, source, [&](const MemberRead& r) {
    return r.row ? isLinearIdentity(r.read.map, r.shape, r.source) : isRowProjection(r.read.map, r.shape, r.source, to.columns);
  });
}

/// Whether the target is a product, and the source has what stays out of one.
bool staysApart(const ClusterState& state, int32_t source, int32_t target) {
  return state.cluster(target).kind == GroupKind::Contract &&
         std::ranges::any_of(state.cluster(source).members, [&](NodeId id) { return isHeavy(state, id); });
}

/// Chains that would pass too many values on one by one may fit together: merges all map clusters that `target` is computed from in place.
/// More than these hardly fit, and in a recurrent model they may be as many as its steps.
constexpr size_t kMostTogether = 32;
bool mergeTogether(ClusterState& state, int32_t target) {
  if (state.cluster(target).dead) return false;
  std::set<int32_t> all{target};
  for (std::vector<int32_t> open{target}; !open.empty();) {
    int32_t reader = open.back();
    open.pop_back();
    for (const auto& [source, stored] : state.links.sources(reader)) {
      const Cluster& from = state.cluster(source);
      if (from.kind != GroupKind::Map || from.elements != state.cluster(target).elements) continue;
      if (staysApart(state, source, target)) continue;
      if (readsInPlace(state, reader, source) && all.insert(source).second) open.push_back(source);
    }
    if (all.size() > kMostTogether) return false;
  }
  for (int32_t reader : all) {
    for (const auto& [source, stored] : state.links.sources(reader)) {
      if (all.contains(source) && !readsInPlace(state, reader, source)) return false;
    }
  }
  std::vector<int32_t> sources(all.begin(), all.end());
  std::erase(sources, target);
  if (sources.size() < 2 || !state.fitsWith(sources, target) || state.links.hasDetour(all)) return false;
  state.moveInto(sources, target);
  return true;
}

/// Targets that had too many bindings with the source are noted in `crowded`.
bool mergeMap(ClusterState& state, int32_t source, std::set<int32_t>& crowded) {
  const std::set<int32_t> readers = state.links.readers(source);
  for (const int32_t target : readers) {
    if (staysApart(state, source, target)) continue;
    bool row_values = !readsInPlace(state, target, source);
    if (row_values && !readsRowValues(state, target, source)) continue;
    // No other way from the source to the target.
    const bool detour = std::ranges::any_of(
        state.links.sources(target), [&](const auto& needed) { return needed.first != source && state.links.needs(needed.first, source); });
    if (detour) continue;
    if (!state.fitsWith({source}, target)) {
      crowded.insert(target);
      continue;
    }
    if (row_values) {
      for (NodeId id : state.cluster(source).members) state.row_aligned[id.index()] = 1;
    }
    state.moveInto({source}, target);
    return true;
  }
  return false;
}

/// The one contraction or column reduction that reads a map cluster in its operands, -1 when there is another reader or none.
int32_t onlyReader(const ClusterState& state, const Cluster& cluster) {
  const Graph& graph = state.graph;
  const std::set<NodeId> inside(cluster.members.begin(), cluster.members.end());
  int32_t reader = -1;
  const auto isOf = [&](ValueId user) {
    const NodeId node = graph[user].node;
    if (inside.contains(node)) return true;
    if (std::holds_alternative<ElementLowering>(*graph[node].op->lower)) return false;
    if (reader < 0) reader = state.clusterOf(user);
    return reader == state.clusterOf(user);
  };
  for (NodeId id : cluster.members) {
    if (std::get<ElementLowering>(*graph[id].op->lower).transcendental) return -1;
    for (ValueId result : graph[id].results) {
      if (state.escapes[result.index()] || !std::ranges::all_of(state.users[result.index()], isOf)) return -1;
    }
  }
  return reader;
}

/// Whether the reader is a template whose workgroups load what the cluster makes once, before all else: a row split among invocations, or
/// digits. They wait less for a few operations more than for another kernel.
bool readsOnce(const ClusterState& state, int32_t reader, const Cluster& cluster) {
  const Graph& graph = state.graph;
  const auto loadsOnce = [&](NodeId member) {
    const auto* lowering = std::get_if<TemplateLowering>(&*graph[member].op->lower);
    if (lowering == nullptr) return false;
    const ValueId first = graph[member].operands[0];
    const auto makesFirst = [&](NodeId id) {
      return std::ranges::any_of(graph[id].results, [&](ValueId made) { return throughViews(graph, first).base == made; });
    };
    const TemplateForm form = lowering->shape(graph, graph[member]).form;
    return (form == TemplateForm::Split || form == TemplateForm::Digits) && std::ranges::any_of(cluster.members, makesFirst) &&
           graph.shapeOf(first).elementCount() <= cost::kMostLoadedPrologue;
  };
  return std::ranges::any_of(state.cluster(reader).members, loadsOnce);
}

/// Whether the reader may compute what it reads of the cluster again in each of its loads.
bool isCheapInLoads(const ClusterState& state, int32_t reader, int32_t c) {
  if (state.cluster(reader).kind != GroupKind::Contract) return true;
  return std::ranges::all_of(state.cluster(c).members, [&](NodeId member) {
    const ValueId value = state.graph[member].results[0];
    const size_t operations = operationsOf(state, value, [&](NodeId id) { return state.clusterOf(id) == c; });
    return std::ranges::all_of(state.cluster(reader).members,
                               [&](NodeId user) { return mayRepeatInLoads(state, state.graph[user], value, operations); });
  });
}

}  // namespace

bool isHeavy(const ClusterState& state, NodeId id) {
  const Graph& graph = state.graph;
  if (state.config.heavy_apart == 0 || graph.shapeOf(graph[id].results[0]).elementCount() < state.config.heavy_apart) return false;
  // With what it computes again.
  std::set<NodeId> seen;
  for (std::vector<NodeId> open{id}; !open.empty();) {
    const NodeId next = open.back();
    open.pop_back();
    if (!seen.insert(next).second) continue;
    const Node& node = graph[next];
    if (takesManyOperations(node)) return true;
    for (const ValueId operand : node.operands) {
      const NodeId made = graph[operand].node;
      const bool is_repeated =
          !state.computes(made) && (std::holds_alternative<ElementLowering>(*graph[made].op->lower) || isView(graph, operand));
      if (is_repeated) open.push_back(made);
    }
  }
  return false;
}

void mergeMaps(ClusterState& state) {
  for (bool changed = true; changed;) {
    changed = false;
    std::set<int32_t> crowded;
    for (size_t c = 0; c < state.out.clusters.size(); ++c) {
      const Cluster& cluster = state.out.clusters[c];
      if (!cluster.dead && cluster.kind == GroupKind::Map) changed = mergeMap(state, static_cast<int32_t>(c), crowded) || changed;
    }
    for (int32_t target : crowded) changed = mergeTogether(state, target) || changed;
  }
}

void absorbPrologues(ClusterState& state) {
  for (size_t c = state.out.clusters.size(); c-- > 0;) {
    const Cluster& cluster = state.out.clusters[c];
    if (cluster.dead || cluster.kind != GroupKind::Map) continue;
    int32_t reader = onlyReader(state, cluster);
    if (reader < 0 || state.links.readsStored(reader, static_cast<int32_t>(c))) continue;
    const GroupKind kind = state.cluster(reader).kind;
    if (kind != GroupKind::Contract && kind != GroupKind::Columns && !readsOnce(state, reader, cluster)) continue;
    if (!isCheapInLoads(state, reader, static_cast<int32_t>(c))) continue;
    const std::vector<int32_t> source{static_cast<int32_t>(c)};
    if (state.fitsWith(source, reader)) state.moveInto(source, reader);
  }
}

}  // namespace lockstep::passes
