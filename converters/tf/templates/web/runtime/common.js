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
  return typeof value === "string" ? JSON.stringify(value.slice(0, 80)) : String(value).slice(0, 80);
}
