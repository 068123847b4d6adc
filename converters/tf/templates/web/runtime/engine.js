const ARRAYS = {
  bool: Uint8Array,
  f32: Float32Array,
  f64: Float64Array,
  i8: Int8Array,
  i16: Int16Array,
  i32: Int32Array,
  i64: BigInt64Array,
  u8: Uint8Array,
  u16: Uint16Array,
  u32: Uint32Array,
  u64: BigUint64Array,
};

// The smallest modules with an instruction of SIMD and of relaxed SIMD.
const HEAD = [0, 97, 115, 109, 1, 0, 0, 0, 1, 5, 1, 96, 0, 1, 123, 3, 2, 1, 0];
const SIMD = [...HEAD, 10, 8, 1, 6, 0, 65, 0, 253, 15, 11];
const RELAXED = [...HEAD, 10, 15, 1, 13, 0, 65, 0, 253, 15, 65, 0, 253, 15, 253, 128, 2, 11];

function supports(bytes) {
  return typeof WebAssembly === "object" && WebAssembly.validate(new Uint8Array(bytes));
}

/** The build to take. */
function build(wanted = "auto") {
  if (!["auto", "simd128", "relaxed"].includes(wanted)) {
    throw new ModelError("input", `simd is "auto", "simd128" or "relaxed", and not ${shown(wanted)}`);
  }
  if (!supports(SIMD)) {
    throw new ModelError(
      "unsupported",
      "this browser has no SIMD in WebAssembly: Chrome 91, Firefox 89, Safari 16.4 or a newer one is needed",
    );
  }
  const relaxed = supports(RELAXED);
  if (wanted === "relaxed" && !relaxed) {
    throw new ModelError("unsupported", "this browser has no relaxed SIMD in WebAssembly");
  }
  return wanted === "simd128" || !relaxed ? "simd" : "relaxed";
}

/** Fetches bytes, saying how many of how many have come. */
async function fetched(address, progress) {
  try {
    const url = new URL(address, globalThis.location?.href);
    if (NODE && url.protocol === "file:") {
      const { readFile } = await nodeModule("fs/promises");
      const bytes = await readFile(url);
      progress(bytes.length, bytes.length);
      return bytes;
    }
    const response = await fetch(url);
    if (!response.ok) throw new Error(`the server says ${response.status}`);
    // The length is that of what is sent, and bytes that are compressed become more.
    const whole = !response.headers.get("content-encoding");
    const total = whole && Number(response.headers.get("content-length")) || 0;
    const parts = [];
    let loaded = 0;
    for (let reader = response.body.getReader(); ;) {
      const { done, value } = await reader.read();
      if (done) break;
      parts.push(value);
      loaded += value.length;
      progress(loaded, total);
    }
    const bytes = new Uint8Array(loaded);
    let at = 0;
    for (const part of parts) {
      bytes.set(part, at);
      at += part.length;
    }
    return bytes;
  } catch (err) {
    throw new ModelError("fetch", `${address} can't be fetched: ${err.message}`, { cause: err });
  }
}

async function bytesOf(source, progress) {
  const given = ["ArrayBuffer", "SharedArrayBuffer"].includes(kindOf(source));
  if (given || ArrayBuffer.isView(source)) {
    const bytes = given ? new Uint8Array(source) : new Uint8Array(source.buffer, source.byteOffset, source.byteLength);
    progress(bytes.length, bytes.length);
    return bytes;
  }
  if (typeof source !== "string" && kindOf(source) !== "URL") {
    throw new ModelError("input", `a file is an address or its bytes, and not ${shown(source)}`);
  }
  return fetched(String(source), progress);
}

/** Adds up the progress of files, whose bytes may be known; 0 stands for those that are not. */
function counter(onProgress, known) {
  const loaded = known.map(() => 0);
  const totals = [...known];
  const sum = (numbers) => numbers.reduce((a, b) => a + b, 0);
  return (file) => (now, told) => {
    loaded[file] = now;
    totals[file] ||= told;
    if (now > totals[file]) totals[file] = 0;
    onProgress?.({ loaded: sum(loaded), total: totals.includes(0) ? 0 : sum(totals) });
  };
}

async function compiled(source, progress) {
  if (kindOf(source) === "WebAssembly.Module") return source;
  const bytes = await bytesOf(source, progress);
  try {
    return await WebAssembly.compile(bytes);
  } catch (err) {
    const what = `the module of ${bytes.length} bytes is damaged or none: ${err.message}`;
    throw new ModelError("module", what, { cause: err });
  }
}

// Asks an array itself, so that no name that an object gives itself counts.
const arrayName = Object.getOwnPropertyDescriptor(Object.getPrototypeOf(Uint8Array.prototype), Symbol.toStringTag).get;

/** A plain array as one of a type, which must be able to hold its elements. */
function typed(Kind, port, values) {
  if (port.dtype === "bool") return Kind.from(values, Boolean);
  const kind = ["i64", "u64"].includes(port.dtype) ? "bigint" : "number";
  const exact = !port.dtype.startsWith("f");
  const array = new Kind(values.length);
  for (const [i, value] of values.entries()) {
    if (typeof value === kind) array[i] = value;
    const held = !exact || array[i] === value;
    const why = typeof value !== kind ? `and not a ${kind}` : !held && `which ${port.dtype} can't hold`;
    if (why) throw new ModelError("input", `input ${port.name}: element ${i} is ${shown(value)}, ${why}`);
  }
  return array;
}

/** Whether a buffer was given away, such as to a worker: its arrays are empty then. */
function detached(buffer) {
  try {
    new Uint8Array(buffer);
    return false;
  } catch {
    return true;
  }
}

/** An array of the caller for a port: whole examples. */
function checked(port, value, role) {
  if (port.dtype === TEXT) return checkedTexts(port, value, role);
  const Kind = ARRAYS[port.dtype];
  const array = Array.isArray(value) && role === "input" ? typed(Kind, port, value) : value;
  const found = arrayName.call(array);
  if (found !== Kind.name) {
    throw new ModelError("input", `${role} ${port.name} is a ${Kind.name}, and not ${found ?? kindOf(array)}`);
  }
  if (array.length === 0 && detached(array.buffer)) {
    throw new ModelError("input", `${role} ${port.name} was given away, such as to a worker, and is empty now`);
  }
  return array;
}

function wrongLength(port, role, found, batch) {
  const shape = port.shape.join(", ");
  const wanted = batch === undefined
    ? `a multiple of ${port.elements}`
    : `${port.elements * (port.fixed ? 1 : batch)}`;
  return new ModelError(
    "input",
    `${role} ${port.name} has ${found} elements; its shape [${shape}] needs ${wanted}`,
  );
}

function checkNames(ports, values, role) {
  if (typeof values !== "object" || values === null || Array.isArray(values) || ArrayBuffer.isView(values)) {
    throw new ModelError("input", `the ${role}s are an object with ${ports.map((p) => p.name).join(", ")}`);
  }
  const known = ports.map((p) => p.name);
  const missing = known.filter((name) => values[name] === undefined);
  const extra = Object.keys(values).filter((name) => !known.includes(name));
  if (missing.length || extra.length) {
    const parts = [
      missing.length ? `${missing.join(", ")} missing` : "",
      extra.length ? `${extra.map(shown).join(", ")} unknown` : "",
    ];
    throw new ModelError("input", `${role}s: ${parts.filter(Boolean).join("; ")}`);
  }
}

function foreign() {
  return new ModelError("module", "the module is another model's; load the files of one package");
}

/** Starts a module, alone or on memory that it shares with helpers. */
async function instance(module, pages) {
  const imports = WebAssembly.Module.imports(module).map(({ name }) => name).sort().join();
  if (imports !== "" && imports !== "memory,wake") throw foreign();
  const memory = imports ? sharedMemory(pages) : undefined;
  let jobs;
  const wake = () => Atomics.notify(jobs.words, jobs.index);
  try {
    const { exports } = await WebAssembly.instantiate(module, imports ? { env: { memory, wake } } : {});
    if (memory && exports.thread_jobs) {
      jobs = { words: new Int32Array(memory.buffer), index: (exports.thread_jobs() >>> 0) / 4 };
    }
    return { exports, memory: memory ?? exports.memory, shared: imports !== "" };
  } catch (err) {
    throw new ModelError("module", `the module can't be started: ${err.message}`, { cause: err });
  }
}

/** One instance of a module: a model with memory of its own. */
class Engine {
  #exports;
  #memory;
  #interface;
  #helpers;
  #views = new Map();

  constructor(description, { exports, memory }, helpers) {
    this.#interface = description;
    this.#exports = exports;
    this.#memory = memory;
    this.#helpers = helpers;
  }

  static async load(description, files, options) {
    const { threads = "auto" } = options;
    const chosen = build(options.simd);
    const count = await threadCount(threads, files);
    const helpers = count > 1 ? new Helpers(files, count - 1) : undefined;
    try {
      return await Engine.#loaded(description, files, options, { chosen, helpers });
    } catch (err) {
      helpers?.end();
      const alone = helpers && threads === "auto" && err.code === "unsupported";
      if (alone) return Engine.load(description, files, { ...options, threads: 1 });
      throw err;
    }
  }

  static async #loaded(description, files, options, { chosen, helpers }) {
    const name = helpers ? { simd: "threads", relaxed: "threads-relaxed" }[chosen] : chosen;
    const known = [options.wasm ? 0 : files.bytes[name]];
    if (files.weights) known.push(options.weights ? 0 : files.bytes.weights);
    const count = counter(options.onProgress, known);
    const [module, weights] = await Promise.all([
      compiled(options.wasm ?? files[name], count(0)),
      files.weights ? bytesOf(options.weights ?? files.weights, count(1)) : null,
    ]);
    const started = await instance(module, files.pages);
    const { exports, memory, shared } = started;
    if (exports.model_id?.() >>> 0 !== description.id) throw foreign();
    if (helpers && !shared) throw new ModelError("unsupported", "the module computes with one thread");
    const engine = new Engine(description, started, helpers);
    if (weights) {
      const place = engine.#call(() => exports.model_weights(weights.length));
      if (!place) throw new ModelError("weights", engine.#text());
      new Uint8Array(memory.buffer, place >>> 0, weights.length).set(weights);
    }
    if (shared) engine.#call(() => exports.model_threads(engine.threads));
    if (engine.#call(() => exports.model_start())) {
      throw new ModelError("weights", engine.#text());
    }
    await helpers?.join(module, memory, exports);
    return engine;
  }

  get threads() {
    return 1 + (this.#helpers?.count ?? 0);
  }

  get memoryBytes() {
    return this.#memory?.buffer.byteLength ?? 0;
  }

  dispose() {
    this.#helpers?.end();
    this.#exports = null;
    this.#memory = null;
    this.#views.clear();
  }

  /** Computes; `outputs` are arrays of the caller, or nothing. */
  predict(inputs, outputs) {
    const exports = this.#exports;
    if (!exports) throw new ModelError("disposed", "the model was disposed; load it again");
    if (this.#helpers?.failed !== undefined) throw this.#stopped(new Error(this.#helpers.failed));
    const ports = this.#interface;
    checkNames(ports.inputs, inputs, "input");
    const arrays = ports.inputs.map((port) => checked(port, inputs[port.name], "input"));
    const batch = this.#batch(arrays);
    if (outputs !== undefined) this.#checkOutputs(outputs, batch);
    ports.inputs.forEach((port, i) => {
      if (port.dtype === TEXT) {
        this.#giveTexts(i, arrays[i]);
        return;
      }
      const place = this.#call(() => exports.model_input(i, arrays[i].length));
      if (!place) throw new ModelError("run", this.#text());
      this.#view(`in${i}`, port, place, arrays[i].length).set(arrays[i]);
    });
    if (this.#call(() => exports.model_run(batch))) throw new ModelError("run", this.#text());
    const result = outputs ?? {};
    ports.outputs.forEach((port, i) => {
      const length = port.elements * (port.fixed ? 1 : batch);
      if (port.dtype === TEXT) {
        const texts = this.#takenTexts(i, length);
        if (outputs) texts.forEach((text, at) => (result[port.name][at] = text));
        else result[port.name] = texts;
        return;
      }
      const view = this.#view(`out${i}`, port, exports.model_output(i), length);
      if (outputs) result[port.name].set(view);
      else result[port.name] = view.slice();
    });
    return result;
  }

  /** Writes the texts of an input. */
  #giveTexts(index, texts) {
    const { model_input: room, model_ends: roomOfEnds } = this.#exports;
    const { bytes, ends } = encoded(texts);
    for (const [array, make] of [[bytes, room], [ends, roomOfEnds]]) {
      const place = this.#call(() => make(index, array.length));
      if (!place) throw new ModelError("run", this.#text());
      new array.constructor(this.#memory.buffer, place >>> 0, array.length).set(array);
    }
  }

  /** Reads the texts of an output: copies, because browsers decode no memory that is shared. */
  #takenTexts(index, length) {
    const { model_output: place, model_output_ends: placeOfEnds } = this.#exports;
    const { buffer } = this.#memory;
    const ends = new Uint32Array(buffer, placeOfEnds(index) >>> 0, length).slice();
    const size = length ? ends[length - 1] : 0;
    return decoded(new Uint8Array(buffer, place(index) >>> 0, size).slice(), ends);
  }

  #batch(arrays) {
    let batch;
    this.#interface.inputs.forEach((port, i) => {
      const { length } = arrays[i];
      if (!port.fixed && batch === undefined) {
        if (length % port.elements) throw wrongLength(port, "input", length);
        batch = length / port.elements;
      }
    });
    batch ??= 1;
    this.#interface.inputs.forEach((port, i) => {
      if (arrays[i].length !== port.elements * (port.fixed ? 1 : batch)) {
        throw wrongLength(port, "input", arrays[i].length, batch);
      }
    });
    return batch;
  }

  #checkOutputs(outputs, batch) {
    checkNames(this.#interface.outputs, outputs, "output");
    for (const port of this.#interface.outputs) {
      const { length } = checked(port, outputs[port.name], "output");
      if (length !== port.elements * (port.fixed ? 1 : batch)) {
        throw wrongLength(port, "output", length, batch);
      }
    }
  }

  /** A view of memory, made anew only where memory has moved. */
  #view(key, port, address, length) {
    const place = address >>> 0;
    const { buffer } = this.#memory;
    const known = this.#views.get(key);
    if (known?.buffer === buffer && known.byteOffset === place && known.length === length) return known;
    const view = new ARRAYS[port.dtype](buffer, place, length);
    this.#views.set(key, view);
    return view;
  }

  /** Calls the module; after a trap its memory can't be trusted, so the model is gone. */
  #call(run) {
    try {
      return run();
    } catch (err) {
      throw this.#stopped(err);
    }
  }

  #stopped(err) {
    const of = this.#helpers?.failed !== undefined || this.#exports?.model_broken?.() ? "a thread of the model" : "the model";
    this.dispose();
    const what = `${of} stopped (${err.message}), most likely for lack of memory; load it again`;
    return new ModelError("run", what, { cause: err });
  }

  #text() {
    const { model_error: place, model_error_len: length } = this.#exports;
    // A copy, because browsers decode no memory that is shared.
    const bytes = new Uint8Array(this.#memory.buffer, place() >>> 0, length()).slice();
    return new TextDecoder().decode(bytes);
  }
}
