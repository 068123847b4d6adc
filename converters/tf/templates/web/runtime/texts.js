// The element type of text, which is an array of strings here and UTF-8 in the module.
const TEXT = "str";

/** Texts of the caller, or an array for texts. */
function checkedTexts(port, value, role) {
  if (!Array.isArray(value)) {
    const found = value?.constructor?.name ?? String(value);
    throw new ModelError("input", `${role} ${port.name} is an array of strings, and not ${found}`);
  }
  const at = role === "input" ? value.findIndex((text) => typeof text !== "string") : -1;
  if (at >= 0) {
    const what = `element ${at} is ${shown(value[at])}, and not a string`;
    throw new ModelError("input", `input ${port.name}: ${what}`);
  }
  return value;
}

/** Texts one after the other, and where each ends. */
function encoded(texts) {
  const encoder = new TextEncoder();
  const parts = texts.map((text) => encoder.encode(text));
  const ends = new Uint32Array(parts.length);
  let size = 0;
  parts.forEach((part, i) => {
    size += part.length;
    ends[i] = size;
  });
  const bytes = new Uint8Array(size);
  parts.forEach((part, i) => bytes.set(part, ends[i] - part.length));
  return { bytes, ends };
}

/** The texts that `encoded` has put together; a mark of the order of bytes belongs to its text. */
function decoded(bytes, ends) {
  const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  return Array.from(ends, (end, i) => decoder.decode(bytes.subarray(i ? ends[i - 1] : 0, end)));
}
