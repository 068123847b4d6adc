// Draws on a canvas, shrinks the drawing to the model's 8 x 8 pixels, and shows what it answers.

import { Mnist } from "./mnist/index.js";
import { shrunk } from "./shrunk.js";

const SIZE = 8;
const REPEATS = 50;
const element = (id) => document.getElementById(id);
const pad = element("pad");
const pen = pad.getContext("2d", { willReadFrequently: true });
const cursor = { x: pad.width / 2, y: pad.height / 2 };
let model;
let drawn = false;
let last;

const rows = Array.from({ length: 10 }, (_, digit) => {
  const row = document.createElement("li");
  row.innerHTML = `<span>${digit}</span><div class="track"><div class="bar"></div></div><span class="share"></span>`;
  element("shares").append(row);
  return row;
});

function show(shares) {
  const best = shares ? shares.indexOf(Math.max(...shares)) : -1;
  rows.forEach((row, digit) => {
    const share = shares ? shares[digit] : 0;
    row.classList.toggle("best", digit === best);
    row.querySelector(".bar").style.width = `${100 * share}%`;
    row.querySelector(".share").textContent = shares ? `${(100 * share).toFixed(1)} %` : "";
  });
  element("answer").textContent = shares
    ? `This looks like ${best} (${(100 * shares[best]).toFixed(0)} %).`
    : "Nothing is drawn yet.";
}

/** What is drawn, as the model has learned it. */
function image() {
  const { data, width, height } = pen.getImageData(0, 0, pad.width, pad.height);
  const ink = new Float32Array(width * height);
  for (let i = 0; i < ink.length; i++) ink[i] = data[4 * i + 3] / 255;
  return shrunk(ink, width, height, SIZE);
}

function read() {
  if (!model || !drawn) return;
  const pixels = image();
  const { digit } = model.predict({ image: pixels });
  show(digit);
  // A browser's clock is coarser than one prediction.
  const start = performance.now();
  for (let i = 0; i < REPEATS; i++) model.predict({ image: pixels });
  element("latency").textContent = `${(1000 * (performance.now() - start) / REPEATS).toFixed(0)} µs`;
}

function line(from, to) {
  pen.strokeStyle = getComputedStyle(document.body).color;
  pen.lineWidth = pad.width / 9;
  pen.lineCap = pen.lineJoin = "round";
  pen.beginPath();
  pen.moveTo(from.x, from.y);
  pen.lineTo(to.x, to.y);
  pen.stroke();
  drawn = true;
  read();
}

function clear() {
  pen.clearRect(0, 0, pad.width, pad.height);
  drawn = false;
  if (model) show(null);
}

function place(event) {
  const box = pad.getBoundingClientRect();
  return {
    x: (event.clientX - box.left) * pad.width / box.width,
    y: (event.clientY - box.top) * pad.height / box.height,
  };
}

pad.addEventListener("pointerdown", (event) => {
  pad.setPointerCapture(event.pointerId);
  last = place(event);
  line(last, last);
});
pad.addEventListener("pointermove", (event) => {
  if (!last) return;
  const next = place(event);
  line(last, next);
  last = next;
});
for (const end of ["pointerup", "pointercancel"]) {
  pad.addEventListener(end, () => { last = undefined; });
}
const STEPS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
pad.addEventListener("keydown", (event) => {
  if (event.key === "Delete" || event.key === "Backspace") clear();
  const step = STEPS[event.key];
  if (!step) return;
  event.preventDefault();
  const next = {
    x: Math.min(pad.width, Math.max(0, cursor.x + step[0] * pad.width / 24)),
    y: Math.min(pad.height, Math.max(0, cursor.y + step[1] * pad.height / 24)),
  };
  if (event.shiftKey) line(cursor, next);
  Object.assign(cursor, next);
  pad.setAttribute("aria-label", `Drawing area, at ${Math.round(24 * next.x / pad.width)}, ${Math.round(24 * next.y / pad.height)} of 24`);
});
element("clear").addEventListener("click", clear);

try {
  const start = performance.now();
  let bytes = 0;
  model = await Mnist.load({ onProgress: ({ loaded }) => { bytes = loaded; } });
  element("start").textContent = `${(performance.now() - start).toFixed(0)} ms`;
  element("bytes").textContent = bytes.toLocaleString("en");
  show(null);
  read();
} catch (err) {
  element("error").textContent = err.message;
  element("answer").textContent = "";
}
