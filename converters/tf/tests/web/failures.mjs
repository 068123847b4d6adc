// Every failure of a package is a ModelError with a sentence, and leaves other models as they are.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { pathToFileURL } from "node:url";
import { runInNewContext } from "node:vm";
import { gzipSync } from "node:zlib";

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
const nameless = Object.create(null);
for (const load of [Net.load, Net.loadInWorker]) {
  await fails("input", /the options are an object, and not Null/, () => load(null));
  await fails("input", /"thread" unknown; there are onProgress, simd/, () => load({ thread: 2 }));
  await fails("input", /onProgress is a function, and not true/, () => load({ onProgress: true }));
  await fails("input", /simd is .*, and not Object/, () => load({ simd: nameless }));
  await fails("input", /threads is .*, and not NaN/, () => load({ threads: NaN }));
  await fails("input", /an address or its bytes, and not Object/, () => load({ wasm: nameless }));
  await fails("input", /an address or its bytes, and not NaN/, () => load({ wasm: NaN }));
}

// Progress ends at the total, which is 0 where nobody knows it: a server tells the length of what it sends.
const server = createServer((request, response) => {
  const packed = request.url === "/packed";
  if (packed) response.setHeader("Content-Encoding", "gzip");
  response.end(packed ? gzipSync(bytes) : bytes);
});
await new Promise((listens) => { server.listen(0, "127.0.0.1", listens); });
const { port: number } = server.address();
for (const [wasm, whole] of [["packed", false], ["plain", true]]) {
  let last;
  const onProgress = (now) => { last = now; };
  await Net.load({ wasm: `http://127.0.0.1:${number}/${wasm}`, onProgress });
  assert.deepEqual(last, { loaded: bytes.length, total: whole ? bytes.length : 0 });
}
server.closeAllConnections();
server.close();
for (const options of [{}, { weights }, { weights: from("file/web/net.weights") }]) {
  const seen = [];
  await InFile.load({ ...options, onProgress: (now) => seen.push(now) });
  const { loaded, total } = seen.at(-1);
  assert.ok(loaded === total && total > weights.length, `${loaded} of ${total}`);
}

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
  [/an object with/, good[port.name]],
  [/an object with/, [1, 2]],
  [/Float32Array, and not Object/, { [port.name]: nameless }],
  [/Float32Array, and not Symbol/, { [port.name]: Symbol("x") }],
  [/Float32Array, and not Number/, { [port.name]: NaN }],
  [/element 1 is "a", and not a number/, { [port.name]: [0, "a"] }],
  [/element 0 is undefined,/, { [port.name]: new Array(port.elements) }],
  [/element 0 is Null, and not a number/, { [port.name]: [null] }],
  [/is a Float32Array, and not Object/, { [port.name]: { length: port.elements, [Symbol.iterator]() {} } }],
];
const away = new Float32Array(port.elements);
structuredClone(away, { transfer: [away.buffer] });
wrong.push([/was given away/, { [port.name]: away }]);
for (const [pattern, inputs] of wrong) {
  await fails("input", pattern, async () => model.predict(inputs));
}
// Objects of another realm, as of a page's frame.
const elsewhere = (code) => runInNewContext(code, { values: good[port.name], bytes });
assert.deepEqual(model.predict({ [port.name]: elsewhere("new Float32Array(values)") }), expected);
const wanted = (await Net.load({ wasm: bytes })).predict(good);
for (const code of ["new Uint8Array(bytes).buffer", "new WebAssembly.Module(new Uint8Array(bytes))"]) {
  assert.deepEqual((await Net.load({ wasm: elsewhere(code) })).predict(good), wanted);
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
await fails("input", /count: element 0 is 1, and not a bigint/, async () =>
  types.predict({ ...mixed, count: [1, 2, 3] }));
await fails("input", /element 2 is 9223372036854775808, which i64 can't hold/, async () =>
  types.predict({ ...mixed, count: [1n, 2n, 1n << 63n] }));
await fails("input", /row has 2 elements/, async () => types.predict({ ...mixed, row: [1, 2] }));
await fails("input", /keep has 6 elements/, async () =>
  types.predict({ ...mixed, keep: new Uint8Array(6) }));

// Disposed.
model.dispose();
model.dispose();
await fails("disposed", /load it again/, async () => model.predict(good));
const worker = await Net.loadInWorker();
await fails("input", /missing/, () => worker.predict({}));
await fails("input", /can't be sent to a worker/, () => worker.predict({ [port.name]: () => 1 }));
assert.deepEqual(await worker.predict(good), expected);
worker.dispose();
await fails("disposed", /load it again/, () => worker.predict(good));
await fails("module", /another model's/, () =>
  Net.loadInWorker({ wasm: from("types/web/net.wasm") }));

// A page may not start a worker of another origin, such as of a package that comes from elsewhere.
globalThis.Worker = class {
  constructor() {
    throw new DOMException("as in a test", "SecurityError");
  }
};
await fails("unsupported", /a worker can't be started: as in a test/, () => Net.loadInWorker());
