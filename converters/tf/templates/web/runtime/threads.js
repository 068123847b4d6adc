// As many as a module has places for.
const MOST_THREADS = 16;
// More gain little: a small model's kernels are short.
const AUTO_THREADS = 4;
const PAGE = 65536;

/** Starts one more worker, if this is one: bundlers give its script no address of itself. */
let another;

/** Whether this script may import others as scripts do; those of modules may not. */
function isClassic() {
  try {
    importScripts();
    return true;
  } catch {
    return false;
  }
}

/** A worker of the package, in a page or in node. */
async function thread(files, { helps = false } = {}) {
  // A helper outside of a page must not keep the process alive, which each host is told in its way.
  const released = !helps || !NODE || typeof globalThis.Worker?.prototype.unref === "function";
  if (typeof Worker === "function" && released) {
    const worker = another ? another() : files.worker();
    return {
      post: (message) => worker.postMessage(message),
      listen: (heard, failed) => {
        worker.onmessage = ({ data }) => heard(data);
        worker.onerror = (event) => failed(event.message ?? "it can't be loaded");
      },
      release: () => worker.unref?.(),
      end: () => worker.terminate(),
    };
  }
  const { Worker: NodeWorker } = await nodeModule("worker_threads");
  const worker = new NodeWorker(new URL("./worker.js", files.base));
  return {
    post: (message) => worker.postMessage(message),
    listen: (heard, failed) => {
      worker.on("message", heard);
      worker.on("error", (err) => failed(err.message));
    },
    release: () => worker.unref(),
    end: () => void worker.terminate(),
  };
}

function canShare() {
  return typeof SharedArrayBuffer === "function" && globalThis.crossOriginIsolated !== false;
}

async function processors() {
  const told = globalThis.navigator?.hardwareConcurrency;
  if (told || !NODE) return told ?? 1;
  const { cpus } = await nodeModule("os");
  return cpus().length;
}

/** How many threads compute, the caller's among them. */
async function threadCount(wanted, files) {
  const known = Number.isInteger(wanted) && wanted >= 1 && wanted <= MOST_THREADS;
  if (wanted !== "auto" && !known) {
    throw new ModelError("input", `threads is "auto" or 1 to ${MOST_THREADS}, and not ${shown(wanted)}`);
  }
  if (wanted === 1) return 1;
  if (wanted === "auto") {
    return files.threads && canShare() ? Math.min(AUTO_THREADS, await processors()) : 1;
  }
  if (!files.threads) {
    throw new ModelError("unsupported", "this package has no module for threads; convert the model with --web_threads");
  }
  if (!canShare()) {
    throw new ModelError(
      "unsupported",
      "threads share memory, which a page may only if it is cross-origin isolated:"
        + " serve it with Cross-Origin-Opener-Policy: same-origin and Cross-Origin-Embedder-Policy: require-corp",
    );
  }
  return wanted;
}

/** Memory that threads share, of up to as much as the host grants. */
function sharedMemory(initial) {
  let why;
  for (let maximum = 2 ** 32 / PAGE; maximum >= initial; maximum /= 2) {
    try {
      return new WebAssembly.Memory({ initial, maximum, shared: true });
    } catch (err) {
      why = err;
    }
  }
  throw new ModelError("unsupported", `no memory for threads: ${why?.message}`, { cause: why });
}

/** Workers that help one model to compute. */
class Helpers {
  #threads = [];
  #started;
  count;
  /** Why one has stopped. */
  failed;

  /** Starts so many, which load their script meanwhile. */
  constructor(files, count) {
    this.count = count;
    this.#started = Promise.all(Array.from({ length: count }, () => this.#start(files)));
    // Whoever joins hears of it.
    this.#started.catch(() => {});
  }

  async #start(files) {
    const one = await thread(files, { helps: true });
    this.#threads.push(one);
    one.ready = new Promise((resolve, reject) => {
      const failed = (why) => {
        this.failed ??= why;
        reject(new Error(why));
      };
      one.listen((message) => (message.failed === undefined ? resolve() : failed(message.failed)), failed);
    });
    one.ready.catch(() => {});
  }

  /** Lends them to the model of an instance. */
  async join(module, memory, exports) {
    try {
      await this.#started;
      this.#threads.forEach((one, i) => {
        const stack = exports.thread_stack();
        if (!stack) throw new Error("there is no memory for its stack");
        one.post({ help: { module, memory, stack, index: i + 1 } });
      });
      await Promise.all(this.#threads.map((one) => one.ready));
    } catch (err) {
      throw new ModelError("unsupported", `a thread can't be started: ${err.message}`, { cause: err });
    }
    for (const one of this.#threads) one.release();
  }

  end() {
    const end = () => this.#threads.splice(0).forEach((one) => one.end());
    end();
    this.#started.then(end, end);
  }
}

/** Lends the calling worker to a model; returns only when it fails. */
async function help({ module, memory, stack, index }, port) {
  let exports;
  try {
    ({ exports } = await WebAssembly.instantiate(module, { env: { memory, wake() {} } }));
    exports.__stack_pointer.value = stack;
    const jobs = (exports.thread_jobs() >>> 0) / 4;
    const words = new Int32Array(memory.buffer);
    port.postMessage({ ready: true });
    for (;;) Atomics.wait(words, jobs, exports.thread_serve(index));
  } catch (err) {
    if (exports) {
      exports.__stack_pointer.value = stack;
      exports.thread_failed(index);
    }
    port.postMessage({ failed: err.message });
  }
}
