// SPDX-License-Identifier: Apache-2.0
import { parseWgsl, validate } from 'naga-wasm';

/// text -> [report], empty when the text is a valid module.
export function nagaErrors(text) {
  let module, info;
  try {
    module = parseWgsl(text);
    info = validate(module);
    return [];
  } catch (error) {
    return [error.formatted ?? String(error)];
  } finally {
    info?.free();
    module?.free();
  }
}
