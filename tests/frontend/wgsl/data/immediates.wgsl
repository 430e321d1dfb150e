struct Settings { scale: vec3f, count: u32, turn: mat2x2f }

var<immediate> settings: Settings;
var<immediate> other: f32;

@group(0) @binding(0) var<storage, read_write> out: array<f32>;

fn turned(m: mat2x2f, i: u32) -> vec2f { return m[i % 2]; }

@compute @workgroup_size(4)
fn main(@builtin(local_invocation_index) i: u32) {
  if settings.count > 2 { workgroupBarrier(); }
  let s = settings;
  out[i] = settings.scale[i % 3] + turned(settings.turn, i).y + s.scale.x;
}

@compute @workgroup_size(1)
fn second() { out[0] = other; }
