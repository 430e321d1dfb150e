// SPDX-License-Identifier: Apache-2.0
// Prints xid_ranges.inc from the Unicode data that Node.js has:  node make_xid_ranges.mjs > xid_ranges.inc
function ranges(property) {
  const result = [];
  for (let c = 0x80; c <= 0x10ffff; ++c) {
    if (c >= 0xd800 && c <= 0xdfff) continue;
    if (!property.test(String.fromCodePoint(c))) continue;
    const last = result.at(-1);
    if (last && last[1] === c - 1) last[1] = c;
    else result.push([c, c]);
  }
  return result;
}

function print(name, property) {
  const texts = ranges(property).map(([a, b]) => `{0x${a.toString(16)}, 0x${b.toString(16)}}`);
  console.log(`constexpr CodeRange ${name}[] = {`);
  for (let i = 0; i < texts.length; i += 6) console.log(`    ${texts.slice(i, i + 6).join(', ')},`);
  console.log('};');
}

console.log('// SPDX-License-Identifier: Apache-2.0');
console.log(`// Made by make_xid_ranges.mjs from Unicode ${process.versions.unicode}: code points above ASCII, first and last of each range.`);
print('kXidStart', /^\p{XID_Start}$/u);
print('kXidContinue', /^\p{XID_Continue}$/u);
