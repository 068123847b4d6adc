// What the pages that listen share: the microphone with its button, and the picture of the last second.

import { element } from "./page.js";

const PERIOD = 250;
const wave = element("wave");
const pen = wave.getContext("2d");

/** Draws a sound: the lowest and the highest sample of each column. */
export function draw(samples) {
  pen.clearRect(0, 0, wave.width, wave.height);
  pen.fillStyle = getComputedStyle(document.body).color;
  const each = samples.length / wave.width;
  for (let x = 0; x < wave.width; x++) {
    const column = samples.subarray(Math.floor(x * each), Math.floor((x + 1) * each));
    const [low, high] = [Math.min(...column), Math.max(...column)];
    pen.fillRect(x, (1 - high) * wave.height / 2, 1, Math.max(1, (high - low) * wave.height / 2));
  }
}

/** Turns the microphone on and gives its last second to `hear`, again and again; returns what turns it off. */
async function microphone(rate, hear) {
  const constraints = { autoGainControl: false, echoCancellation: false, noiseSuppression: false };
  const stream = await navigator.mediaDevices.getUserMedia({ audio: constraints });
  const context = new AudioContext({ sampleRate: rate });
  const analyser = new AnalyserNode(context, { fftSize: 2 ** Math.ceil(Math.log2(rate)) });
  context.createMediaStreamSource(stream).connect(analyser);
  const heard = new Float32Array(analyser.fftSize);
  const timer = setInterval(() => {
    analyser.getFloatTimeDomainData(heard);
    hear(heard.subarray(heard.length - rate));
  }, PERIOD);
  return () => {
    clearInterval(timer);
    for (const track of stream.getTracks()) track.stop();
    context.close();
  };
}

/** Makes the button of the microphone work: `hear` gets a second of sound each time. */
export function listenBy(button, rate, hear) {
  let stop;
  button.disabled = false;
  button.addEventListener("click", async () => {
    element("error").textContent = "";
    if (stop) {
      stop();
      stop = undefined;
    } else {
      button.disabled = true;
      try {
        stop = await microphone(rate, hear);
      } catch (err) {
        element("error").textContent = `The microphone can't be used: ${err.message}`;
      }
      button.disabled = false;
    }
    button.textContent = stop ? "Turn the microphone off" : "Turn the microphone on";
  });
}
