// Texts of a package: any string of JavaScript goes in, and words come out.

import assert from "node:assert/strict";
import { pathToFileURL } from "node:url";

const { Net, ModelError } = await import(new URL("words/web/index.js", pathToFileURL(`${process.argv[2]}/`)));
const model = await Net.load();
const others = { numbers: new Int32Array(9), state: new Int32Array(2) };
assert.deepEqual(Net.inputs.map(({ dtype }) => dtype), ["str", "i32", "i32"]);

// Half of a pair, a mark of the order of bytes, and zeros are texts as others are.
const rare = ["the", "\ud83d", "\ufeffthe", "the\0", "", "日本"];
const { match, labels, reshaped, fixed } = model.predict({ x: rare, ...others });
assert.equal(match.length, 6);
assert.equal(match[1], match[2]);
assert.equal(match[1], match[3]);
assert.notEqual(match[0], match[1]);
assert.deepEqual(reshaped, match);
assert.deepEqual(labels, new Array(9).fill("\u202e"));
assert.deepEqual(fixed, ["a", "a"]);

// The same texts one example at a time, and a long one.
for (let at = 0; at < rare.length; at += 2) {
  const one = model.predict({ ...others, x: rare.slice(at, at + 2), numbers: new Int32Array(3) });
  assert.deepEqual(one.match, match.slice(at, at + 2));
}
const long = model.predict({ ...others, x: ["é".repeat(1 << 20), "the"], numbers: new Int32Array(3) });
assert.deepEqual(long.match, [match[1], match[0]]);

const into = { match: [0, 0, 0, 0, 0, 0], labels: new Array(9), reshaped: new Array(6), fixed: ["", ""] };
model.predictInto({ x: rare, ...others }, into);
assert.deepEqual(into, { match, labels, reshaped, fixed });

const wrong = [
  [/an array of strings, and not String/, { x: "the" }],
  [/an array of strings, and not Float32Array/, { x: new Float32Array(6) }],
  [/element 1 is 7, and not a string/, { x: ["a", 7] }],
  [/element 0 is undefined/, { x: new Array(6) }],
  [/a multiple of 2/, { x: ["a"] }],
];
for (const [pattern, inputs] of wrong) {
  assert.throws(() => model.predict({ ...others, ...inputs }), (err) => {
    assert.ok(err instanceof ModelError && err.code === "input", `${err.stack}`);
    assert.match(err.message, pattern);
    return true;
  });
}
const short = { ...into, match: [] };
assert.throws(() => model.predictInto({ x: rare, ...others }, short), /needs 6/);
assert.deepEqual(model.predict({ x: rare, ...others }).match, match);
