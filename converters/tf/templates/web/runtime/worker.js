class Remote {
  #thread;
  #calls = new Map();
  #next = 0;
  #onProgress;
  /** How many compute. */
  threads = 1;

  static async load(files, options) {
    const { onProgress, ...others } = options;
    for (const key of ["wasm", "weights"]) {
      if (kindOf(others[key]) === "URL") others[key] = others[key].href;
    }
    const remote = new Remote();
    remote.#onProgress = onProgress;
    try {
      remote.#thread = await thread(files);
    } catch (err) {
      throw new ModelError("unsupported", `a worker can't be started: ${err.message}`, { cause: err });
    }
    remote.#thread.listen(
      (message) => remote.#heard(message),
      (why) => remote.#end(new ModelError("run", `the worker stopped: ${why}`)),
    );
    try {
      remote.threads = await remote.#send({ load: others });
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
      try {
        this.#thread.post({ id, ...what });
      } catch (err) {
        reject(new ModelError("input", `this can't be sent to a worker: ${err.message}`, { cause: err }));
        return;
      }
      this.#calls.set(id, { resolve, reject });
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

/** Answers the messages of `Remote`, or helps a model, in a worker. */
async function serve(Model) {
  const port = typeof self === "object" && typeof self.postMessage === "function"
    ? self
    : (await nodeModule("worker_threads")).parentPort;
  if (!NODE) {
    const { href } = globalThis.location;
    another = () => new Worker(href, { type: isClassic() ? "classic" : "module" });
  }
  let model;
  const answer = async ({ id, load, predict, help: lent }) => {
    try {
      if (lent) {
        await help(lent, port);
      } else if (load) {
        const onProgress = (progress) => port.postMessage({ progress });
        model = await Model.load({ ...load, onProgress });
        port.postMessage({ id, result: model.threads });
      } else {
        const result = model.predict(predict);
        port.postMessage({ id, result }, Object.values(result).filter(ArrayBuffer.isView).map((array) => array.buffer));
      }
    } catch (err) {
      port.postMessage({ id, error: { code: err.code ?? "run", message: err.message } });
    }
  };
  if (port === globalThis.self) port.onmessage = ({ data }) => answer(data);
  else port.on("message", answer);
}
