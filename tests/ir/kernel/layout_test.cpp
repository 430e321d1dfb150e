// SPDX-License-Identifier: Apache-2.0
// WGSL's "Alignment and Size" table, row by row, and struct layout.
#include <gtest/gtest.h>

#include "ir/kernel/type.h"
#include "ir/support/diagnostic.h"

namespace lockstep::kernel {
namespace {

struct VectorRow {
  Scalar scalar;
  uint32_t width, align, size;
};

TEST(Layout, scalars_and_vectors_follow_the_table) {
  TypeTable types;
  for (Scalar scalar : {Scalar::Bool, Scalar::I32, Scalar::U32, Scalar::F32}) {
    for (const VectorRow& row : {VectorRow{scalar, 1, 4, 4}, {scalar, 2, 8, 8}, {scalar, 3, 16, 12}, {scalar, 4, 16, 16}}) {
      TypeId type = types.scalarOrVector(row.scalar, row.width);
      EXPECT_EQ(types.alignOf(type), row.align) << types.toString(type);
      EXPECT_EQ(types.sizeOf(type), row.size) << types.toString(type);
    }
  }
  for (const VectorRow& row : {VectorRow{Scalar::F16, 1, 2, 2}, {Scalar::F16, 2, 4, 4}, {Scalar::F16, 3, 8, 6}, {Scalar::F16, 4, 8, 8}}) {
    TypeId type = types.scalarOrVector(row.scalar, row.width);
    EXPECT_EQ(types.alignOf(type), row.align) << types.toString(type);
    EXPECT_EQ(types.sizeOf(type), row.size) << types.toString(type);
  }
  for (Scalar scalar : {Scalar::I32, Scalar::U32}) {
    EXPECT_EQ(types.alignOf(types.atomic(scalar)), 4u);
    EXPECT_EQ(types.sizeOf(types.atomic(scalar)), 4u);
  }
}

struct MatrixRow {
  Scalar scalar;
  uint32_t rows, align;
  uint32_t sizes[3];  ///< of 2, 3 and 4 columns
};

TEST(Layout, matrices_follow_the_table) {
  const MatrixRow rows[] = {{Scalar::F32, 2, 8, {16, 24, 32}}, {Scalar::F32, 3, 16, {32, 48, 64}}, {Scalar::F32, 4, 16, {32, 48, 64}},
                            {Scalar::F16, 2, 4, {8, 12, 16}},  {Scalar::F16, 3, 8, {16, 24, 32}},  {Scalar::F16, 4, 8, {16, 24, 32}}};
  TypeTable types;
  for (const MatrixRow& row : rows) {
    for (uint32_t columns = 2; columns <= 4; ++columns) {
      TypeId type = types.matrix(row.scalar, columns, row.rows);
      EXPECT_EQ(types.alignOf(type), row.align) << types.toString(type);
      EXPECT_EQ(types.sizeOf(type), row.sizes[columns - 2]) << types.toString(type);
      EXPECT_EQ(types.columnStride(type), row.align) << types.toString(type);
    }
  }
}

TEST(Layout, array_stride_is_the_element_size_rounded_up_to_its_alignment) {
  TypeTable types;
  TypeId vec3 = types.array(types.vector(Scalar::F32, 3), 5);
  EXPECT_EQ(types.strideOf(vec3), 16u);
  EXPECT_EQ(types.sizeOf(vec3), 80u);
  EXPECT_EQ(types.alignOf(vec3), 16u);
  TypeId runtime = types.array(types.u32(), 0);
  EXPECT_EQ(types.strideOf(runtime), 4u);
  EXPECT_EQ(types.sizeOf(runtime), 4u);
  EXPECT_TRUE(types.isRuntimeSized(runtime));
  EXPECT_FALSE(types.isRuntimeSized(vec3));
  EXPECT_EQ(types.elementCount(runtime), 0u);
  EXPECT_EQ(types.elementCount(vec3), 5u);
}

TEST(Layout, scalar_fits_behind_a_vector_of_three) {
  TypeTable types;
  std::vector<Member> members(2);
  members[0] = {.name = "v", .type = types.vector(Scalar::F32, 3)};
  members[1] = {.name = "s", .type = types.f32()};
  TypeId type = types.structure("S", members);
  EXPECT_EQ(types[type].members[1].offset, 12u);
  EXPECT_EQ(types.sizeOf(type), 16u);
  EXPECT_EQ(types.alignOf(type), 16u);
}

// The example struct of the specification's section on structure layout.
TEST(Layout, nested_struct_is_aligned_and_padded) {
  TypeTable types;
  std::vector<Member> a(4);
  a[0] = {.name = "u", .type = types.f32()};
  a[1] = {.name = "v", .type = types.f32()};
  a[2] = {.name = "w", .type = types.vector(Scalar::F32, 2)};
  a[3] = {.name = "x", .type = types.f32()};
  TypeId inner = types.structure("A", a);
  EXPECT_EQ(types.sizeOf(inner), 24u);
  EXPECT_EQ(types.alignOf(inner), 8u);
  std::vector<Member> b(6);
  b[0] = {.name = "a", .type = types.vector(Scalar::F32, 2)};
  b[1] = {.name = "b", .type = types.vector(Scalar::F32, 3)};
  b[2] = {.name = "c", .type = types.f32()};
  b[3] = {.name = "d", .type = types.f32()};
  b[4] = {.name = "e", .type = inner};
  b[5] = {.name = "g", .type = types.array(inner, 3)};
  TypeId outer = types.structure("B", b);
  std::vector<uint32_t> offsets;
  for (const Member& member : types[outer].members) offsets.push_back(member.offset);
  EXPECT_EQ(offsets, (std::vector<uint32_t>{0, 16, 28, 32, 40, 64}));
  EXPECT_EQ(types.sizeOf(outer), 144u);
  EXPECT_EQ(types.alignOf(outer), 16u);
}

TEST(Layout, align_and_size_attributes_override) {
  TypeTable types;
  std::vector<Member> members(3);
  members[0] = {.name = "a", .type = types.f32(), .size = 20};
  members[1] = {.name = "b", .type = types.f32(), .align = 32};
  members[2] = {.name = "c", .type = types.array(types.f32(), 0)};
  TypeId type = types.structure("S", members);
  EXPECT_EQ(types[type].members[1].offset, 32u);
  EXPECT_EQ(types[type].members[2].offset, 36u);
  EXPECT_EQ(types.alignOf(type), 32u);
  EXPECT_EQ(types.sizeOf(type), 64u);
  EXPECT_TRUE(types.isRuntimeSized(type));
}

TEST(Layout, sizes_saturate_instead_of_wrapping) {
  TypeTable types;
  TypeId large = types.array(types.vector(Scalar::F32, 4), UINT32_MAX);
  EXPECT_EQ(types.sizeOf(large), TypeTable::kTooLarge);
  EXPECT_EQ(types.sizeOf(types.array(large, 2)), TypeTable::kTooLarge);
}

TEST(Types, equal_types_are_one_and_spelled_as_in_wgsl) {
  TypeTable types;
  EXPECT_EQ(types.vector(Scalar::F32, 4), types.vector(Scalar::F32, 4));
  EXPECT_NE(types.vector(Scalar::F32, 4), types.vector(Scalar::I32, 4));
  EXPECT_EQ(types.toString(types.voidType()), "void");
  EXPECT_EQ(types.toString(types.matrix(Scalar::F16, 4, 3)), "mat4x3<f16>");
  EXPECT_EQ(types.toString(types.array(types.atomic(Scalar::I32), 16)), "array<atomic<i32>, 16>");
  EXPECT_EQ(types.toString(types.pointer(AddressSpace::Workgroup, types.array(types.f32(), 4))), "ptr<workgroup, array<f32, 4>>");
  EXPECT_EQ(types.toString(types.pointer(AddressSpace::Uniform, types.f32(), Access::Read)), "ptr<uniform, f32>");
  EXPECT_EQ(types.toString(types.pointer(AddressSpace::Storage, types.f32(), Access::Read)), "ptr<storage, f32, read>");
}

TEST(Types, misuse_is_an_internal_error) {
  TypeTable types;
  EXPECT_THROW(types.vector(Scalar::F32, 5), InternalError);
  EXPECT_THROW(types.matrix(Scalar::I32, 2, 2), InternalError);
  EXPECT_THROW(types.atomic(Scalar::F32), InternalError);
  EXPECT_THROW(types.array(TypeId(1000), 4), InternalError);
}

}  // namespace
}  // namespace lockstep::kernel
