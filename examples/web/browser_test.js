// Runs in the page: compares every output with Keras', and tries what a page does with a model.

import { Mnist, ModelError } from "./mnist/index.js";
import { Shapes } from "./shapes/index.js";
import { Sounds } from "./sounds/index.js";
import { Things } from "./things/index.js";
import { Words } from "./words/index.js";

const features = await (await fetch("/features.json")).json();
const { images, digits, samples, kinds, spoken, words, pictures, shapes, drawings, things, tolerance, dark } = features;
const image = Float32Array.from(images);
const failures = [];
let checks = 0;

function check(right, what) {
  checks += 1;
  if (!right) failures.push(what);
}

/** Tells the test what comes next, so that it knows where a page that says nothing more stands. */
async function stage(what) {
  await fetch("/stage", { method: "POST", body: JSON.stringify(what) });
}

function compare(what, found, expected = digits, most = tolerance) {
  check(found.length === expected.length, `${what}: ${found.length} elements`);
  const worst = Math.max(...expected.map((value, i) => Math.abs(value - found[i])));
  check(worst <= most, `${what}: differs by ${worst}`);
}

async function refused(code, run) {
  try {
    await run();
    check(false, `${code}: nothing was thrown`);
  } catch (err) {
    check(err instanceof ModelError && err.code === code, `${code}: ${err.stack}`);
  }
}

const later = (milliseconds) => new Promise((resolve) => { setTimeout(resolve, milliseconds); });

// Less than the test allows a stage, so that what did not come is named.
const LIMIT = 120_000;
// Of each thing that the page of drawings draws, and how many of all may be taken for another thing.
const [DRAWINGS, WRONG] = [8, 2];

/** Waits until something is so; on a machine that has other work, that may take minutes. */
async function until(so, what) {
  for (const end = performance.now() + LIMIT; !so() && performance.now() < end;) await later(100);
  check(so(), what);
}

/** How far two colors are apart, from 1 to 21. Source: WCAG 2.2, "contrast ratio". */
function contrast(...colors) {
  const [low, high] = colors.map((color) => {
    const [r, g, b] = color.match(/[\d.]+/g).map((part) => {
      const light = part / 255;
      return light <= 0.04045 ? light / 12.92 : ((light + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  }).sort((a, b) => a - b);
  return (high + 0.05) / (low + 0.05);
}

/** A page fits on a small phone, and can be read in the mode that the browser asks for. */
function checkLook(page, address) {
  const { scrollWidth, clientWidth } = page.documentElement;
  check(scrollWidth <= clientWidth, `${address} is ${scrollWidth} wide on a screen of ${clientWidth}`);
  const style = (selector) => page.defaultView.getComputedStyle(page.querySelector(selector));
  const { backgroundColor } = style("body");
  const isDark = contrast(backgroundColor, "rgb(0, 0, 0)") < contrast(backgroundColor, "rgb(255, 255, 255)");
  check(isDark === dark && matchMedia("(prefers-color-scheme: dark)").matches === dark, `${address}: ${backgroundColor}`);
  for (const selector of ["body", "button", "nav a", "nav [aria-current]", ".share"]) {
    const found = contrast(style(selector).color, backgroundColor);
    check(found >= 4.5, `${address}: the contrast of ${selector} is ${found}`);
  }
}

/** What gives a page a picture, and what it says of one that can't be read. */
function giving(page) {
  const { ClipboardEvent, DataTransfer, DragEvent, Event, File } = page.defaultView;
  const files = (bytes, name) => {
    const chosen = new DataTransfer();
    chosen.items.add(new File([bytes], name));
    return chosen;
  };
  return {
    opens(bytes, name) {
      page.getElementById("file").files = files(bytes, name).files;
      page.getElementById("file").dispatchEvent(new Event("change"));
    },
    drops(bytes, name) {
      page.body.dispatchEvent(new DragEvent("drop", { dataTransfer: files(bytes, name), bubbles: true }));
    },
    pastes(bytes, name) {
      page.body.dispatchEvent(new ClipboardEvent("paste", { clipboardData: files(bytes, name), bubbles: true }));
    },
    failed: () => page.getElementById("error").textContent,
  };
}

/** Opens a page of the demos and waits until its model is there. */
async function opened(address) {
  const frame = document.createElement("iframe");
  frame.style.cssText = "width: 320px; height: 900px";
  frame.allow = "camera; microphone";
  frame.src = address;
  document.body.append(frame);
  await new Promise((resolve) => { frame.onload = resolve; });
  const page = frame.contentDocument;
  await until(() => page.getElementById("start").textContent.endsWith("ms"), `${address} loads`);
  checkLook(page, address);
  return page;
}

try {
  for (const simd of ["simd128", "relaxed"]) {
    await stage(`the build ${simd}`);
    let progress;
    const model = await Mnist.load({ simd, threads: 1, onProgress: (now) => { progress = now; } });
    check(progress.loaded === progress.total && progress.loaded > 0, `${simd}: progress`);
    compare(simd, model.predict({ image }).digit);
    const before = model.memoryBytes;
    const one = image.subarray(0, 64);
    for (let i = 0; i < 10_000; i++) model.predict({ image: one });
    check(model.memoryBytes === before, `${simd}: memory grew to ${model.memoryBytes}`);
    model.dispose();
    await refused("disposed", () => model.predict({ image }));
  }
  await stage("a worker");
  const worker = await Mnist.loadInWorker();
  compare("worker", (await worker.predict({ image })).digit);
  worker.dispose();

  // Two threads where the page is isolated, and one elsewhere.
  const isolated = globalThis.crossOriginIsolated;
  const threads = isolated ? 2 : "auto";
  await stage("threads");
  const many = new Float32Array(10 * image.length).map((_, i) => image[i % image.length]);
  const alone = await Mnist.load({ threads: 1 });
  const helped = await Mnist.load({ threads });
  const expected = alone.predict({ image: many }).digit;
  const same = (found) => found.every((value, i) => Math.abs(value - expected[i]) <= tolerance);
  check(alone.threads === 1 && helped.threads === (isolated ? 2 : 1), `${helped.threads} threads`);
  check(same(helped.predict({ image: many }).digit), "threads: other outputs");
  compare("threads", helped.predict({ image }).digit);
  const before = helped.memoryBytes;
  for (let i = 0; i < 100; i++) helped.predict({ image: many });
  check(helped.memoryBytes === before, `threads: memory grew to ${helped.memoryBytes}`);
  helped.dispose();
  await refused("disposed", () => helped.predict({ image }));
  await stage("threads in a worker");
  const helpedWorker = await Mnist.loadInWorker({ threads });
  check(helpedWorker.threads === (isolated ? 2 : 1), `${helpedWorker.threads} threads in a worker`);
  check(same((await helpedWorker.predict({ image: many })).digit), "threads in a worker: other outputs");
  helpedWorker.dispose();
  const bundled = await (await import("/bundled/index.js")).Mnist.loadInWorker({ threads });
  check(bundled.threads === (isolated ? 2 : 1), `${bundled.threads} threads in a bundled worker`);
  check(same((await bundled.predict({ image: many })).digit), "threads in a bundled worker: other outputs");
  bundled.dispose();
  await refused(isolated ? "input" : "unsupported", () => Mnist.load({ threads: isolated ? 17 : 2 }));

  await stage("what must fail");
  const bytes = new Uint8Array(await (await fetch("/mnist/mnist.wasm")).arrayBuffer());
  await refused("module", () => Mnist.load({ wasm: bytes.subarray(0, bytes.length / 2) }));
  await refused("fetch", () => Mnist.load({ wasm: "/mnist/nothing.wasm" }));
  const { validate } = WebAssembly;
  WebAssembly.validate = () => false;
  await refused("unsupported", () => Mnist.load());
  WebAssembly.validate = validate;

  await stage("the other models");
  const sounds = await Sounds.load();
  compare("sounds", sounds.predict({ samples: Float32Array.from(samples) }).kind, kinds);
  sounds.dispose();

  const hearing = await Words.load();
  compare("words", hearing.predict({ samples: Float32Array.from(spoken) }).kind, words);
  hearing.dispose();

  const seeing = await Shapes.load();
  compare("shapes", seeing.predict({ image: Float32Array.from(pictures) }).kind, shapes);
  seeing.dispose();

  const naming = await Things.load();
  const names = naming.predict({ image: Float32Array.from(drawings) }).kind;
  compare("things", names, things, features.rounded);
  naming.dispose();

  await stage("the page of digits");
  const digit = await opened("/");
  const shown = Number(digit.getElementById("threads").textContent);
  check(shown === (isolated ? Math.min(4, navigator.hardwareConcurrency) : 1), `the page shows ${shown} threads`);
  const pad = digit.getElementById("pad");
  const press = (key, shiftKey) => pad.dispatchEvent(
    new digit.defaultView.KeyboardEvent("keydown", { key, shiftKey, bubbles: true }));
  for (let i = 0; i < 8; i++) press("ArrowUp", false);
  for (let i = 0; i < 16; i++) press("ArrowDown", true);
  const answer = digit.getElementById("answer").textContent;
  check(/looks like 1 /.test(answer), `an upright stroke: ${answer}`);
  check(digit.querySelectorAll("li.best").length === 1, "one row is the best");

  await stage("the page of sounds");
  const sound = await opened("/sound.html");
  const heard = () => sound.getElementById("answer").textContent;
  for (const button of sound.querySelectorAll("#examples button")) {
    button.click();
    const kind = button.textContent.toLowerCase();
    check(heard().includes(kind), `${kind}: ${heard()}`);
  }
  // The browser's microphone is a file of tones that rise, and a word.
  sound.getElementById("examples").firstChild.click();
  sound.getElementById("listen").click();
  await until(() => heard().includes("rising tone"), `the microphone: ${heard()}`);
  sound.getElementById("listen").click();

  await stage("the page of words");
  const word = await opened("/word.html");
  const said = () => word.getElementById("answer").textContent;
  for (const button of word.querySelectorAll("#examples button")) {
    button.click();
    const kind = `like ${button.textContent} (`;
    await until(() => said().replaceAll(/[“”]/g, "").includes(kind), `${button.textContent}: ${said()}`);
  }
  word.getElementById("examples").firstChild.click();
  await until(() => said().includes("like no word"), `no word: ${said()}`);
  word.getElementById("listen").click();
  await until(() => said().includes("“yes”"), `the microphone: ${said()}`);
  word.getElementById("listen").click();

  await stage("the page of shapes");
  const shape = await opened("/shape.html");
  const seen = () => shape.getElementById("answer").textContent;
  for (const button of shape.querySelectorAll("#examples button")) {
    button.click();
    const kind = button.textContent.toLowerCase();
    check(seen().includes(`a ${kind} `), `${kind}: ${seen()}`);
  }
  const { opens, drops, pastes, failed } = giving(shape);
  opens("a text", "notes.txt");
  await until(() => /notes.txt can't be read/.test(failed()), `a text: ${failed()}`);
  opens(await (await fetch("/triangle.bmp")).arrayBuffer(), "triangle.bmp");
  await until(() => seen().includes("a triangle "), `a file: ${seen()}`);
  check(failed() === "", failed());
  // The browser's camera is a file of a star, and then of a house.
  shape.getElementById("camera").click();
  await until(() => seen().includes("a star "), `the camera: ${seen()}`);
  shape.getElementById("camera").click();
  const { mediaDevices } = shape.defaultView.navigator;
  mediaDevices.getUserMedia = async () => { throw new DOMException("Permission denied", "NotAllowedError"); };
  shape.getElementById("camera").click();
  await until(() => /was refused. Allow it /.test(failed()), `no camera: ${failed()}`);
  const square = await (await fetch("/square.bmp")).blob();
  drops(square, "square.bmp");
  await until(() => seen().includes("a square "), `a file that was dropped: ${seen()}`);
  check(failed() === "", failed());
  pastes(await (await fetch("/triangle.bmp")).blob(), "triangle.bmp");
  await until(() => seen().includes("a triangle "), `a picture that was pasted: ${seen()}`);

  await stage("the page of drawings");
  const thing = await opened("/thing.html");
  const named = () => thing.getElementById("answer").textContent;
  const wrong = [];
  for (const button of thing.querySelectorAll("#examples button")) {
    for (let i = 0; i < DRAWINGS; i++) {
      button.click();
      if (!named().includes(` ${button.textContent.toLowerCase()} (`)) wrong.push(`${button.textContent} ${i}: ${named()}`);
    }
  }
  check(wrong.length <= WRONG, wrong.join("; "));
  giving(thing).opens(await (await fetch("/rocket.bmp")).blob(), "rocket.bmp");
  await until(() => named().includes("a rocket "), `a file: ${named()}`);
  thing.getElementById("camera").click();
  await until(() => named().includes("a house "), `the camera: ${named()}`);
  thing.getElementById("camera").click();
} catch (err) {
  failures.push(err.stack);
}
await fetch("/result", { method: "POST", body: JSON.stringify({ checks, failures, isolated: globalThis.crossOriginIsolated }) });
