// Loads a model that tf2rust compiled to WebAssembly, and calls it.

// Keeps bundlers from looking for modules of node.
const NODE = typeof process === "object" && process.versions?.node !== undefined;
const nodeModule = (name) => import(/* webpackIgnore: true */ /* @vite-ignore */ `node:${name}`);

/** Why a model can't be loaded or used; the message is a sentence for its reader. */
class ModelError extends Error {
  constructor(code, message, options) {
    super(message, options);
    this.name = "ModelError";
    this.code = code;
  }
}

function shown(value) {
  if (typeof value === "string") return JSON.stringify(value.slice(0, 80));
  return typeof value === "object" || typeof value === "function" ? kindOf(value) : String(value).slice(0, 80);
}

/** The name of what a value is, in any realm: a page's frames have classes of their own. */
function kindOf(value) {
  return Object.prototype.toString.call(value).slice(8, -1);
}

const OPTIONS = ["onProgress", "simd", "threads", "wasm", "weights"];

function checkOptions(options) {
  if (typeof options !== "object" || options === null) {
    throw new ModelError("input", `the options are an object, and not ${shown(options)}`);
  }
  const unknown = Object.keys(options).filter((name) => !OPTIONS.includes(name));
  if (unknown.length) {
    throw new ModelError("input", `options: ${unknown.map(shown).join(", ")} unknown; there are ${OPTIONS.join(", ")}`);
  }
  const { onProgress } = options;
  if (onProgress !== undefined && typeof onProgress !== "function") {
    throw new ModelError("input", `onProgress is a function, and not ${shown(onProgress)}`);
  }
}
