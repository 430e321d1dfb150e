// Subgroup matrices as far as other implementations know them.
enable f16;
enable chromium_experimental_subgroup_matrix;

@group(0) @binding(0) var<storage, read> a: array<f16>;
@group(0) @binding(1) var<storage, read> b: array<f16>;
@group(0) @binding(2) var<storage, read_write> c: array<f32>;

var<workgroup> tile: array<f16, 256>;

@compute @workgroup_size(64)
fn main(@builtin(local_invocation_index) member: u32) {
  for (var i = member; i < 256; i += 64) {
    tile[i] = a[i];
  }
  workgroupBarrier();
  var sum: subgroup_matrix_result<f32, 16, 16>;
  for (var k = 0u; k < 4; k++) {
    let left = subgroupMatrixLoad<subgroup_matrix_left<f16, 16, 16>, row_major>(&tile, 0, 16);
    let right = subgroupMatrixLoad<subgroup_matrix_right<f16, 16, 16>, col_major>(&b, k * 256, 16);
    sum = subgroupMatrixMultiplyAccumulate(left, right, sum);
  }
  sum = subgroupMatrixScalarMultiply(sum, 0.5f);
  subgroupMatrixStore<row_major>(&c, 0, sum, 16);
}
