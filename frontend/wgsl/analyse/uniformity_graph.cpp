// SPDX-License-Identifier: Apache-2.0
#include "frontend/wgsl/analyse/uniformity_graph.h"

namespace lockstep::wgsl {

void UniformityGraph::clear() {
  nodes_.assign(2, {});
  edges_.clear();
  first_.clear();
}

NodeId UniformityGraph::add(const UniformityNode& node) {
  nodes_.push_back(node);
  return static_cast<NodeId>(nodes_.size() - 1);
}

void UniformityGraph::sortEdges() {
  first_.assign(nodes_.size() + 1, 0);
  for (const Edge& edge : edges_) ++first_[edge.to + 1];
  for (size_t i = 1; i < first_.size(); ++i) first_[i] += first_[i - 1];
  users_.resize(edges_.size());
  std::vector<uint32_t> place(first_.begin(), first_.end() - 1);
  for (const Edge& edge : edges_) users_[place[edge.to]++] = edge.from;
  next_.assign(nodes_.size(), kNoNode);
  reached_.clear();
}

const std::vector<NodeId>& UniformityGraph::pathsTo(NodeId target) {
  if (first_.empty()) sortEdges();
  for (const NodeId node : reached_) next_[node] = kNoNode;
  reached_.assign(1, target);
  next_[target] = target;
  for (size_t i = 0; i < reached_.size(); ++i) {
    const NodeId node = reached_[i];
    for (uint32_t k = first_[node]; k < first_[node + 1]; ++k) {
      if (next_[users_[k]] != kNoNode) continue;
      next_[users_[k]] = node;
      reached_.push_back(users_[k]);
    }
  }
  return next_;
}

}  // namespace lockstep::wgsl
