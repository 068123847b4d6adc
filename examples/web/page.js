// What the pages share: rows with bars, and how long the model took to load and to answer.

// ?threads=1 compares.
const asked = Number(new URLSearchParams(globalThis.location.search).get("threads"));
const threads = asked || "auto";

export const element = (id) => document.getElementById(id);

const REPEATS = 20;

/** Makes a row for each label; returns what shows shares in them, or nothing. */
export function bars(labels, wide = false) {
  const rows = labels.map((label) => {
    const row = document.createElement("li");
    row.classList.toggle("wide", wide);
    row.innerHTML = '<span></span><div class="track"><div class="bar"></div></div><span class="share"></span>';
    row.firstChild.textContent = label;
    element("shares").append(row);
    return row;
  });
  return (shares) => {
    const best = shares ? shares.indexOf(Math.max(...shares)) : -1;
    rows.forEach((row, index) => {
      const share = shares ? shares[index] : 0;
      row.classList.toggle("best", index === best);
      row.querySelector(".bar").style.width = `${100 * share}%`;
      row.querySelector(".share").textContent = shares ? `${(100 * share).toFixed(1)} %` : "";
    });
    return best;
  };
}

/** Loads a model and shows its bytes, threads and time; a failure becomes a sentence, and `null`. */
export async function load(Model) {
  try {
    const start = performance.now();
    let bytes = 0;
    const model = await Model.load({ threads, onProgress: ({ loaded }) => { bytes = loaded; } });
    element("start").textContent = `${(performance.now() - start).toFixed(0)} ms`;
    element("threads").textContent = String(model.threads);
    element("bytes").textContent = bytes.toLocaleString("en");
    return model;
  } catch (err) {
    element("error").textContent = err.message;
    element("answer").textContent = "";
    return null;
  }
}

/** Shows how long a prediction takes: a browser's clock is coarser than one. */
export function showLatency(predict) {
  const start = performance.now();
  for (let i = 0; i < REPEATS; i++) predict();
  element("latency").textContent = `${(1000 * (performance.now() - start) / REPEATS).toFixed(0)} µs`;
}

/** Adds the button of an example. */
export function addExample(label, run) {
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = label;
  button.addEventListener("click", run);
  element("examples").append(button);
}
