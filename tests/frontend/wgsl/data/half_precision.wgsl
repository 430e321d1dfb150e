// f16 and bit casts.
enable f16;
@group(0) @binding(0) var<storage, read_write> data: array<vec2<f16>>;
const SCALE = 0.5h;

fn f(i: u32) -> u32 {
  data[i] = data[i] * SCALE + vec2<f16>(1, 2.5);
  let wide = vec2<f32>(data[i]);
  return bitcast<u32>(data[i]) ^ pack2x16float(wide);
}
