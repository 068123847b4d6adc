// Every failure of a package is a ModelError with a sentence, and leaves other models as they are.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { pathToFileURL } from "node:url";

const root = pathToFileURL(`${process.argv[2]}/`);
const from = (path) => new URL(path, root);
const { Net, ModelError } = await import(from("net/web/index.js"));
const { Net: InFile } = await import(from("file/web/index.js"));
const { Net: Types } = await import(from("types/web/index.js"));

async function fails(code, pattern, run) {
  await assert.rejects(run, (err) => {
    assert.ok(err instanceof Error && err.name === "ModelError", `${err.stack}`);
    assert.equal(err.code, code, err.message);
    assert.match(err.message, pattern);
    return true;
  });
}

const bytes = await readFile(from("net/web/net.wasm"));
const weights = await readFile(from("file/web/net.weights"));
const [port] = Net.inputs;
const good = { [port.name]: new Float32Array(port.elements).fill(0.5) };

// Loading.
await fails("module", /damaged/, () => Net.load({ wasm: bytes.subarray(0, 5000) }));
await fails("module", /damaged/, () => Net.load({ wasm: new ArrayBuffer(0) }));
await fails("module", /another model's/, () => Net.load({ wasm: from("types/web/net.wasm") }));
const foreign = Uint8Array.from([0, 97, 115, 109, 1, 0, 0, 0]);
await fails("module", /another model's/, () => Net.load({ wasm: foreign }));
await fails("fetch", /can't be fetched/, () => Net.load({ wasm: from("nowhere.wasm") }));
await fails("input", /simd is/, () => Net.load({ simd: "sse" }));
await fails("weights", /./, () => InFile.load({ weights: weights.subarray(0, 100) }));
await fails("weights", /./, () => InFile.load({ weights: new Uint8Array(0) }));
const flipped = Uint8Array.from(weights);
flipped[weights.length >> 1] ^= 16;
await fails("weights", /./, () => InFile.load({ weights: flipped }));
await fails("fetch", /can't be fetched/, () => InFile.load({ weights: from("nowhere") }));
assert.throws(() => new Net(), ModelError);

// A browser without SIMD, or without WebAssembly.
const { validate } = WebAssembly;
WebAssembly.validate = () => false;
await fails("unsupported", /Chrome 91/, () => Net.load());
WebAssembly.validate = validate;

// Calls.
const model = await Net.load();
const expected = model.predict(good);
const wrong = [
  [/an object with/, undefined],
  [/an object with/, null],
  [/missing/, {}],
  [/"other" unknown/, { ...good, other: 1 }],
  [/Float32Array, and not Float64Array/, { [port.name]: new Float64Array(port.elements) }],
  [/Float32Array, and not Object/, { [port.name]: { length: NaN } }],
  [/Float32Array, and not String/, { [port.name]: "0.5" }],
  [/a multiple of/, { [port.name]: new Float32Array(port.elements + 1) }],
];
for (const [pattern, inputs] of wrong) {
  await fails("input", pattern, async () => model.predict(inputs));
}
await fails("input", /arrays for the outputs/, async () => model.predictInto(good));
await fails("input", /missing/, async () => model.predictInto(good, {}));
const [out] = Net.outputs;
await fails("input", new RegExp(`output ${out.name} has 1 elements`), async () =>
  model.predictInto(good, { ...expected, [out.name]: new Float32Array(1) }));
assert.deepEqual(model.predict(good), expected);

// Plain arrays and any number of examples, none among them.
assert.deepEqual(model.predict({ [port.name]: Array.from(good[port.name]) }), expected);
assert.equal(model.predict({ [port.name]: new Float32Array(0) })[out.name].length, 0);
const many = model.predict({ [port.name]: new Float32Array(7 * port.elements).fill(0.5) });
assert.equal(many[out.name].length, 7 * expected[out.name].length);
// Other numbers of examples are added up in another order.
many[out.name].slice(-expected[out.name].length).forEach((value, i) =>
  assert.ok(Math.abs(value - expected[out.name][i]) <= 1e-6, `${value}`));

// Memory is flat, a model too large for it is a sentence, and others live on.
const before = model.memoryBytes;
for (let i = 0; i < 10_000; i++) model.predict(good);
assert.equal(model.memoryBytes, before);
const other = await Net.load();
await fails("run", /memory/, async () =>
  other.predict({ [port.name]: new Float32Array((1 << 27) * port.elements / 64 * 8) }));
assert.deepEqual(model.predict(good), expected);

// Booleans that are other bytes than 0 and 1; numbers of another kind.
const types = await Types.load();
const mixed = {
  type: [1, 2, 3], count: [1n, 2n, 3n], keep: Uint8Array.of(0, 255, 2), row: [7, 8, 9],
};
const { chosen, twice } = types.predict(mixed);
assert.deepEqual([...chosen], [7, 2, 3]);
assert.deepEqual([...twice], [2n, 4n, 6n]);
await fails("input", /count/, async () => types.predict({ ...mixed, count: [1, 2, 3] }));
await fails("input", /row has 2 elements/, async () => types.predict({ ...mixed, row: [1, 2] }));
await fails("input", /keep has 6 elements/, async () =>
  types.predict({ ...mixed, keep: new Uint8Array(6) }));

// Disposed.
model.dispose();
model.dispose();
await fails("disposed", /load it again/, async () => model.predict(good));
const worker = await Net.loadInWorker();
await fails("input", /missing/, () => worker.predict({}));
assert.deepEqual(await worker.predict(good), expected);
worker.dispose();
await fails("disposed", /load it again/, () => worker.predict(good));
await fails("module", /another model's/, () =>
  Net.loadInWorker({ wasm: from("types/web/net.wasm") }));
