use super::*;
use crate::testing::{Data, Tensor, Value, call_with, numbers};

/// One case, by the definition: input, filter and output of float64.
struct Case {
    input: [usize; 5],
    filter: [usize; 5],
    strides: [usize; 3],
    dilations: [usize; 3],
    padding: &'static str,
}

impl Case {
    fn windows(&self) -> [Window; 3] {
        let padding = match self.padding {
            "SAME" => Padding::Same,
            _ => Padding::Valid,
        };
        [0, 1, 2].map(|axis| {
            let (input, size) = (self.input[axis + 1], self.filter[axis]);
            Window::new(
                input,
                size,
                self.strides[axis],
                self.dilations[axis],
                padding,
            )
            .unwrap()
        })
    }

    fn output(&self) -> [usize; 5] {
        let [z, y, x] = self.windows().map(|window| window.output);
        [self.input[0], z, y, x, self.filter[4]]
    }

    /// Calls `visit` with the places of each product: in input, filter and output.
    fn products(&self, mut visit: impl FnMut(usize, usize, usize)) {
        let at = |dims: [usize; 5], place: [usize; 5]| {
            dims.iter()
                .zip(place)
                .fold(0, |sum, (&dim, i)| sum * dim + i)
        };
        let (windows, output) = (self.windows(), self.output());
        let group_out = self.filter[4] / (self.input[4] / self.filter[3]);
        let [n, d, h, w, o] = output;
        for (n, d, h) in
            (0..n).flat_map(|n| (0..d).flat_map(move |d| (0..h).map(move |h| (n, d, h))))
        {
            for (w, o) in (0..w).flat_map(|w| (0..o).map(move |o| (w, o))) {
                for tap in 0..self.filter[..4].iter().product() {
                    let [_, rows, columns, channels, _] = self.filter;
                    let c = tap % channels;
                    let taps = [
                        tap / (channels * columns * rows),
                        tap / (channels * columns) % rows,
                        tap / channels % columns,
                    ];
                    let stops = [d, h, w];
                    let mut place = [0; 3];
                    let inside = (0..3).all(|axis| {
                        let window = windows[axis];
                        let at = stops[axis] * window.stride + taps[axis] * window.dilation;
                        place[axis] = at.wrapping_sub(window.before);
                        at >= window.before && place[axis] < window.input
                    });
                    if inside {
                        let channel = o / group_out * channels + c;
                        visit(
                            at(self.input, [n, place[0], place[1], place[2], channel]),
                            at(self.filter, [taps[0], taps[1], taps[2], c, o]),
                            at(output, [n, d, h, w, o]),
                        );
                    }
                }
            }
        }
    }
}

/// Channels last to channels first.
fn first(dims: [usize; 5], x: &[f32]) -> (Vec<usize>, Vec<f32>) {
    let [n, d, h, w, c] = dims;
    let pixels = d * h * w;
    let mut to = vec![0.0; x.len()];
    for (i, &x) in x.iter().enumerate() {
        let (image, pixel, channel) = (i / (pixels * c), i / c % pixels, i % c);
        to[(image * c + channel) * pixels + pixel] = x;
    }
    (vec![n, c, d, h, w], to)
}

#[test]
fn all_directions_are_sums_of_products() {
    let case = |input, filter, strides, dilations, padding| Case {
        input,
        filter,
        strides,
        dilations,
        padding,
    };
    for case in [
        case([2, 4, 5, 3, 2], [2, 3, 2, 2, 3], [1; 3], [1; 3], "SAME"),
        case([1, 5, 6, 5, 4], [3, 3, 3, 2, 6], [2, 1, 2], [1; 3], "SAME"),
        case(
            [2, 6, 5, 7, 6],
            [2, 2, 3, 1, 6],
            [1, 2, 1],
            [2, 1, 2],
            "VALID",
        ),
        case([1, 3, 9, 9, 8], [1, 3, 3, 8, 16], [1; 3], [1; 3], "VALID"),
        case(
            [1, 7, 4, 4, 4],
            [3, 1, 1, 2, 4],
            [3, 1, 1],
            [2, 1, 1],
            "SAME",
        ),
    ] {
        let output = case.output();
        let len = |dims: [usize; 5]| dims.iter().product::<usize>();
        let x = numbers(len(case.input), 1);
        let w = numbers(len(case.filter), 2);
        let g = numbers(len(output), 3);
        let mut expected = [
            vec![0.0_f64; g.len()],
            vec![0.0; x.len()],
            vec![0.0; w.len()],
        ];
        case.products(|i, j, k| {
            expected[0][k] += f64::from(x[i]) * f64::from(w[j]);
            expected[1][i] += f64::from(g[k]) * f64::from(w[j]);
            expected[2][j] += f64::from(x[i]) * f64::from(g[k]);
        });
        for format in ["NDHWC", "NCDHW"] {
            let last = format == "NDHWC";
            let five = |[z, y, x]: [usize; 3]| {
                let values = if last {
                    [1, z, y, x, 1]
                } else {
                    [1, 1, z, y, x]
                };
                Value::Ints(values.map(|value| value as i64).to_vec())
            };
            let attrs = [
                ("strides", five(case.strides)),
                ("dilations", five(case.dilations)),
                ("padding", Value::Text(case.padding)),
                ("data_format", Value::Text(format)),
            ];
            let image = |dims: [usize; 5], x: &[f32]| match last {
                true => (dims.to_vec(), x.to_vec()),
                false => first(dims, x),
            };
            let (image_x, image_g) = (image(case.input, &x), image(output, &g));
            let filter = (case.filter.to_vec(), w.clone());
            let sizes = |dims: &[usize]| {
                let values = dims.iter().map(|&dim| dim as i32).collect();
                (vec![5], Data::I32(values))
            };
            let data = |tensor: &Tensor| (tensor.0.clone(), Data::F32(tensor.1.clone()));
            let of_input = vec![sizes(&image_x.0), data(&filter), data(&image_g)];
            let of_filter = vec![data(&image_x), sizes(&filter.0), data(&image_g)];
            let results = [
                (&DEF, vec![data(&image_x), data(&filter)], output),
                (&BACKPROP_INPUT, of_input, case.input),
                (&BACKPROP_FILTER, of_filter, case.filter),
            ];
            for ((def, inputs, dims), expected) in results.into_iter().zip(&expected) {
                let found = call_with(def, &attrs, &inputs).unwrap().remove(0);
                let expected: Vec<f32> = expected.iter().map(|&x| x as f32).collect();
                let expected = match def.op {
                    "Conv3DBackpropFilterV2" => (dims.to_vec(), expected),
                    _ => image(dims, &expected),
                };
                assert_eq!(found.0, expected.0, "{} {format}", def.op);
                for (found, expected) in found.1.iter().zip(&expected.1) {
                    let scale = expected.abs().max(1.0);
                    assert!(
                        (found - expected).abs() < 2e-5 * scale,
                        "{} {format}",
                        def.op
                    );
                }
            }
        }
    }
}
