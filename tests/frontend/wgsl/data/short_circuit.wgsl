// && and || evaluate their right side only when it decides.
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<u32>;

fn bump() -> bool {
  y[1] += 1;
  return true;
}

@compute @workgroup_size(1)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  let cheap = id.x < 4 && id.y < 4;
  let guarded = id.x < arrayLength(&x) && x[id.x] > 0;
  let effect = cheap || bump();
  if guarded && !effect { y[0] = 1; }
}
