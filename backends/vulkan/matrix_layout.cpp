// SPDX-License-Identifier: Apache-2.0
#include "backends/vulkan/matrix_layout.h"

#include <algorithm>
#include <vector>

#include "ir/kernel/builder.h"

namespace lockstep::vulkan {

namespace {

template <size_t N>
void addBits(MatrixPlace& place, const std::array<MatrixPlace, N>& bits, uint32_t number) {
  for (size_t i = 0; i < N; ++i) {
    if ((number >> i & 1) == 0) continue;
    place.row += bits[i].row;
    place.column += bits[i].column;
  }
}

}  // namespace

MatrixPlace MatrixLayout::at(uint32_t lane, uint32_t element) const {
  MatrixPlace place;
  addBits(place, lane_bits, lane);
  addBits(place, element_bits, element);
  return place;
}

std::optional<MatrixLayout> fitLayout(const kernel::Type& type, uint32_t lanes, std::span<const uint32_t> numbers) {
  const uint32_t size = uint32_t{type.rows} * type.columns, held = size / lanes;
  if (held * lanes != size || numbers.size() != size) return std::nullopt;
  const auto told = [&](uint32_t lane, uint32_t element) {
    const uint32_t number = numbers[lane * held + element];
    return MatrixPlace{.row = number / type.columns, .column = number % type.columns};
  };
  MatrixLayout layout{.type = type, .lanes = lanes};
  for (size_t i = 0; i < layout.lane_bits.size() && (1u << i) < lanes; ++i) layout.lane_bits[i] = told(1u << i, 0);
  for (size_t i = 0; i < layout.element_bits.size() && (1u << i) < held; ++i) layout.element_bits[i] = told(0, 1u << i);
  std::vector<bool> seen(size);
  for (uint32_t lane = 0; lane < lanes; ++lane) {
    for (uint32_t element = 0; element < held; ++element) {
      const uint32_t number = numbers[lane * held + element];
      if (number >= size || seen[number] || layout.at(lane, element) != told(lane, element)) return std::nullopt;
      seen[number] = true;
    }
  }
  return layout;
}

std::optional<std::vector<uint32_t>> lanesOfRow(const MatrixLayout& layout) {
  std::vector<uint32_t> lanes;
  uint32_t places = 1;
  bool simple = true;
  const auto look = [&](const MatrixPlace& bit) {
    simple = simple && (bit.row == 0 || bit.column == 0);
    if (bit.column != 0) places *= 2;
  };
  for (size_t i = 0; i < layout.lane_bits.size(); ++i) {
    look(layout.lane_bits[i]);
    if (layout.lane_bits[i].column != 0) lanes.push_back(1u << i);
  }
  std::ranges::for_each(layout.element_bits, look);
  if (!simple || places != layout.type.columns) return std::nullopt;
  return lanes;
}

bool holdAlike(const MatrixLayout& a, const MatrixLayout& b) {
  return a.lanes == b.lanes && a.lane_bits == b.lane_bits && a.element_bits == b.element_bits;
}

kernel::Module layoutProbe(const kernel::Type& type, uint32_t lanes) {
  using namespace kernel;
  Builder b;
  TypeTable& types = b.types();
  const TypeId matrix = types.subgroupMatrix(type.use, type.scalar, type.columns, type.rows);
  const uint32_t size = uint32_t{type.rows} * type.columns, held = size / lanes;
  const bool halves = type.scalar == Scalar::F16;
  const TypeId floats = types.array(types.f32(), size), numbers = halves ? types.array(types.u32(), (size + 1) / 2) : floats;
  const auto buffer = [&](std::string name, TypeId array, Access access, uint32_t binding) {
    GlobalVariable variable;
    variable.name = std::move(name);
    variable.type = array;
    variable.space = AddressSpace::Storage;
    variable.access = access;
    variable.binding = binding;
    return b.global(std::move(variable));
  };
  const ValueId in = buffer("numbers", numbers, Access::Read, 0), out = buffer("held", floats, Access::ReadWrite, 1);
  const FunctionId main = b.function("main", types.voidType());
  b.setWorkgroupSize(main, {lanes, 1, 1});
  b.setSubgroupSize(main, lanes);
  const ValueId lane = b.parameter(main, "lane", types.u32(), kernel::Builtin::SubgroupInvocationId);
  b.enterFunction(main);
  const ValueId loaded = b.loadMatrix(matrix, in, b.u32(0), b.u32(halves ? type.columns / 2u : type.columns));
  const ValueId first = b.make(Op::Mul, {lane, b.u32(held)});
  for (uint32_t e = 0; e < held; ++e) {
    const ValueId number = b.extract(loaded, e);
    const ValueId place = b.make(Op::Add, {first, b.u32(e)});
    b.store(b.access(out, {place}), halves ? b.convert(types.f32(), number) : number);
  }
  b.returnVoid();
  b.module().capabilities = {Capability::Subgroups, Capability::SubgroupMatrices};
  if (halves) b.module().capabilities.insert(b.module().capabilities.begin(), Capability::F16);
  return b.take();
}

}  // namespace lockstep::vulkan
