// Times the cases of `kernels.rs` in several WebAssembly modules, in turn.
//
// node time.mjs ROUNDS MODULE...: prints, as JSON, the processor's seconds of a call: [module][case][round].
// Fails if the results of two modules differ.
import { readFileSync } from "node:fs";

// Long enough for the clock, and for the compiler to have optimized the module before.
const SECONDS = 0.05;

const [rounds, ...files] = process.argv.slice(2);
const modules = [];
for (const file of files) {
  const { instance } = await WebAssembly.instantiate(readFileSync(file));
  modules.push(instance.exports);
}

function seconds(module, index, count) {
  // Of this process, so that others take nothing from it.
  const start = process.cpuUsage();
  if (Number.isNaN(module.calls(index, count))) throw new Error(`case ${index} was refused`);
  const { user, system } = process.cpuUsage(start);
  return (user + system) / 1e6;
}

const result = modules.map(() => Array.from({ length: modules[0].cases() }, () => []));
for (let index = 0; index < modules[0].cases(); index++) {
  const [first, ...others] = modules.map((module) => module.calls(index, 1));
  for (const other of others) {
    if (!(Math.abs(other - first) <= 1e-3 * Math.abs(first) + 1e-2)) {
      throw new Error(`case ${index}: ${other} instead of ${first}`);
    }
  }
  const counts = modules.map((module) => {
    let count = 1;
    while (seconds(module, index, count) < SECONDS) count *= 2;
    return count;
  });
  for (let round = 0; round < Number(rounds); round++) {
    modules.forEach((module, at) => {
      // What comes before the calls counts in both.
      const one = seconds(module, index, 1);
      const more = seconds(module, index, counts[at] + 1);
      result[at][index].push((more - one) / counts[at]);
    });
  }
}
console.log(JSON.stringify(result));
