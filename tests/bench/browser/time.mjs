// Times a model in node: `node time.mjs FOLDER PEERS THREADS MODE WHO...`.
//
// MODE is `first`: prints the milliseconds from before the implementation is imported until its
// first result is there; or `rounds=N,seconds=S`: all implementations take turns in this process.
// Prints JSON.

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const [folder, peers, count, mode, ...who] = process.argv.slice(2);
const threads = Number(count);
const facts = JSON.parse(readFileSync(join(folder, "facts.json")));
const bytes = (name) => readFileSync(join(folder, name));
const array = (name, Type) => new Type(new Uint8Array(bytes(name)).buffer);
const input = array("input.bin", facts.dtype === "int32" ? Int32Array : Float32Array);
const expected = array("expected.bin", Float32Array);
const require = createRequire(join(peers, "node_modules/"));

const loaders = {
  async ours() {
    const { Bench } = await import(pathToFileURL(join(folder, "web/index.js")));
    const model = await Bench.load({ threads });
    const given = { [Bench.inputs[0].name]: input };
    const [{ name }] = Bench.outputs;
    return async () => model.predict(given)[name];
  },
  async "onnxruntime-web"() {
    const ort = require("onnxruntime-web");
    ort.env.wasm.numThreads = threads;
    const session = await ort.InferenceSession.create(new Uint8Array(bytes("model.onnx")));
    const given = { [session.inputNames[0]]: new ort.Tensor(facts.dtype, input, facts.shape) };
    const [name] = session.outputNames;
    return async () => (await session.run(given))[name].data;
  },
  async tfjs() {
    const tf = require("@tensorflow/tfjs-core");
    const { loadGraphModel } = require("@tensorflow/tfjs-converter");
    const { setWasmPaths, setThreadsCount } = require("@tensorflow/tfjs-backend-wasm");
    setWasmPaths(join(peers, "node_modules/@tensorflow/tfjs-backend-wasm/dist/"));
    setThreadsCount(threads);
    await tf.setBackend("wasm");
    const { modelTopology, weightSpecs, ...names } = JSON.parse(bytes("tfjs.json"));
    const weightData = new Uint8Array(bytes("tfjs.bin")).buffer;
    const model = await loadGraphModel(tf.io.fromMemory({ modelTopology, weightSpecs, weightData }));
    const given = { [names.input]: tf.tensor(input, facts.shape, facts.dtype) };
    const taken = (output) => {
      const data = output.dataSync();
      output.dispose();
      return data;
    };
    try {
      model.execute(given, names.output).dispose();
    } catch {
      // Loops need the other form, which is slower.
      return async () => taken(await model.executeAsync(given, names.output));
    }
    return async () => taken(model.execute(given, names.output));
  },
};

/** Returns the largest difference from what Keras computed. */
function difference(found) {
  if (found.length !== expected.length) throw new Error(`${found.length} elements`);
  return expected.reduce((worst, value, i) => Math.max(worst, Math.abs(value - found[i])), 0);
}

async function first(name) {
  const start = performance.now();
  const run = await loaders[name]();
  const found = await run();
  return { milliseconds: performance.now() - start, difference: difference(found) };
}

async function turns(names, rounds, seconds) {
  const result = {};
  const ready = [];
  for (const name of names) {
    try {
      const run = await loaders[name]();
      result[name] = { difference: difference(await run()), seconds: [] };
      ready.push([name, run, await calls(run, seconds)]);
    } catch (error) {
      result[name] = { fails: String(error.message ?? error).split("\n")[0] };
    }
  }
  for (let round = 0; round < rounds; round++) {
    for (const [name, run, count] of ready) {
      const start = performance.now();
      for (let call = 0; call < count; call++) await run();
      result[name].seconds.push((performance.now() - start) / count / 1000);
    }
  }
  return result;
}

/** Returns how many calls fill a round. */
async function calls(run, seconds) {
  for (let count = 1; ; count *= 4) {
    const start = performance.now();
    for (let call = 0; call < count; call++) await run();
    const took = (performance.now() - start) / 1000;
    if (took >= seconds / 4) return Math.max(1, Math.round((count * seconds) / took));
  }
}

const found = /^rounds=(\d+),seconds=([\d.]+)$/.exec(mode);
const told = found ? await turns(who, Number(found[1]), Number(found[2])) : await first(who[0]);
console.log(JSON.stringify(told));
process.exit(0);
