/**
 * A drawing as the model's pictures are: cut to its ink, as high as the picture, in its middle.
 *
 * @param {Float32Array} ink What is drawn, row by row, 0 to 1.
 * @param {number} width Of the drawing.
 * @param {number} height Of the drawing.
 * @param {number} size Of the picture, which is a square.
 * @returns {Float32Array} `size * size` pixels, 0 to 1.
 */
export function shrunk(ink, width, height, size) {
  let [left, right, top, bottom] = [width, -1, height, -1];
  for (let y = 0; y < height; y++) {
    for (let x = 0; x < width; x++) {
      if (ink[y * width + x] < 0.5) continue;
      left = Math.min(left, x);
      right = Math.max(right, x);
      top = Math.min(top, y);
      bottom = Math.max(bottom, y);
    }
  }
  const pixels = new Float32Array(size * size);
  if (right < 0) return pixels;
  const side = Math.max(right - left + 1, bottom - top + 1);
  const x0 = (left + right + 1 - side) / 2;
  const y0 = (top + bottom + 1 - side) / 2;
  // The mean of a few points of each pixel.
  const points = 4;
  for (let i = 0; i < size * points; i++) {
    for (let j = 0; j < size * points; j++) {
      const y = Math.floor(y0 + side * (i + 0.5) / (size * points));
      const x = Math.floor(x0 + side * (j + 0.5) / (size * points));
      if (x < 0 || y < 0 || x >= width || y >= height) continue;
      const at = Math.floor(i / points) * size + Math.floor(j / points);
      pixels[at] += ink[y * width + x] / points ** 2;
    }
  }
  return pixels;
}
