// What the pages that see share: the camera, a file, a picture that is dropped or pasted, and examples.

import { addExample, bars, element, load, showLatency } from "./page.js";

const PERIOD = 200;
// Why the browser gives no camera, by the name of its error.
const REFUSED = {
  NotAllowedError: "The camera was refused. Allow it beside the page's address, or open a picture.",
  NotFoundError: "There is no camera. Open a picture.",
  NotReadableError: "Another program has the camera. End that one, or open a picture.",
};

/**
 * Fills a page whose model sees pictures.
 *
 * @param {object} Model Class of a package, with the input `image` and the output `kind`.
 * @param {number} size Of the model's pictures, which are squares.
 * @param {string[]} kinds What the elements of `kind` are.
 * @param {Object<string, function(): OffscreenCanvas>} examples Label of a button -> what draws its picture.
 */
export async function look(Model, size, kinds, examples) {
  const showShares = bars(kinds, true);
  const pen = element("view").getContext("2d", { willReadFrequently: true });
  const camera = element("camera");
  const file = element("file");
  let stop;

  /** Draws the square in the middle of a picture as the model sees it, each time at half the size at most. */
  function shrink(picture, width, height) {
    let side = Math.min(width, height);
    let [from, left, top] = [picture, (width - side) / 2, (height - side) / 2];
    while (side > 2 * size) {
      const half = new OffscreenCanvas(Math.floor(side / 2), Math.floor(side / 2));
      half.getContext("2d").drawImage(from, left, top, side, side, 0, 0, half.width, half.height);
      [from, left, top, side] = [half, 0, 0, half.width];
    }
    pen.drawImage(from, left, top, side, side, 0, 0, size, size);
  }

  /** What the canvas shows: red, green and blue of each pixel, 0 to 1. */
  function image() {
    const { data } = pen.getImageData(0, 0, size, size);
    return Float32Array.from({ length: 3 * size * size }, (_, i) => data[4 * Math.floor(i / 3) + i % 3] / 255);
  }

  function see(model, picture, width, height) {
    shrink(picture, width, height);
    const { kind } = model.predict({ image: image() });
    const best = showShares(kind);
    element("answer").textContent = `This looks like ${kinds[best]} (${(100 * kind[best]).toFixed(0)} %).`;
  }

  /** Turns the camera on; returns what turns it off. */
  async function watched(model) {
    if (!navigator.mediaDevices) throw new Error("a page gets one from https or from this machine only");
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
      element("error").textContent = REFUSED[err.name] ?? `The camera can't be used: ${err.message}`;
    }
    camera.disabled = false;
  }

  async function open(model, [chosen]) {
    if (!chosen) return;
    element("error").textContent = "";
    turnOff();
    try {
      const picture = await createImageBitmap(chosen);
      see(model, picture, picture.width, picture.height);
      picture.close();
    } catch (err) {
      element("error").textContent = `${chosen.name} can't be read as a picture: ${err.message}`;
    }
  }

  const model = await load(Model);
  if (!model) return;
  for (const [label, draw] of Object.entries(examples)) {
    addExample(label, () => {
      element("error").textContent = "";
      turnOff();
      const picture = draw();
      see(model, picture, picture.width, picture.height);
    });
  }
  camera.disabled = file.disabled = false;
  camera.addEventListener("click", () => toggle(model));
  file.addEventListener("change", () => {
    open(model, [...file.files]);
    file.value = "";
  });
  document.addEventListener("dragover", (event) => event.preventDefault());
  document.addEventListener("drop", (event) => {
    event.preventDefault();
    open(model, event.dataTransfer.files);
  });
  document.addEventListener("paste", (event) => open(model, event.clipboardData.files));
  element("answer").textContent = "Nothing was seen yet.";
  const nothing = new Float32Array(3 * size * size);
  showLatency(() => model.predict({ image: nothing }));
}
