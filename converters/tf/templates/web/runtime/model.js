/** The class of a model. */
function define(description, files) {
  const secret = Symbol("load");
  const guard = (key) => {
    if (key !== secret) {
      throw new ModelError("input", `${description.type} is made by ${description.type}.load()`);
    }
  };

  class ModelWorker {
    #remote;
    constructor(key, remote) {
      guard(key);
      this.#remote = remote;
    }
    get threads() {
      return this.#remote.threads;
    }
    predict(inputs) {
      return this.#remote.predict(inputs);
    }
    dispose() {
      this.#remote.dispose();
    }
  }

  return class Model {
    static inputs = Object.freeze(description.inputs.map(Object.freeze));
    static outputs = Object.freeze(description.outputs.map(Object.freeze));

    #engine;
    constructor(key, engine) {
      guard(key);
      this.#engine = engine;
    }

    static async load(options = {}) {
      checkOptions(options);
      return new Model(secret, await Engine.load(description, files, options));
    }

    static async loadInWorker(options = {}) {
      checkOptions(options);
      return new ModelWorker(secret, await Remote.load(files, options));
    }

    get threads() {
      return this.#engine.threads;
    }

    get memoryBytes() {
      return this.#engine.memoryBytes;
    }

    predict(inputs) {
      return this.#engine.predict(inputs);
    }

    predictInto(inputs, outputs) {
      if (outputs === undefined) throw new ModelError("input", "predictInto needs arrays for the outputs");
      this.#engine.predict(inputs, outputs);
    }

    dispose() {
      this.#engine.dispose();
    }
  };
}

export { ModelError, define, serve };
