// Runs in a browser without SIMD: every page says which browser is needed, and takes no input.

const failures = [];
for (const address of ["/", "/sound.html", "/word.html", "/shape.html", "/thing.html"]) {
  await fetch("/stage", { method: "POST", body: JSON.stringify(address) });
  const frame = document.createElement("iframe");
  frame.src = address;
  document.body.append(frame);
  await new Promise((resolve) => { frame.onload = resolve; });
  const text = (id) => frame.contentDocument.getElementById(id).textContent;
  while (!text("error")) await new Promise((resolve) => { setTimeout(resolve, 100); });
  if (!/no SIMD in WebAssembly: Chrome 91/.test(text("error"))) failures.push(`${address}: ${text("error")}`);
  if (text("answer") || text("latency") !== "\u2013") failures.push(`${address} answers`);
}
await fetch("/result", { method: "POST", body: JSON.stringify({ failures }) });
