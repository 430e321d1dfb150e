// SPDX-License-Identifier: Apache-2.0
// print with texts, names and values of every shape.
struct Cell { at: vec2<u32>, sums: array<f32, 2>, m: mat2x3<f32> }
@group(0) @binding(0) var<storage, read_write> cells: array<Cell>;

fn show(cell: Cell, i: u32) {
  print("in show: \"cell\" \\", cell, "total =", cell.sums[0] + cell.sums[1]);
  if (i > 2) { print(i, -1, 0x7fu, "=", i * 2, vec3(1.5)); }
}

// lockstep: dispatch(ceil_div(length(cells), workgroup_size.x))
@compute @workgroup_size(4)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  show(cells[id.x], id.x);
  print("größer → 😀");
  print(cells[id.x]
          .m, array(1, 2), id.xy /* both */, id.x == 2 && id.y == 0);
}
