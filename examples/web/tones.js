// Sounds to try without a microphone, like those that the model has learned from.

export const RATE = 8000;

/** A tone between two frequencies, with soft ends. */
function tone(from, to) {
  let phase = 0;
  return Float32Array.from({ length: RATE }, (_, i) => {
    const t = i / RATE;
    phase += (2 * Math.PI * from * (to / from) ** t) / RATE;
    return 0.5 * Math.sin(phase) * Math.min(1, Math.min(t, 1 - t) / 0.1);
  });
}

/** Bursts of noise that fade. */
function claps() {
  const sound = new Float32Array(RATE);
  for (const start of [1500, 4500]) {
    for (let i = 0; i < 700; i++) sound[start + i] = (2 * Math.random() - 1) * Math.exp(-i / 80);
  }
  return sound;
}

/** Label of a button -> the sound. */
export const TONES = {
  "Silence": () => new Float32Array(RATE),
  "Noise": () => Float32Array.from({ length: RATE }, () => 0.4 * (2 * Math.random() - 1)),
  "Claps": claps,
  "Steady tone": () => tone(1000, 1000),
  "Rising tone": () => tone(800, 1440),
  "Falling tone": () => tone(1440, 800),
};
