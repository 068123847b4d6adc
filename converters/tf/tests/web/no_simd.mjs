// An engine without SIMD: every way to load a model is a sentence.

import assert from "node:assert/strict";
import { pathToFileURL } from "node:url";

const { Net, ModelError } = await import(new URL("net/web/index.js", pathToFileURL(`${process.argv[2]}/`)));

for (const simd of ["auto", "simd128", "relaxed"]) {
  for (const load of [Net.load, Net.loadInWorker]) {
    await assert.rejects(() => load({ simd }), (err) =>
      err instanceof ModelError && err.code === "unsupported" && /no SIMD in WebAssembly: Chrome 91/.test(err.message));
  }
}
