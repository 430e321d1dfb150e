// SPDX-License-Identifier: Apache-2.0
// Writes data/*.cases.jsonl anew: what Hugging Face's own library, of the package @anush008/tokenizers, makes of texts with the tokenizers
// of data/. usage: node record.mjs, in a folder with that package
import { createRequire } from "node:module"
import { readdirSync, writeFileSync } from "node:fs"
import { makeText, randomOf } from "./texts.mjs"

const { Tokenizer } = createRequire(process.cwd() + "/")("@anush008/tokenizers")
const data = new URL("data/", import.meta.url).pathname
const fixed = ["", " ", "a", "the quick brown fox", "Hello  world\n\n\tit's 12345", "<|end|>", "x <|left|> y <|right|>  z", "word sword word-word words word", "<|en<|endless|><|end|>",
  "<s>the</s> low<unk>", "  <mask>  a", "A\u030aa\u0308 Åä Åä", " unreachable unreachable", "\0\u0001", "e\u0301\u0323", "👨‍👩‍👧 naïve 你好", "<tool> a<tool>", "▁the ▁", "aaaaaaaaaaaaaaaaaaaaaaaaa",
  "NEWTOK newtok NewTok", "don't-we'll", "ﬁ Ⅸ ½ İ", "a\r\nb\rc", "שלום مرحبا", "\u200b\u00a0\u3000x"]
for (const file of readdirSync(data).filter((name) => name.endsWith(".json"))) {
  const tokenizer = Tokenizer.fromFile(data + file)
  const random = randomOf(22)
  const texts = [...fixed, ...Array.from({ length: 60 }, () => makeText(random))]
  const lines = []
  for (const text of texts) {
    const ids = Array.from((await tokenizer.encode(text, null, {})).getIds())
    const plain = Array.from((await tokenizer.encode(text, null, { addSpecialTokens: false })).getIds())
    const decoded = ids.length ? await tokenizer.decode(ids, false) : ""
    const skipped = ids.length ? await tokenizer.decode(ids, true) : ""
    lines.push(JSON.stringify({ text, ids, plain, decoded, skipped }))
  }
  writeFileSync(data + file.replace(".json", ".cases.jsonl"), lines.join("\n") + "\n")
}
