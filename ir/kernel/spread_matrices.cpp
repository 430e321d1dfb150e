// SPDX-License-Identifier: Apache-2.0
// How a matrix is dealt out. A subgroup is seen as `groups` rows of `width` invocations: invocation l has column l % width and row
// l / width of each block of groups x width elements. Element e of its array is its element of block e, blocks row by row. The width is
// that of no matrix in the module smaller, so that the columns of every matrix are whole blocks.
#include "ir/kernel/spread_matrices.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "ir/kernel/builder.h"
#include "ir/kernel/queries.h"

namespace lockstep::kernel {
namespace {

class Spreader {
 public:
  Spreader(InlinedModule inlined, uint32_t subgroup_size)
      : before_(inlined.module.types), sources_(std::move(inlined.sources)), builder_(std::move(inlined.module)), m_(builder_.module()) {
    width_ = subgroup_size;
    for (size_t i = 0; i < before_.size(); ++i) {
      if (isMatrix(TypeId(i))) width_ = std::gcd(width_, uint32_t{before_[TypeId(i)].columns});
    }
    groups_ = subgroup_size / width_;
  }

  Result<InlinedModule> run(uint32_t subgroup_size) {
    for (size_t i = 0; i < before_.size(); ++i) {
      if (!isMatrix(TypeId(i)) || before_[TypeId(i)].rows % groups_ == 0) continue;
      return fail("kernel.subgroup_matrix",
                  fmt::format("{} cannot be dealt out to a subgroup of {}", before_.toString(TypeId(i)), subgroup_size), {},
                  "use more rows, or rows and columns that are powers of two");
    }
    for (const Value& value : m_.values) types_.push_back(value.type);
    for (size_t i = 0; i < m_.values.size(); ++i) m_.values[i].type = spread(types_[i]);
    for (GlobalVariable& global : m_.globals) global.type = spread(global.type);
    const size_t entry = static_cast<size_t>(m_.entryPoint() - m_.functions.data());
    findLane(FunctionId(entry));
    block(m_.functions[entry].body);
    std::erase(m_.capabilities, Capability::SubgroupMatrices);
    if (std::ranges::find(m_.capabilities, Capability::Subgroups) == m_.capabilities.end())
      m_.capabilities.push_back(Capability::Subgroups);
    std::ranges::sort(m_.capabilities);
    return InlinedModule{.module = builder_.take(), .sources = std::move(sources_)};
  }

 private:
  [[nodiscard]] bool isMatrix(TypeId id) const { return before_[id].kind == TypeKind::SubgroupMatrix; }
  [[nodiscard]] Type typeBefore(ValueId value) const { return before_[types_[value.index()]]; }

  /// Elements of a matrix that an invocation holds.
  [[nodiscard]] uint32_t share(const Type& matrix) const { return matrix.rows / groups_ * (matrix.columns / width_); }

  TypeId spread(TypeId id) {
    if (id.index() >= before_.size() || !contains(before_, id, TypeKind::SubgroupMatrix)) return id;
    const auto known = spread_.find(id);
    if (known != spread_.end()) return known->second;
    Type type = before_[id];
    if (type.kind == TypeKind::SubgroupMatrix) {
      // A component of bf16 is a number of f32.
      const Scalar scalar = type.scalar == Scalar::F16 ? Scalar::F16 : Scalar::F32;
      return spread_[id] = builder_.types().array(builder_.types().scalar(scalar), share(type));
    }
    type.element = spread(type.element);
    return spread_[id] = builder_.types().intern(type);
  }

  void findLane(FunctionId entry) {
    for (const Parameter& parameter : m_[entry].parameters) {
      if (parameter.builtin == Builtin::SubgroupInvocationId) lane_ = parameter.value;
    }
    if (!lane_.valid()) lane_ = builder_.parameter(entry, "lane", builder_.types().u32(), Builtin::SubgroupInvocationId);
  }

  /// Builds the block anew, with other instructions in place of those on matrices.
  void block(BlockId id) {
    const std::vector<InstructionId> old = std::exchange(m_.blocks[id.index()].instructions, {});
    for (const InstructionId each : old) {
      builder_.setBlock(id);
      const size_t made = m_.instructions.size();
      m_.instructions[each.index()].type = spread(m_[each].type);
      instruction(each);
      // What is made belongs to the place of what it stands for.
      sources_.resize(m_.instructions.size(), sources_[each.index()]);
      for (size_t i = made; i < m_.instructions.size(); ++i) {
        m_.instructions[i].origin = m_[each].origin;
        m_.instructions[i].location = m_[each].location;
      }
      const std::vector<BlockId> inner = m_[each].blocks;
      for (const BlockId each_inner : inner) block(each_inner);
    }
  }

  void append(InstructionId id) { m_.blocks[builder_.block().index()].instructions.push_back(id); }

  void instruction(InstructionId id) {
    const Instruction x = m_[id];
    if (x.op == Op::SubgroupMatrixLoad) return finish(id, load(x));
    if (x.op == Op::SubgroupMatrixStore) return store(x);
    if (x.op == Op::SubgroupMatrixMultiplyAccumulate) return finish(id, multiply(x));
    if (x.op == Op::SubgroupMatrixAdd) {
      return finish(id, each(x, [&](uint32_t e) { return make(Op::Add, {part(x.operands[0], e), part(x.operands[1], e)}); }));
    }
    if (x.op == Op::SubgroupMatrixScale) {
      return finish(id, each(x, [&](uint32_t e) { return make(Op::Mul, {part(x.operands[0], e), x.operands[1]}); }));
    }
    if (x.op == Op::SubgroupMatrixRowMax || x.op == Op::SubgroupMatrixRowSum) return finish(id, reduceRows(x));
    if (x.op == Op::SubgroupMatrixConvert) {
      return finish(id, each(x, [&](uint32_t e) { return converted(typeBefore(x.result), part(x.operands[0], e)); }));
    }
    if (x.op == Op::Construct && typeBefore(x.result).kind == TypeKind::SubgroupMatrix) {
      return finish(id, each(x, [&](uint32_t) { return x.operands[0]; }));
    }
    if (x.op == Op::SubgroupMatrixRow || x.op == Op::SubgroupMatrixColumn) return position(id, x);
    append(id);
  }

  /// The instruction gives this value: it becomes a construction of the same elements, so that uses need no change.
  void finish(InstructionId id, const std::vector<ValueId>& elements) {
    Instruction& x = m_.instructions[id.index()];
    x.op = Op::Construct;
    x.operands = elements;
    x.immediate = 0;
    append(id);
  }

  template <class Element>
  std::vector<ValueId> each(const Instruction& x, const Element& element) {
    const Type matrix = typeBefore(x.result);
    std::vector<ValueId> made;
    for (uint32_t e = 0; e < share(matrix); ++e) made.push_back(element(e));
    return made;
  }

  ValueId make(Op op, std::vector<ValueId> operands) { return builder_.make(op, std::move(operands)); }
  ValueId u32(uint32_t number) { return builder_.u32(number); }
  ValueId part(ValueId array, uint32_t index) { return builder_.extract(array, index); }
  ValueId widened(ValueId scalar) { return m_.typeOf(scalar).is(Scalar::F16) ? builder_.convert(builder_.types().f32(), scalar) : scalar; }
  ValueId rounded(const Type& matrix, ValueId value) {
    return matrix.scalar == Scalar::F16 ? builder_.convert(builder_.types().scalar(Scalar::F16), value) : value;
  }

  /// A component of bf16 is a number of f32, and so is rounded in its bits. A NaN keeps them.
  ValueId converted(const Type& matrix, ValueId value) {
    if (matrix.scalar == Scalar::F16) return rounded(matrix, value);
    const ValueId bits = builder_.makeAs(Op::Bitcast, builder_.types().u32(), {value});
    const ValueId odd = make(Op::And, {make(Op::Shr, {bits, u32(16)}), u32(1)});
    const ValueId nearest = make(Op::Add, {make(Op::Add, {bits, u32(0x7fff)}), odd});
    const ValueId kept = make(Op::And, {nearest, u32(0xffff0000)});
    const ValueId is_nan = make(Op::Gt, {make(Op::And, {bits, u32(0x7fffffff)}), u32(0x7f800000)});
    return builder_.makeAs(Op::Bitcast, builder_.types().f32(), {make(Op::Select, {kept, bits, is_nan})});
  }

  /// How a matrix lies in an array.
  struct Layout {
    Type matrix;
    ValueId array;
    uint32_t vector = 1;   ///< scalars of an element of the array
    uint32_t packed = 1;   ///< components of such a scalar
    bool as_bits = false;  ///< scalars are u32 and hold bits
    ValueId first, stride;
    bool column_major = false;
  };

  Layout layout(const Type& matrix, ValueId array, ValueId offset, ValueId stride, bool column_major) {
    const Type element = m_.types[m_.types[m_.typeOf(array).element].element];
    Layout made{.matrix = matrix, .array = array, .vector = element.width(), .first = {}, .stride = {}, .column_major = column_major};
    made.packed = componentsIn(element, matrix) / element.width();
    made.as_bits = element.scalar == Scalar::U32;
    const auto components = [&](ValueId elements) { return make(Op::Mul, {elements, u32(made.vector * made.packed)}); };
    made.first = components(offset);
    made.stride = components(stride);
    return made;
  }

  /// The place of the invocation's element `e`, counted in components from the start of the array.
  ValueId place(const Layout& layout, uint32_t e) {
    const uint32_t across = layout.matrix.columns / width_;
    const ValueId row = make(Op::Add, {u32(e / across * groups_), make(Op::Div, {lane_, u32(width_)})});
    const ValueId column = make(Op::Add, {u32(e % across * width_), make(Op::Rem, {lane_, u32(width_)})});
    const ValueId line = layout.column_major ? column : row, along = layout.column_major ? row : column;
    const ValueId start = make(Op::Add, {layout.first, make(Op::Mul, {line, layout.stride})});
    return make(Op::Add, {start, along});
  }

  /// The pointer to scalar number `scalar` of the array.
  ValueId pointer(const Layout& layout, ValueId scalar) {
    if (layout.vector == 1) return builder_.access(layout.array, {scalar});
    const ValueId element = make(Op::Div, {scalar, u32(layout.vector)}), component = make(Op::Rem, {scalar, u32(layout.vector)});
    return builder_.access(layout.array, {element, component});
  }

  std::vector<ValueId> load(const Instruction& x) {
    const Layout from = layout(typeBefore(x.result), x.operands[0], x.operands[1], x.operands[2], x.immediate != 0);
    std::vector<ValueId> made;
    for (uint32_t e = 0; e < share(from.matrix); ++e) {
      const ValueId at = place(from, e);
      if (from.packed == 1) {
        const ValueId loaded = builder_.load(pointer(from, at));
        made.push_back(from.as_bits ? builder_.makeAs(Op::Bitcast, builder_.types().f32(), {loaded}) : loaded);
        continue;
      }
      const ValueId word = builder_.load(pointer(from, make(Op::Div, {at, u32(2)})));
      const ValueId shift = make(Op::Mul, {make(Op::Rem, {at, u32(2)}), u32(16)});
      const ValueId half = make(Op::Shr, {word, shift});
      if (from.matrix.scalar == Scalar::F16) {
        made.push_back(rounded(from.matrix, part(make(Op::Unpack2x16Float, {half}), 0)));
      } else {
        made.push_back(builder_.makeAs(Op::Bitcast, builder_.types().f32(), {make(Op::Shl, {half, u32(16)})}));
      }
    }
    return made;
  }

  void store(const Instruction& x) {
    const Layout to = layout(typeBefore(x.operands[2]), x.operands[0], x.operands[1], x.operands[3], x.immediate != 0);
    for (uint32_t e = 0; e < share(to.matrix); ++e) {
      const ValueId target = pointer(to, place(to, e));
      const ValueId value = part(x.operands[2], e);
      builder_.store(target, to.as_bits ? builder_.makeAs(Op::Bitcast, builder_.types().u32(), {value}) : value);
    }
  }

  /// The row or column of an element becomes its sum of the block's place and the invocation's in it.
  void position(InstructionId id, const Instruction& x) {
    const Type matrix = typeBefore(x.operands[0]);
    const bool is_row = x.op == Op::SubgroupMatrixRow;
    const ValueId across = u32(matrix.columns / width_);
    const ValueId block = make(is_row ? Op::Div : Op::Rem, {x.operands[1], across});
    const ValueId start = make(Op::Mul, {block, u32(is_row ? groups_ : width_)});
    const ValueId inside = make(is_row ? Op::Div : Op::Rem, {lane_, u32(width_)});
    Instruction& sum = m_.instructions[id.index()];
    sum.op = Op::Add;
    sum.operands = {start, inside};
    append(id);
  }

  /// The elements of a row that the invocation holds become one, and so do those of the invocations of the row, by halves of them. All of
  /// these have the same value then, as each step takes the same two in either order.
  std::vector<ValueId> reduceRows(const Instruction& x) {
    const Type matrix = typeBefore(x.result);
    const Op op = x.op == Op::SubgroupMatrixRowMax ? Op::Max : Op::Add;
    const uint32_t across = matrix.columns / width_, down = matrix.rows / groups_;
    std::vector<ValueId> made;
    for (uint32_t i = 0; i < down; ++i) {
      ValueId row = widened(part(x.operands[0], i * across));
      for (uint32_t j = 1; j < across; ++j) row = make(op, {row, widened(part(x.operands[0], i * across + j))});
      for (uint32_t mask = 1; mask < width_; mask *= 2) row = make(op, {row, make(Op::SubgroupShuffleXor, {row, u32(mask)})});
      made.insert(made.end(), across, rounded(matrix, row));
    }
    return made;
  }

  /// Row i of the left matrix is with the same row of invocations as row i of the result, spread over their columns; row k of the right one
  /// is with the row k % groups of invocations, in the columns of the result.
  std::vector<ValueId> multiply(const Instruction& x) {
    const Type left = typeBefore(x.operands[0]), sum = typeBefore(x.result);
    const uint32_t left_across = left.columns / width_, across = sum.columns / width_, down = sum.rows / groups_;
    const ValueId a = builder_.var(m_[x.operands[0]].type, "", x.operands[0]), b = builder_.var(m_[x.operands[1]].type, "", x.operands[1]);
    // Sums are of f32 until the product is done.
    const ValueId sums = builder_.var(builder_.types().array(builder_.types().f32(), share(sum)), "");
    for (uint32_t e = 0; e < share(sum); ++e) {
      const ValueId before = widened(part(x.operands[2], e));
      builder_.store(builder_.access(sums, {u32(e)}, true), before);
    }
    const ValueId my_row = make(Op::Mul, {make(Op::Div, {lane_, u32(width_)}), u32(width_)});
    const ValueId my_column = make(Op::Rem, {lane_, u32(width_)});
    builder_.forRange(u32(0), u32(left.columns), u32(1), "k", [&](ValueId k) {
      const ValueId left_lane = make(Op::Add, {my_row, make(Op::Rem, {k, u32(width_)})});
      const ValueId left_block = make(Op::Div, {k, u32(width_)});
      std::vector<ValueId> rows;
      for (uint32_t i = 0; i < down; ++i) {
        const ValueId held = builder_.load(builder_.access(a, {make(Op::Add, {u32(i * left_across), left_block})}, true));
        rows.push_back(make(Op::SubgroupShuffle, {widened(held), left_lane}));
      }
      const ValueId right_lane = make(Op::Add, {make(Op::Mul, {make(Op::Rem, {k, u32(groups_)}), u32(width_)}), my_column});
      const ValueId right_block = make(Op::Mul, {make(Op::Div, {k, u32(groups_)}), u32(across)});
      for (uint32_t j = 0; j < across; ++j) {
        const ValueId held = builder_.load(builder_.access(b, {make(Op::Add, {right_block, u32(j)})}, true));
        const ValueId right = groups_ == 1 ? widened(held) : make(Op::SubgroupShuffle, {widened(held), right_lane});
        for (uint32_t i = 0; i < down; ++i) {
          const ValueId place = builder_.access(sums, {u32(i * across + j)}, true);
          const ValueId next = make(Op::Fma, {rows[i], right, builder_.load(place)});
          builder_.store(place, next);
        }
      }
    });
    const ValueId done = builder_.load(sums);
    std::vector<ValueId> made;
    for (uint32_t e = 0; e < down * across; ++e) made.push_back(rounded(sum, part(done, e)));
    return made;
  }

  const TypeTable before_;
  std::vector<TypeId> types_;  ///< of each value, as it was
  std::vector<InstructionId> sources_;
  Builder builder_;
  Module& m_;
  uint32_t width_ = 1, groups_ = 1;
  std::map<TypeId, TypeId> spread_;
  ValueId lane_;
};

}  // namespace

bool hasSubgroupMatrices(const Module& module) {
  return std::ranges::find(module.capabilities, Capability::SubgroupMatrices) != module.capabilities.end();
}

Module withComponents(Module module, Scalar from, Scalar to) {
  const TypeTable before = std::exchange(module.types, TypeTable());
  std::vector<TypeId> made;
  const auto mapped = [&](TypeId id) { return id.valid() ? made[id.index()] : id; };
  // What a type is made of comes before it.
  for (size_t i = 0; i < before.size(); ++i) {
    Type type = before[TypeId(i)];
    if (type.kind == TypeKind::SubgroupMatrix && type.scalar == from) type.scalar = to;
    type.element = mapped(type.element);
    for (Member& member : type.members) member.type = mapped(member.type);
    made.push_back(module.types.intern(type));
  }
  for (Value& value : module.values) value.type = mapped(value.type);
  for (GlobalVariable& global : module.globals) global.type = mapped(global.type);
  for (Function& function : module.functions) function.return_type = mapped(function.return_type);
  for (Instruction& instruction : module.instructions) instruction.type = mapped(instruction.type);
  return module;
}

Result<InlinedModule> spreadMatrices(InlinedModule inlined, uint32_t subgroup_size) {
  if (!hasSubgroupMatrices(inlined.module)) return inlined;
  return Spreader(std::move(inlined), subgroup_size).run(subgroup_size);
}

}  // namespace lockstep::kernel
