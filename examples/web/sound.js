// Hears the last second of the microphone, or a sound that the page makes, and shows what it is.

import { bars, element, load, showLatency } from "./page.js";
import { Sounds } from "./sounds/index.js";
import { RATE, TONES } from "./tones.js";

// As `train_sounds.py` orders them.
const KINDS = ["silence", "noise", "claps", "a steady tone", "a rising tone", "a falling tone"];
const PERIOD = 250;
const showShares = bars(KINDS, true);
const wave = element("wave");
const pen = wave.getContext("2d");
const listen = element("listen");
let stop;

/** Draws a sound: the lowest and the highest sample of each column. */
function draw(samples) {
  pen.clearRect(0, 0, wave.width, wave.height);
  pen.fillStyle = getComputedStyle(document.body).color;
  const each = samples.length / wave.width;
  for (let x = 0; x < wave.width; x++) {
    const column = samples.subarray(Math.floor(x * each), Math.floor((x + 1) * each));
    const [low, high] = [Math.min(...column), Math.max(...column)];
    pen.fillRect(x, (1 - high) * wave.height / 2, 1, Math.max(1, (high - low) * wave.height / 2));
  }
}

function hear(model, samples) {
  draw(samples);
  const { kind } = model.predict({ samples });
  const best = showShares(kind);
  element("answer").textContent = `This sounds like ${KINDS[best]} (${(100 * kind[best]).toFixed(0)} %).`;
}

/** Turns the microphone on; returns what turns it off. */
async function microphone(model) {
  const constraints = { autoGainControl: false, echoCancellation: false, noiseSuppression: false };
  const stream = await navigator.mediaDevices.getUserMedia({ audio: constraints });
  const context = new AudioContext({ sampleRate: RATE });
  const analyser = new AnalyserNode(context, { fftSize: 8192 });
  context.createMediaStreamSource(stream).connect(analyser);
  const heard = new Float32Array(analyser.fftSize);
  const timer = setInterval(() => {
    analyser.getFloatTimeDomainData(heard);
    hear(model, heard.subarray(heard.length - RATE));
  }, PERIOD);
  return () => {
    clearInterval(timer);
    for (const track of stream.getTracks()) track.stop();
    context.close();
  };
}

async function toggle(model) {
  element("error").textContent = "";
  if (stop) {
    stop();
    stop = undefined;
  } else {
    try {
      stop = await microphone(model);
    } catch (err) {
      element("error").textContent = `The microphone can't be used: ${err.message}`;
    }
  }
  listen.textContent = stop ? "Turn the microphone off" : "Turn the microphone on";
}

const model = await load(Sounds);
if (model) {
  for (const [label, make] of Object.entries(TONES)) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = label;
    button.addEventListener("click", () => hear(model, make()));
    element("examples").append(button);
  }
  listen.disabled = false;
  listen.addEventListener("click", () => toggle(model));
  element("answer").textContent = "Nothing was heard yet.";
  const silence = TONES.Silence();
  showLatency(() => model.predict({ samples: silence }));
}
