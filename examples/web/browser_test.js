// Runs in the page: compares every output with Keras', and tries what a page does with a model.

import { Mnist, ModelError } from "./mnist/index.js";

const { images, digits, tolerance } = await (await fetch("/features.json")).json();
const image = Float32Array.from(images);
const failures = [];
let checks = 0;

function check(right, what) {
  checks += 1;
  if (!right) failures.push(what);
}

function compare(what, found) {
  check(found.length === digits.length, `${what}: ${found.length} elements`);
  const worst = Math.max(...digits.map((value, i) => Math.abs(value - found[i])));
  check(worst <= tolerance, `${what}: differs by ${worst}`);
}

async function refused(code, run) {
  try {
    await run();
    check(false, `${code}: nothing was thrown`);
  } catch (err) {
    check(err instanceof ModelError && err.code === code, `${code}: ${err.stack}`);
  }
}

try {
  for (const simd of ["simd128", "relaxed"]) {
    let progress;
    const model = await Mnist.load({ simd, onProgress: (now) => { progress = now; } });
    check(progress.loaded === progress.total && progress.loaded > 0, `${simd}: progress`);
    compare(simd, model.predict({ image }).digit);
    const before = model.memoryBytes;
    const one = image.subarray(0, 64);
    for (let i = 0; i < 10_000; i++) model.predict({ image: one });
    check(model.memoryBytes === before, `${simd}: memory grew to ${model.memoryBytes}`);
    model.dispose();
    await refused("disposed", () => model.predict({ image }));
  }
  const worker = await Mnist.loadInWorker();
  compare("worker", (await worker.predict({ image })).digit);
  worker.dispose();

  const bytes = new Uint8Array(await (await fetch("/mnist/mnist.wasm")).arrayBuffer());
  await refused("module", () => Mnist.load({ wasm: bytes.subarray(0, bytes.length / 2) }));
  await refused("fetch", () => Mnist.load({ wasm: "/mnist/nothing.wasm" }));
  const { validate } = WebAssembly;
  WebAssembly.validate = () => false;
  await refused("unsupported", () => Mnist.load());
  WebAssembly.validate = validate;

  // The demo in its own page: a stroke gives an answer.
  const frame = document.createElement("iframe");
  frame.style.cssText = "width: 400px; height: 900px";
  frame.src = "/";
  document.body.append(frame);
  await new Promise((resolve) => { frame.onload = resolve; });
  const page = frame.contentDocument;
  for (let i = 0; i < 100 && !page.getElementById("start").textContent.endsWith("ms"); i++) {
    await new Promise((resolve) => { setTimeout(resolve, 100); });
  }
  const pad = page.getElementById("pad");
  const press = (key, shiftKey) => pad.dispatchEvent(
    new frame.contentWindow.KeyboardEvent("keydown", { key, shiftKey, bubbles: true }));
  for (let i = 0; i < 8; i++) press("ArrowUp", false);
  for (let i = 0; i < 16; i++) press("ArrowDown", true);
  const answer = page.getElementById("answer").textContent;
  check(/looks like 1 /.test(answer), `an upright stroke: ${answer}`);
  check(page.querySelectorAll("li.best").length === 1, "one row is the best");
} catch (err) {
  failures.push(err.stack);
}
await fetch("/result", { method: "POST", body: JSON.stringify({ checks, failures }) });
