// A package with threads: what one thread computes, flat memory, and failures that end nothing else.

import assert from "node:assert/strict";
import { cp, readFile, writeFile } from "node:fs/promises";
import { cpus } from "node:os";
import { pathToFileURL } from "node:url";

const root = pathToFileURL(`${process.argv[2]}/`);
const from = (path) => new URL(path, root);
const { Net } = await import(from("threads/web/index.js"));
const { Net: Plain } = await import(from("plain/web/index.js"));

async function fails(code, pattern, run) {
  await assert.rejects(run, (err) => {
    assert.ok(err instanceof Error && err.name === "ModelError", `${err.stack}`);
    assert.equal(err.code, code, err.message);
    assert.match(err.message, pattern);
    return true;
  });
}

let seed = 1;
const number = () => {
  seed = (seed * 16807) % 2147483647;
  return (seed % 2000) / 1000 - 1;
};
const inputs = (batch, ports = Net.inputs) => Object.fromEntries(ports.map(({ name, elements }) =>
  [name, Float32Array.from({ length: elements * batch }, number)]));

/** Another number of threads may add in another order; with the same one, all bits are the same. */
function close(found, expected) {
  for (const [name, wanted] of Object.entries(expected)) {
    assert.equal(found[name].length, wanted.length);
    wanted.forEach((value, i) => {
      const off = Math.abs(value - found[name][i]);
      assert.ok(off <= 1e-5 * (1 + Math.abs(value)), `${name}[${i}] is off by ${off}`);
    });
  }
}

// For every build, number of threads and number of examples.
for (const simd of ["simd128", "auto"]) {
  const alone = await Net.load({ simd, threads: 1 });
  for (const threads of [2, 3]) {
    const model = await Net.load({ simd, threads });
    assert.deepEqual([model.threads, alone.threads], [threads, 1]);
    for (const batch of [1, 2, 5]) {
      const given = inputs(batch);
      const found = model.predict(given);
      close(found, alone.predict(given));
      for (let i = 0; i < 20; i++) assert.deepEqual(model.predict(given), found);
    }
    model.dispose();
    await fails("disposed", /load it again/, async () => model.predict(inputs(1)));
  }
}

// As many as there are processors, up to four; one where memory can't be shared.
const automatic = await Net.load();
assert.equal(automatic.threads, Math.min(4, cpus().length));
automatic.dispose();
globalThis.crossOriginIsolated = false;
const apart = await Net.load();
assert.equal(apart.threads, 1);
await fails("unsupported", /cross-origin isolated/, () => Net.load({ threads: 2 }));
delete globalThis.crossOriginIsolated;
const { SharedArrayBuffer: Shared } = globalThis;
delete globalThis.SharedArrayBuffer;
assert.equal((await Net.load()).threads, 1);
globalThis.SharedArrayBuffer = Shared;
for (const threads of [0, 17, 1.5, "2", null]) {
  await fails("input", /"auto" or 1 to 16/, () => Net.load({ threads }));
}
await fails("unsupported", /--web_threads/, () => Plain.load({ threads: 2 }));
assert.equal((await Plain.load()).threads, 1);
// A module of one thread at another address.
const single = await readFile(from("threads/web/net.wasm"));
await fails("unsupported", /one thread/, () => Net.load({ threads: 2, wasm: single }));
assert.equal((await Net.load({ wasm: single })).threads, 1);
await fails("module", /another model's/, () =>
  Net.load({ threads: 2, wasm: from("plain/web/net.wasm") }));

// Weights in a file.
const { Net: InFile } = await import(from("file/web/index.js"));
const given = inputs(1);
const inFile = await InFile.load({ threads: 2 });
close(inFile.predict(given), apart.predict(given));
inFile.dispose();
const weights = await readFile(from("file/web/net.weights"));
weights[weights.length >> 1] ^= 16;
await fails("weights", /./, () => InFile.load({ threads: 2, weights }));

// In a worker.
const worker = await Net.loadInWorker({ threads: 2 });
assert.equal(worker.threads, 2);
close(await worker.predict(given), apart.predict(given));
await fails("input", /missing/, () => worker.predict({}));
worker.dispose();

// Memory is flat, and errors in the input are none of the model.
const model = await Net.load({ threads: 2 });
const expected = model.predict(given);
const before = model.memoryBytes;
for (let i = 0; i < 10_000; i++) model.predict(given);
assert.equal(model.memoryBytes, before);
await fails("input", /missing/, async () => model.predict({}));
assert.deepEqual(model.predict(given), expected);

// A worker that traps ends its model with a sentence, and no other.
const broken = `
  const { instantiate } = WebAssembly;
  WebAssembly.instantiate = async (...all) => {
    const { exports } = await instantiate(...all);
    let sets = 0;
    const __stack_pointer = { set value(end) { exports.__stack_pointer.value = sets++ ? end : 16; } };
    return { exports: { ...exports, __stack_pointer } };
  };
`;
await cp(from("threads"), from("broken"), { recursive: true });
await writeFile(from("broken/web/worker.js"), `${broken}${await readFile(from("threads/web/worker.js"))}`);
const { Net: Broken } = await import(from("broken/web/index.js"));
const short = await Broken.load({ threads: 2 });
await fails("run", /a thread of the model stopped/, async () => {
  for (;;) {
    short.predict(given);
    await new Promise((resolve) => { setTimeout(resolve, 1); });
  }
});
await fails("disposed", /load it again/, async () => short.predict(given));
assert.deepEqual(model.predict(given), expected);

// A worker that can't be loaded: an error if threads were asked for, else one thread.
await writeFile(from("broken/web/worker.js"), "throw new Error('as in a test');\n");
await fails("unsupported", /can't be started: as in a test/, () => Broken.load({ threads: 2 }));
const without = await Broken.load();
assert.equal(without.threads, 1);
assert.deepEqual(without.predict(given), apart.predict(given));
// The threads of models that are not disposed keep no process alive: this one ends.
