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
  attend_gradient_keys_matrix: kNoSubgroups,
  attend_gradient_keys_tiled: kNoSubgroups,
  attend_gradient_queries_matrix: kNoSubgroups,
  attend_gradient_queries_tiled: kNoSubgroups,
  attend_matrix: kNoSubgroups,
  attend_tiled: kNoSubgroups,
  half_precision: /Operation ExclusiveOr can't work with/, // takes bitcast<u32>(vec2<f16>) for a vector
  matmul_matrix_tiled: kNoSubgroups,
  matrix_units: /the `chromium_experimental_subgroup_matrix` enable-extension|unknown enable-extension/,
  multiply_quantized_digits: kNoSubgroups,
  pointers: /which can't be passed into functions/, // has no unrestricted_pointer_parameters
};

/// What Tint refuses: functions of subgroup matrices that only we have.
const kOurs = /unresolved call target 'subgroupMatrix(Add|Convert|Row|RowMax|RowSum)'/;
const kRefusedByTint = {
  attend_gradient_keys_matrix: kOurs,
  attend_gradient_queries_matrix: kOurs,
  attend_matrix: kOurs,
  matmul_matrix_tiled: kOurs,
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
  const judge = (name, errors, known) => {
    if (known ? !known.test(errors[0]) : errors.length > 0) object(name, errors.join('\n') || 'is accepted: what is known to be refused is out of date');
  };
  const kernel = file.split('.')[0];
  judge('tint', ofTint, kRefusedByTint[kernel]);
  judge('naga', ofNaga, kRefusedByNaga[kernel]);
}
console.log(`${files.length} texts, ${objections} objections`);
// Dawn's threads would keep the process.
process.exit(objections === 0 && files.length > 0 ? 0 : 1);
