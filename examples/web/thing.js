// Sees the camera's picture, a file, or a drawing that the page makes, and names the thing in its middle.

import { look } from "./look.js";
import { sketch } from "./sketch.js";
import { Things } from "./things/index.js";

const ways = await (await fetch("./things.json")).json();
const names = Object.keys(ways);
const counts = new Map();

/** Draws a thing; each time it looks different. */
function draw(name) {
  const count = counts.get(name) ?? 0;
  counts.set(name, count + 1);
  return sketch(ways[name], count);
}

const label = (name) => name[0].toUpperCase() + name.slice(1);
const article = (name) => `${/^[aeiou]/.test(name) ? "an" : "a"} ${name}`;

// As `things.py` orders them.
const kinds = ["none of them", ...names.map(article)];
await look(Things, 64, kinds, Object.fromEntries(names.map((name) => [label(name), () => draw(name)])));
