// SPDX-License-Identifier: Apache-2.0
// Asks Tint and naga about texts that are valid. usage: node check_kernels.mjs DIR
// Prints what they object to, and ends with 1 when there is anything.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { nagaErrors } from './naga.mjs';
import { openTint } from './tint.mjs';

/// What naga refuses although it is WGSL, by the name of the text.
const kNoSubgroups = /the `subgroups` enable-extension is not yet supported/;
const kRefusedByNaga = {
  attend_cache_split: kNoSubgroups,
  attend_gradient_keys_tiled: kNoSubgroups,
  attend_gradient_queries_tiled: kNoSubgroups,
  attend_tiled: kNoSubgroups,
  half_precision: /Operation ExclusiveOr can't work with/, // takes bitcast<u32>(vec2<f16>) for a vector
  pointers: /which can't be passed into functions/, // has no unrestricted_pointer_parameters
};

const [folder] = process.argv.slice(2);
const files = readdirSync(folder).filter((name) => name.endsWith('.wgsl'));
const tintErrors = await openTint();
let objections = 0;
for (const file of files) {
  const text = readFileSync(join(folder, file), 'utf8');
  const object = (judge, words) => {
    objections += 1;
    console.log(`${judge}: ${file}\n${words}`);
  };
  const ofTint = await tintErrors(text), ofNaga = nagaErrors(text);
  const known = kRefusedByNaga[file.split('.')[0]];
  if (ofTint.length > 0) object('tint', ofTint.join('\n'));
  if (known ? !known.test(ofNaga[0]) : ofNaga.length > 0) object('naga', ofNaga[0] ?? 'is accepted: kRefusedByNaga is out of date');
}
console.log(`${files.length} texts, ${objections} objections`);
// Dawn's threads would keep the process.
process.exit(objections === 0 && files.length > 0 ? 0 : 1);
