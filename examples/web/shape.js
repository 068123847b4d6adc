// Sees the middle of the camera's picture, of a file, or of a shape that the page draws, and shows what it is.

import { drawShape, SHAPES } from "./drawn.js";
import { addExample, bars, element, load, showLatency } from "./page.js";
import { Shapes } from "./shapes/index.js";

const SIZE = 64;
// As `train_shapes.py` orders them.
const KINDS = ["no shape", "a circle", "a triangle", "a square", "a star", "a cross"];
const PERIOD = 200;
const showShares = bars(KINDS, true);
const view = element("view");
const pen = view.getContext("2d", { willReadFrequently: true });
const camera = element("camera");
let stop;

/** Draws the square in the middle of a picture as the model sees it, each time at half the size at most. */
function shrink(picture, width, height) {
  let side = Math.min(width, height);
  let [from, left, top] = [picture, (width - side) / 2, (height - side) / 2];
  while (side > 2 * SIZE) {
    const half = new OffscreenCanvas(Math.floor(side / 2), Math.floor(side / 2));
    half.getContext("2d").drawImage(from, left, top, side, side, 0, 0, half.width, half.height);
    [from, left, top, side] = [half, 0, 0, half.width];
  }
  pen.drawImage(from, left, top, side, side, 0, 0, SIZE, SIZE);
}

/** What the canvas shows: red, green and blue of each pixel, 0 to 1. */
function image() {
  const { data } = pen.getImageData(0, 0, SIZE, SIZE);
  return Float32Array.from({ length: 3 * SIZE * SIZE }, (_, i) => data[4 * Math.floor(i / 3) + i % 3] / 255);
}

function see(model, picture, width, height) {
  shrink(picture, width, height);
  const { kind } = model.predict({ image: image() });
  const best = showShares(kind);
  element("answer").textContent = `This looks like ${KINDS[best]} (${(100 * kind[best]).toFixed(0)} %).`;
}

/** Turns the camera on; returns what turns it off. */
async function watched(model) {
  const stream = await navigator.mediaDevices.getUserMedia({ video: { facingMode: "environment" } });
  const video = document.createElement("video");
  video.muted = video.playsInline = true;
  video.srcObject = stream;
  await video.play();
  const timer = setInterval(() => see(model, video, video.videoWidth, video.videoHeight), PERIOD);
  return () => {
    clearInterval(timer);
    for (const track of stream.getTracks()) track.stop();
  };
}

function turnOff() {
  stop?.();
  stop = undefined;
  camera.textContent = "Turn the camera on";
}

async function toggle(model) {
  element("error").textContent = "";
  if (stop) {
    turnOff();
    return;
  }
  camera.disabled = true;
  try {
    stop = await watched(model);
    camera.textContent = "Turn the camera off";
  } catch (err) {
    element("error").textContent = `The camera can't be used: ${err.message}`;
  }
  camera.disabled = false;
}

async function open(model, file) {
  element("error").textContent = "";
  turnOff();
  try {
    const picture = await createImageBitmap(file);
    see(model, picture, picture.width, picture.height);
    picture.close();
  } catch (err) {
    element("error").textContent = `${file.name} can't be read as a picture: ${err.message}`;
  }
}

const model = await load(Shapes);
if (model) {
  for (const label of Object.keys(SHAPES)) {
    addExample(label, () => {
      turnOff();
      const picture = drawShape(label);
      see(model, picture, picture.width, picture.height);
    });
  }
  camera.disabled = false;
  camera.addEventListener("click", () => toggle(model));
  const file = element("file");
  file.disabled = false;
  file.addEventListener("change", () => {
    if (file.files.length) open(model, file.files[0]);
    file.value = "";
  });
  element("answer").textContent = "Nothing was seen yet.";
  const nothing = new Float32Array(3 * SIZE * SIZE);
  showLatency(() => model.predict({ image: nothing }));
}
