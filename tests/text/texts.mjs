// SPDX-License-Identifier: Apache-2.0
// Random and adversarial texts, the same for the same seed.

export function randomOf(seed) {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let t = Math.imul(state ^ (state >>> 15), 1 | state)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296
  }
}

const words = ("the quick brown fox jumps over lazy dogs Hello world I'm you're they'LL don't it's we'd O'Neil main let mut total u32 return " +
  "naïve café Straße İstanbul ÅNGSTRÖM Привет мир مرحبا بالعالم שלום עולם नमस्ते दुनिया 你好 世界 こんにちは カタカナ 한국어 ไทย ελληνικά Việt").split(" ")
const spaces = [" ", " ", " ", "  ", "   ", "\t", "\n", "\n\n", "\r\n", "\r", " \n", "\n ", "\t\t", "\u00a0", "\u2003", "\u3000", "\u2028", "\u0085", "\v", "\f", "\u1680"]
const marks = ["\u0301", "\u0308", "\u0323", "\u0327", "\u0345", "\u093c", "\u094d", "\u0e48", "\u20dd", "\ufe0f", "\u200d", "\u3099", "\u0300\u0316"]
const symbols = [..."!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~£€¥§©®™°±×÷…–—“”‘’«»¿¡†‡•←→∀∑√∞≈≠≤≥│█░♥★☃①Ⓐ⓿½¼²³ⅣⅨ〇٣४"]
const emoji = ["😀", "👍🏽", "👨‍👩‍👧‍👦", "🏳️‍🌈", "🇩🇪", "❤️", "1️⃣", "🧑🏿‍🚀", "🫠"]
const odd = ["\0", "\u0001", "\u007f", "\ufeff", "\ufffd", "\ue000", "\u{f0000}", "\u{10ffff}", "\u200b", "\u200c", "\u200e", "\u202e", "\u00ad", "\u2060",
  "ſ", "'ſ", "K", "ß", "ẞ", "ŉ", "ﬁ", "Ǆ", "ǅ", "ʰ", "ª", "𝒜", "𝟘", "𠀀", "\u1e9b\u0323", "가", "\u1112\u1161\u11ab", "Å", "Ω", "\u0344", "\u212b", "\u2126", "豈"]
const specials = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<s>", "</s>", "<unk>", "<0x0A>", "<0xE4>", "<|eot_id|>", "<|begin_of_text|>", "<bos>", "<tool_call>",
  "<｜User｜>", "<｜fim▁hole｜>", "<|endofprompt|>", "<start_of_turn>", "<|", "|>", "<", "▁", "▁▁", "Ġ", "<unused5>", "[multimodal]", "\n\n\n", "\t\t\t", "<table>"]
const hard = ["'s", "'S", "'ll", "'LL", "'re", "''", "12345678901", "1,234.56", "a1b2", "x=y+z;", "https://a.b/c?d=e&f#g", "{\"k\": [1, null]}", "\\n", "0x1F", "3.14e-10", "aaaaaaaaaaaaaaaaaaaa", "AAAaaa", "camelCaseWordsABC"]

export function makeText(random) {
  const pick = (list) => list[Math.floor(random() * list.length)]
  const any = () => {
    for (;;) {
      const top = random() < 0.6 ? 0x3000 : random() < 0.7 ? 0x10000 : 0x20000
      const point = Math.floor(random() * top)
      if (point < 0xd800 || point > 0xdfff) return String.fromCodePoint(point)
    }
  }
  const style = random()
  const parts = []
  const count = 1 + Math.floor(random() * 14)
  for (let i = 0; i < count; ++i) {
    const which = style < 0.3 ? 0.1 : style < 0.8 ? random() : 0.97
    if (which < 0.35) parts.push(pick(words), random() < 0.7 ? " " : pick(spaces))
    else if (which < 0.45) parts.push(pick(spaces))
    else if (which < 0.53) parts.push(pick(marks))
    else if (which < 0.63) parts.push(pick(symbols))
    else if (which < 0.69) parts.push(pick(emoji))
    else if (which < 0.77) parts.push(pick(odd))
    else if (which < 0.87) parts.push(pick(specials))
    else if (which < 0.95) parts.push(pick(hard))
    else parts.push(any())
  }
  return parts.join("")
}
