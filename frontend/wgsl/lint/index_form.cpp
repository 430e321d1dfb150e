// SPDX-License-Identifier: Apache-2.0
#include "frontend/wgsl/lint/index_form.h"

#include <algorithm>

namespace lockstep::wgsl {
namespace {

using kernel::Builtin;
using kernel::Instruction;
using kernel::Op;
using kernel::TypeKind;
using kernel::ValueId;
using What = TermKey::What;

constexpr int kDepth = 24;
constexpr size_t kMostTerms = 24;

struct Sum {
  std::map<TermKey, int64_t> terms;
  int64_t constant = 0;
};

class Forms {
 public:
  explicit Forms(const InvocationFlow& flow) : flow_(flow), m_(flow.module()) {}

  std::optional<Sum> of(ValueId value, int depth) {
    if (const auto bits = kernel::constantBits(m_, value)) {
      const bool is_signed = m_.typeOf(value).is(kernel::Scalar::I32);
      // Numbers above 2^31 are negative ones that wrap.
      return Sum{.terms = {}, .constant = is_signed || *bits > INT32_MAX ? int64_t{static_cast<int32_t>(*bits)} : int64_t{*bits}};
    }
    if (const auto id = flow_.component(value)) return ofId(*id, value);
    const Instruction* x = kernel::definition(m_, value);
    if (x == nullptr || depth == 0) return leaf(value);
    if (x->op == Op::Add || x->op == Op::Sub) {
      return added(of(x->operands[0], depth - 1), of(x->operands[1], depth - 1), x->op == Op::Add ? 1 : -1);
    }
    if (x->op == Op::Mul) return multiplied(*x, depth);
    if (x->op == Op::Shl) {
      const auto bits = kernel::constantBits(m_, x->operands[1]);
      return bits && *bits < 31 ? scaled(of(x->operands[0], depth - 1), int64_t{1} << *bits) : leaf(value);
    }
    if (x->op == Op::Rem || x->op == Op::And) return remainder(*x, depth);
    if ((x->op == Op::Convert || x->op == Op::Bitcast) && m_.typeOf(x->operands[0]).isInteger()) return of(x->operands[0], depth - 1);
    if (x->op == Op::Load) {
      if (const ValueId initial = flow_.initialOf(x->operands[0]); initial.valid()) return of(initial, depth - 1);
      const Instruction* variable = kernel::definition(m_, x->operands[0]);
      if (variable != nullptr && variable->op == Op::Var) return term({.what = What::Variable, .which = x->operands[0].value}, 1);
    }
    return leaf(value);
  }

  static std::optional<Sum> added(std::optional<Sum> a, const std::optional<Sum>& b, int64_t factor) {
    if (!a || !b) return std::nullopt;
    for (const auto& [key, times] : b->terms) {
      int64_t& sum = a->terms[key];
      sum += times * factor;
      if (sum == 0) a->terms.erase(key);
    }
    a->constant += b->constant * factor;
    return a->terms.size() > kMostTerms ? std::nullopt : a;
  }

  static std::optional<Sum> scaled(std::optional<Sum> sum, int64_t factor) {
    constexpr int64_t kLarge = int64_t{1} << 40;
    if (!sum || factor > kLarge || factor < -kLarge) return std::nullopt;
    for (auto& [key, times] : sum->terms) {
      times *= factor;
      if (times > kLarge || times < -kLarge) return std::nullopt;
    }
    sum->constant *= factor;
    if (factor == 0) sum->terms.clear();
    return sum;
  }

 private:
  static std::optional<Sum> term(TermKey key, int64_t times) { return Sum{.terms = {{key, times}}, .constant = 0}; }
  std::optional<Sum> leaf(ValueId value) { return term({.what = What::Value, .which = flow_.numberOf(value)}, 1); }

  std::optional<Sum> ofId(const InvocationFlow::Component& id, ValueId value) {
    const auto& size = flow_.size();
    Sum sum;
    const auto lane = [&](uint32_t axis, int64_t times) {
      if (size[axis] > 1) sum.terms[{.what = What::Lane, .which = axis}] = times;
    };
    const TermKey group{.what = What::Group, .which = id.axis};
    if (id.builtin == Builtin::LocalInvocationId) {
      lane(id.axis, 1);
    } else if (id.builtin == Builtin::WorkgroupId) {
      sum.terms[group] = 1;
    } else if (id.builtin == Builtin::GlobalInvocationId) {
      sum.terms[group] = size[id.axis];
      lane(id.axis, 1);
    } else if (id.builtin == Builtin::LocalInvocationIndex) {
      lane(0, 1);
      lane(1, size[0]);
      lane(2, int64_t{size[0]} * size[1]);
    } else {
      return leaf(value);
    }
    return sum;
  }

  /// i % 64 and i & 63 are i where that is below 64.
  std::optional<Sum> remainder(const Instruction& x, int depth) {
    const auto bits = kernel::constantBits(m_, x.operands[1]);
    const auto whole = of(x.operands[0], depth - 1);
    const bool mask = x.op == Op::And && bits && (*bits & (*bits + 1)) == 0;
    if (!bits || !whole || (x.op == Op::And && !mask)) return leaf(x.result);
    int64_t most = whole->constant;
    for (const auto& [key, times] : whole->terms) {
      if (key.what != What::Lane || key.factor != 0 || times < 0) return leaf(x.result);
      most += times * (int64_t{flow_.size()[key.which]} - 1);
    }
    const int64_t limit = int64_t{*bits} + (mask ? 1 : 0);
    return whole->constant >= 0 && most < limit ? whole : leaf(x.result);
  }

  std::optional<Sum> multiplied(const Instruction& x, int depth) {
    const auto a = of(x.operands[0], depth - 1), b = of(x.operands[1], depth - 1);
    if (!a || !b) return std::nullopt;
    if (b->terms.empty()) return scaled(a, b->constant);
    if (a->terms.empty()) return scaled(b, a->constant);
    // A number that all invocations share stretches the other side.
    for (const size_t side : {0u, 1u}) {
      if (flow_.idsOf(x.operands[1 - side]) != 0) continue;
      const Sum& stretched = side == 0 ? *a : *b;
      const uint32_t factor = 1 + flow_.numberOf(x.operands[1 - side]);
      if (std::ranges::any_of(stretched.terms, [](const auto& each) { return each.first.factor != 0; })) break;
      Sum sum;
      for (const auto& [key, times] : stretched.terms) sum.terms[{.what = key.what, .which = key.which, .factor = factor}] = times;
      if (stretched.constant != 0) sum.terms[{.what = What::Value, .which = factor - 1}] += stretched.constant;
      return sum;
    }
    return leaf(x.result);
  }

  const InvocationFlow& flow_;
  const kernel::Module& m_;
};

}  // namespace

bool IndexForm::has(What what) const {
  return std::ranges::any_of(terms, [&](const auto& each) { return each.first.what == what; });
}

std::optional<IndexForm> indexForm(const InvocationFlow& flow, ValueId pointer) {
  const kernel::Module& m = flow.module();
  std::vector<ValueId> indices;
  ValueId at = pointer;
  for (const Instruction* x = kernel::definition(m, at); x != nullptr && x->op == Op::Access; x = kernel::definition(m, at)) {
    indices.insert(indices.begin(), x->operands.begin() + 1, x->operands.end());
    at = x->operands[0];
  }
  if (indices.empty()) return std::nullopt;
  IndexForm form;
  std::optional<Sum> sum = Sum{};
  Forms forms(flow);
  kernel::TypeId type = m.typeOf(at).element;
  for (const ValueId index : indices) {
    const kernel::Type& whole = m.types[type];
    if (whole.kind == TypeKind::Struct) {
      const kernel::Member& member = whole.members[kernel::constantBits(m, index).value_or(0)];
      sum->constant += member.offset;
      type = member.type;
      continue;
    }
    const bool array = whole.kind == TypeKind::Array;
    const uint32_t stride = array                            ? m.types.strideOf(type)
                            : whole.kind == TypeKind::Matrix ? m.types.columnStride(type)
                                                             : kernel::byteSize(whole.scalar);
    if (array) {
      form.element_bytes = stride;
      form.runtime_sized |= whole.count == 0;
    }
    sum = Forms::added(std::move(sum), Forms::scaled(forms.of(index, kDepth), stride), 1);
    if (!sum) return std::nullopt;
    if (array) {
      type = whole.element;
    } else {
      break;  // a component or column is within the element
    }
  }
  form.terms = std::move(sum->terms);
  form.constant = sum->constant;
  return form;
}

std::optional<std::map<TermKey, int64_t>> indexSum(const InvocationFlow& flow, ValueId value) {
  auto sum = Forms(flow).of(value, kDepth);
  return sum ? std::optional(std::move(sum->terms)) : std::nullopt;
}

}  // namespace lockstep::wgsl
