// Drawings to try without a camera, of the things that `things.json` lists.

const SIDE = 384;
const PEN = "#22304f";
const PAPER = ["#f1ecdf", "#cfe3ef", "#e8d3c9"];
// Of the first four colours of a thing.
const PAINTS = [["#c8453a", "#f4c95d", "#3d7a4f", "#5b8fc9"], ["#4f86c6", "#d9683c", "#7a4e9b", "#fffaf0"]];
const ANGLES = [0, 0.12, -0.15];

function trace(pen, part) {
  pen.beginPath();
  if (part.ellipse) {
    pen.ellipse(...part.ellipse, 0, 0, 2 * Math.PI);
    return;
  }
  for (const [x, y] of part.ring ?? part.path) pen.lineTo(x, y);
  if (part.ring) pen.closePath();
}

/**
 * A canvas with a thing.
 *
 * @param {object[][]} ways Of drawing it: lists of parts.
 * @param {number} count How often it was drawn: what is next looks different.
 */
export function sketch(ways, count) {
  const canvas = new OffscreenCanvas(SIDE, SIDE);
  const pen = canvas.getContext("2d");
  pen.fillStyle = PAPER[count % PAPER.length];
  pen.fillRect(0, 0, SIDE, SIDE);
  pen.translate(SIDE / 2, SIDE / 2);
  pen.rotate(ANGLES[count % ANGLES.length]);
  pen.scale(0.34 * SIDE, 0.34 * SIDE);
  pen.lineWidth = 0.06;
  pen.lineJoin = pen.lineCap = "round";
  pen.strokeStyle = PEN;
  const turns = Math.floor(count / ways.length);
  const paints = PAINTS[turns % 4 < 2 ? 0 : 1];
  for (const part of ways[count % ways.length]) {
    trace(pen, part);
    pen.fillStyle = paints[part.colour];
    // Painted, then by lines alone.
    if (!part.path && turns % 2 === 0) pen.fill();
    pen.stroke();
  }
  return canvas;
}
