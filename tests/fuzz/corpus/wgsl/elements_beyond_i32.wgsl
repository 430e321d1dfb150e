fn foo() {
  let idx = -1;
  let x = array(1, 2, 7414502693)[idx];
  let y = vec2(1, 7414502693)[idx];
  let z = vec2(1, 7414502693) << vec2(u32(idx));
}
