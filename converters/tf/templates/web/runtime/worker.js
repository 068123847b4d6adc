/** A thread that serves a model, in a page or in node. */
async function thread(files) {
  if (typeof Worker === "function") {
    const worker = files.worker();
    return {
      post: (message) => worker.postMessage(message),
      listen: (heard, failed) => {
        worker.onmessage = ({ data }) => heard(data);
        worker.onerror = (event) => failed(event.message ?? "it can't be loaded");
      },
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
    end: () => void worker.terminate(),
  };
}

class Remote {
  #thread;
  #calls = new Map();
  #next = 0;
  #onProgress;

  static async load(files, options) {
    const { onProgress, ...others } = options;
    for (const key of ["wasm", "weights"]) {
      if (others[key] instanceof URL) others[key] = others[key].href;
    }
    const remote = new Remote();
    remote.#onProgress = onProgress;
    remote.#thread = await thread(files);
    remote.#thread.listen(
      (message) => remote.#heard(message),
      (why) => remote.#end(new ModelError("run", `the worker stopped: ${why}`)),
    );
    try {
      await remote.#send({ load: others });
    } catch (err) {
      remote.#end(err);
      throw err;
    }
    return remote;
  }

  predict(inputs) {
    return this.#send({ predict: inputs });
  }

  dispose() {
    this.#end(new ModelError("disposed", "the model was disposed; load it again"));
  }

  #send(what) {
    return new Promise((resolve, reject) => {
      if (!this.#thread) {
        reject(new ModelError("disposed", "the model was disposed; load it again"));
        return;
      }
      const id = this.#next++;
      this.#calls.set(id, { resolve, reject });
      this.#thread.post({ id, ...what });
    });
  }

  #heard({ id, progress, result, error }) {
    if (progress) {
      this.#onProgress?.(progress);
      return;
    }
    const call = this.#calls.get(id);
    this.#calls.delete(id);
    if (error) call?.reject(new ModelError(error.code, error.message));
    else call?.resolve(result);
  }

  #end(err) {
    this.#thread?.end();
    this.#thread = null;
    for (const { reject } of this.#calls.values()) reject(err);
    this.#calls.clear();
  }
}

/** Answers the messages of `Remote`, in a worker. */
async function serve(Model) {
  const port = typeof self === "object" && typeof self.postMessage === "function"
    ? self
    : (await nodeModule("worker_threads")).parentPort;
  let model;
  const answer = async ({ id, load, predict }) => {
    try {
      if (load) {
        const onProgress = (progress) => port.postMessage({ progress });
        model = await Model.load({ ...load, onProgress });
        port.postMessage({ id });
      } else {
        const result = model.predict(predict);
        port.postMessage({ id, result }, Object.values(result).map((array) => array.buffer));
      }
    } catch (err) {
      port.postMessage({ id, error: { code: err.code ?? "run", message: err.message } });
    }
  };
  if (port === globalThis.self) port.onmessage = ({ data }) => answer(data);
  else port.on("message", answer);
}
