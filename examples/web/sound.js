// Hears the last second of the microphone, or a sound that the page makes, and shows what it is.

import { draw, listenBy } from "./listen.js";
import { addExample, bars, element, load, showLatency } from "./page.js";
import { Sounds } from "./sounds/index.js";
import { RATE, TONES } from "./tones.js";

// As `train_sounds.py` orders them.
const KINDS = ["silence", "noise", "claps", "a steady tone", "a rising tone", "a falling tone"];
const showShares = bars(KINDS, true);

function hear(model, samples) {
  draw(samples);
  const { kind } = model.predict({ samples });
  const best = showShares(kind);
  element("answer").textContent = `This sounds like ${KINDS[best]} (${(100 * kind[best]).toFixed(0)} %).`;
}

const model = await load(Sounds);
if (model) {
  for (const [label, make] of Object.entries(TONES)) addExample(label, () => hear(model, make()));
  listenBy(element("listen"), RATE, (samples) => hear(model, samples));
  element("answer").textContent = "Nothing was heard yet.";
  const silence = TONES.Silence();
  showLatency(() => model.predict({ samples: silence }));
}
