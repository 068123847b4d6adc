// Draws on a canvas, shrinks the drawing to the model's 8 x 8 pixels, and shows what it answers.

import { Mnist } from "./mnist/index.js";
import { bars, element, load, showLatency } from "./page.js";
import { shrunk } from "./shrunk.js";

const SIZE = 8;
const pad = element("pad");
const pen = pad.getContext("2d", { willReadFrequently: true });
const cursor = { x: pad.width / 2, y: pad.height / 2 };
let model;
let drawn = false;
let last;

const showShares = bars(Array.from({ length: 10 }, (_, digit) => String(digit)));

function show(shares) {
  const best = showShares(shares);
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
  showLatency(() => model.predict({ image: pixels }));
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

model = await load(Mnist);
if (model) {
  show(null);
  read();
}
