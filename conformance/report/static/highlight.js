// A small highlighter for what compilers write: Python and Triton, C++, PTX. Everything becomes text nodes in spans.
const WORDS = {
  python: new Set(("def class return if elif else for while in is not and or import from as with try except finally raise lambda pass None True " +
    "False global nonlocal yield assert del async await break continue").split(" ")),
  cpp: new Set(("void const int float double char auto bool long short unsigned signed struct template typename class return if else for while do " +
    "switch case break continue namespace using static inline extern constexpr nullptr true false new delete sizeof public private half " +
    "int64_t int32_t uint8_t int8_t").split(" ")),
  ptx: new Set("ld st mov add sub mul mad fma cvt setp bra ret bar mma wgmma ldmatrix cp shfl min max div rcp ex2 and or xor shl shr selp".split(" ")),
};
const TOKENS = {
  python: /("""[\s\S]*?(?:"""|$)|'''[\s\S]*?(?:'''|$)|"(?:\\.|[^"\\\n])*"?|'(?:\\.|[^'\\\n])*'?)|(#[^\n]*)|(@[\w.]+)|(\b\d[\w.]*\b)|([A-Za-z_]\w*)(?:(?=(\s*\())|)/g,
  cpp: /("(?:\\.|[^"\\\n])*"?)|(\/\/[^\n]*|\/\*[\s\S]*?(?:\*\/|$))|(^[ \t]*#[^\n]*)|(\b\d[\w.]*\b)|([A-Za-z_]\w*)(?:(?=(\s*\())|)/gm,
  ptx: /("[^"\n]*"?)|(\/\/[^\n]*)|(^[ \t]*\.\w+)|(\b\d[\w.]*\b)|([A-Za-z_]\w*)(?:(?=(\s*\())|)/gm,
};
const CLASSES = ["t-s", "t-c", "t-d", "t-n"];
const HIGHLIGHT_MOST = 300_000;

function languageOf(name, text) {
  const start = text.slice(0, 20_000);
  if (/^\s*\.version|^\s*\.target/m.test(start)) return "ptx";
  if (/^\s*(def|class|import|from)\s|@triton|torch\.ops/m.test(start)) return "python";
  if (/^\s*#include|extern "C"|\btemplate\s*</m.test(start)) return "cpp";
  return /graph|guard/.test(name) ? "python" : "";
}

function highlight(text, language) {
  const pre = h("pre", {"data-language": language || "text"});
  if (!language || text.length > HIGHLIGHT_MOST) { pre.textContent = text; return pre; }
  let end = 0;
  for (const token of text.matchAll(TOKENS[language])) {
    let kind = CLASSES.find((_, k) => token[k + 1] !== undefined) ?? "";
    if (!kind && WORDS[language].has(token[5])) kind = "t-k";
    else if (!kind && token[6] !== undefined) kind = "t-f";
    if (!kind) continue;
    if (token.index > end) pre.append(text.slice(end, token.index));
    pre.append(h("span", {class: kind}, token[0]));
    end = token.index + token[0].length;
  }
  pre.append(text.slice(end));
  return pre;
}
