// A local hides a buffer and is then indexed.
struct Settings { batch: u32, rows: u32 }
@group(0) @binding(0) var<uniform> settings: Settings;
@group(0) @binding(1) var<storage, read> batch: array<f32>;
@group(0) @binding(2) var<storage, read_write> out: array<f32>;
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u) {
  let batch = settings.batch;
  if (id.x < batch) { out[id.x] = batch[id.x]; }
}
