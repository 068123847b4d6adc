// Shapes to try without a camera, as a thick pen draws them on paper.

const SIDE = 512;
const RADIUS = 0.3 * SIDE;

/** Corners around the middle; every second one is nearer, if `notch` says how near. */
function corners(count, notch = 1) {
  return Array.from({ length: count }, (_, i) => {
    const angle = 2 * Math.PI * i / count - Math.PI / 2;
    const radius = i % 2 ? notch * RADIUS : RADIUS;
    return [radius * Math.cos(angle), radius * Math.sin(angle)];
  });
}

const ARM = 0.32 * RADIUS;
const QUARTER = [[ARM, -RADIUS], [ARM, -ARM], [RADIUS, -ARM]];

/** Label of a button -> the corners of the shape. */
export const SHAPES = {
  "Circle": corners(90),
  "Triangle": corners(3),
  "Square": corners(4),
  "Star": corners(10, 0.42),
  // Each quarter is the one before, turned: (x, y) becomes (-y, x).
  "Cross": [0, 1, 2, 3].flatMap((turns) => QUARTER.map((corner) => {
    let [x, y] = corner;
    for (let i = 0; i < turns; i++) [x, y] = [-y, x];
    return [x, y];
  })),
};

/** A canvas with a shape, a bit turned. */
export function drawShape(label) {
  const canvas = new OffscreenCanvas(SIDE, SIDE);
  const pen = canvas.getContext("2d");
  pen.fillStyle = "#e9e4d8";
  pen.fillRect(0, 0, SIDE, SIDE);
  pen.translate(SIDE / 2, SIDE / 2);
  pen.rotate(0.2);
  pen.beginPath();
  for (const [x, y] of SHAPES[label]) pen.lineTo(x, y);
  pen.closePath();
  pen.strokeStyle = "#1d2c6b";
  pen.lineWidth = SIDE / 18;
  pen.lineJoin = "round";
  pen.stroke();
  return canvas;
}
