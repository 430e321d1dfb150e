// SPDX-License-Identifier: Apache-2.0
// einsum of any number of tensors as ops of one or two: the equation is read, completed and cut into pairs from the left.
#include <fmt/format.h>

#include <algorithm>

#include "frontend/ops/network.h"
#include "frontend/trace/trace.h"

namespace lockstep {

namespace {

using detail::raise;

constexpr std::string_view kEllipsis = "...";

std::string replaced(std::string_view labels, std::string_view by) {
  std::string out(labels);
  if (size_t at = out.find(kEllipsis); at != std::string::npos) out.replace(at, kEllipsis.size(), by);
  return out;
}

/// Labels that appear once, in alphabetical order.
std::string implicitResult(const std::string& left) {
  std::string once;
  for (char label : left) {
    if (label != ',' && std::count(left.begin(), left.end(), label) == 1) once += label;
  }
  std::sort(once.begin(), once.end());
  return once;
}

struct Equation {
  std::vector<std::string> operands;
  std::string result;
};

/// Without spaces, with letters for "..." and with a result. Errors "einsum.C2" and "einsum.C3".
Equation complete(std::string text, const std::vector<Tensor>& tensors, const Where& where) {
  std::erase(text, ' ');
  size_t arrow = text.find("->");
  std::string left = text.substr(0, arrow);
  Equation equation;
  for (size_t begin = 0; begin <= left.size();) {
    size_t comma = std::min(left.find(',', begin), left.size());
    equation.operands.push_back(left.substr(begin, comma - begin));
    begin = comma + 1;
  }
  if (equation.operands.size() != tensors.size()) {
    raise("einsum.C2", fmt::format("'{}' has {} operands and {} tensors are given", text, equation.operands.size(), tensors.size()), {},
          where);
  }
  // Letters that the equation does not use stand for the axes of "...".
  std::string letters;
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (equation.operands[i].find(kEllipsis) == std::string::npos) continue;
    int64_t named = static_cast<int64_t>(equation.operands[i].size() - kEllipsis.size()), axes = tensors[i].rank(where) - named;
    std::string here;
    for (char c = 'A'; c <= 'Z' && static_cast<int64_t>(here.size()) < axes; ++c) {
      if (text.find(c) == std::string::npos) here += c;
    }
    if (axes < 0 || (!letters.empty() && here != letters)) {
      raise("einsum.C3", fmt::format("'...' stands for {} axes of {}", axes, toString(tensors[i].shape(where))), {tensors[i]}, where,
            "it must stand for the same number of axes in every operand that has it");
    }
    letters = here;
  }
  for (std::string& labels : equation.operands) labels = replaced(labels, letters);
  if (arrow == std::string::npos) {
    std::string named = left;
    for (size_t at = named.find(kEllipsis); at != std::string::npos; at = named.find(kEllipsis)) named.erase(at, kEllipsis.size());
    equation.result = letters + implicitResult(named);
  } else {
    equation.result = replaced(text.substr(arrow + 2), letters);
  }
  return equation;
}

}  // namespace

Tensor einsum(const std::string& equation, const std::vector<Tensor>& tensors, Where where) {
  detail::Trace& trace = detail::Trace::require("einsum", where);
  if (tensors.empty()) raise("einsum.C2", "there is no tensor", {}, where, "give one tensor for each operand of the equation");
  Equation whole = complete(equation, tensors, where);
  auto apply = [&](const std::vector<Tensor>& operands, const std::string& text) {
    return trace.emitAll("einsum", operands, {{"equation", text}}, where).front();
  };
  if (tensors.size() == 1) return apply(tensors, fmt::format("{}->{}", whole.operands[0], whole.result));
  Tensor product = tensors[0];
  std::string labels = whole.operands[0];
  for (size_t i = 1; i < tensors.size(); ++i) {
    // What a later operand or the result asks for stays.
    std::string later = whole.result, next;
    for (size_t k = i + 1; k < tensors.size(); ++k) later += whole.operands[k];
    for (char label : labels + whole.operands[i]) {
      if (later.find(label) != std::string::npos && next.find(label) == std::string::npos) next += label;
    }
    if (i + 1 == tensors.size()) next = whole.result;
    product = apply({product, tensors[i]}, fmt::format("{},{}->{}", labels, whole.operands[i], next));
    labels = next;
  }
  return product;
}

}  // namespace lockstep
