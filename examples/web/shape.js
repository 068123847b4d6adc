// Sees the middle of the camera's picture, of a file, or of a shape that the page draws, and shows what it is.

import { drawShape, SHAPES } from "./drawn.js";
import { look } from "./look.js";
import { Shapes } from "./shapes/index.js";

// As `train_shapes.py` orders them.
const KINDS = ["no shape", "a circle", "a triangle", "a square", "a star", "a cross"];

await look(Shapes, 64, KINDS, Object.fromEntries(Object.keys(SHAPES).map((label) => [label, () => drawShape(label)])));
