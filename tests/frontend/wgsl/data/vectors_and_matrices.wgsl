// Constructors, swizzles, products and compositions.
fn f(v: vec4<f32>, m: mat3x2<f32>, s: f32, i: vec3<i32>) -> vec2<f32> {
  var r = m * v.xyz;
  r *= s;
  r.x += dot(v.wz, vec2(s, 1));
  r = r + 1 - m[1];
  let t = transpose(m) * r;
  let n = normalize(cross(t, vec3<f32>(i)));
  let blend = mix(n, v.rgb, 0.25);
  let scaled = m * 2.0 + m;
  let packed = vec4(blend, f32(i.z));
  return select(packed.xy, scaled[2], packed.zw < vec2(0.0)) * smoothstep(0, 1, s);
}
