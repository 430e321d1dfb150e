// overrides: TILE=8
// Tiled matrix product through workgroup memory, with hooks for loading and storing.
override TILE: u32 = 16;

struct Shape {
  m: u32,
  n: u32,
  k: u32,
  batches: u32,
}

@group(0) @binding(0) var<uniform> shape: Shape;
@group(0) @binding(1) var<storage, read> a: array<f32>;
@group(0) @binding(2) var<storage, read> b: array<f32>;
@group(0) @binding(3) var<storage, read_write> c: array<f32>;

var<workgroup> tile_a: array<f32, TILE * TILE>;
var<workgroup> tile_b: array<f32, TILE * TILE>;

fn load_a(batch: u32, m: u32, k: u32) -> f32 {
  return a[(batch * shape.m + m) * shape.k + k];
}

fn load_b(batch: u32, k: u32, n: u32) -> f32 {
  return b[(batch * shape.k + k) * shape.n + n];
}

fn store_c(batch: u32, m: u32, n: u32, value: f32) {
  c[(batch * shape.m + m) * shape.n + n] = value;
}

@compute @workgroup_size(TILE, TILE)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_id) local: vec3<u32>) {
  let row = group.y * TILE + local.y;
  let column = group.x * TILE + local.x;
  let batch = group.z;
  let slot = local.y * TILE + local.x;
  var sum = 0.0;
  for (var start = 0u; start < shape.k; start += TILE) {
    let ka = start + local.x;
    let kb = start + local.y;
    var value_a = 0.0;
    if row < shape.m && ka < shape.k {
      value_a = load_a(batch, row, ka);
    }
    var value_b = 0.0;
    if kb < shape.k && column < shape.n {
      value_b = load_b(batch, kb, column);
    }
    tile_a[slot] = value_a;
    tile_b[slot] = value_b;
    workgroupBarrier();
    for (var i = 0u; i < TILE; i++) {
      sum = fma(tile_a[local.y * TILE + i], tile_b[i * TILE + local.x], sum);
    }
    workgroupBarrier();
  }
  if row < shape.m && column < shape.n {
    store_c(batch, row, column, sum);
  }
}
