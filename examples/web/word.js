// Hears the last second of the microphone, or a word that a program spoke, and shows which word it is.

import { draw, listenBy } from "./listen.js";
import { addExample, bars, element, load, showLatency } from "./page.js";
import { Words } from "./words/index.js";

const RATE = 16000;
// As `train_words.py` orders them; the first two are none of the words.
const KINDS = ["no word", "another word", "yes", "no", "up", "down", "left", "right", "go", "stop"];
// Below it, a word is not named: only the bars show it.
const SURE = 0.6;
const showShares = bars(KINDS, true);

/** Shows the shares of a sound. What was said last stays until another word is said. */
function hear(model, samples, always) {
  draw(samples);
  const { kind } = model.predict({ samples });
  const best = showShares(kind);
  const share = `${(100 * kind[best]).toFixed(0)} %`;
  if (best > 1 && kind[best] > SURE) {
    element("answer").textContent = `This sounds like “${KINDS[best]}” (${share}).`;
  } else if (always) {
    element("answer").textContent = `This sounds like ${KINDS[best]} (${share}).`;
  }
}

/** Returns the sounds that the package's own test hears: the first of each kind, in their order. */
async function spoken() {
  const { inputs } = await (await fetch(new URL("./words/features.json", import.meta.url))).json();
  const bytes = Uint8Array.from(atob(inputs.samples), (letter) => letter.charCodeAt(0));
  const all = new Float32Array(bytes.buffer);
  return KINDS.map((_, kind) => all.subarray(kind * RATE, (kind + 1) * RATE));
}

let examples, speaker;

/** Plays a sound. */
function play(samples) {
  speaker ??= new AudioContext();
  const buffer = speaker.createBuffer(1, samples.length, RATE);
  buffer.copyToChannel(samples, 0);
  const source = new AudioBufferSourceNode(speaker, { buffer });
  source.connect(speaker.destination);
  source.start();
}

/** Plays the example of a kind and hears it. The examples are fetched when the first is asked for. */
async function hearExample(model, kind) {
  element("error").textContent = "";
  try {
    examples ??= spoken();
    const samples = (await examples)[kind];
    play(samples);
    hear(model, samples, true);
  } catch (err) {
    examples = undefined;
    element("error").textContent = `The examples can't be heard: ${err.message}`;
  }
}

const model = await load(Words);
if (model) {
  KINDS.forEach((label, kind) => addExample(label, () => hearExample(model, kind)));
  listenBy(element("listen"), RATE, (samples) => hear(model, samples, false));
  element("answer").textContent = "Nothing was heard yet.";
  const silence = new Float32Array(RATE);
  showLatency(() => model.predict({ samples: silence }));
}
