// Pooling of images with the channels last, and its gradients: a thread for each element of the result.

struct Words {
    count: u32,
    channels: i32,
    in_y: i32,
    in_x: i32,
    out_y: i32,
    out_x: i32,
    size_y: i32,
    size_x: i32,
    stride_y: i32,
    stride_x: i32,
    before_y: i32,
    before_x: i32,
}

var<immediate> words: Words;

// 0: largest; 1: mean; 2: where the largest is; 3: gradient of the largest; 4: gradient of the mean.
var<private> kind: u32 = 0xC0DE0000u;

@group(0) @binding(0) var<storage, read> input: array<f32>;
@group(0) @binding(1) var<storage, read_write> places: array<i32>;
@group(0) @binding(2) var<storage, read_write> output: array<f32>;

/// The pixels of an axis that a stop sees: the first, and the one after the last.
fn seen(stop: i32, size: i32, stride: i32, before: i32, limit: i32) -> vec2<i32> {
    let start = stop * stride - before;
    return vec2<i32>(max(start, 0), min(start + size, limit));
}

/// The stops of an axis that see a pixel: the first, and the one after the last.
fn stops(pixel: i32, size: i32, stride: i32, before: i32, limit: i32) -> vec2<i32> {
    let last = pixel + before;
    let first = max(last - size + stride, 0) / stride;
    return vec2<i32>(first, min(last / stride + 1, limit));
}

fn forward(index: i32) {
    let channel = index % words.channels;
    let pixel = index / words.channels;
    let x = pixel % words.out_x;
    let y = pixel / words.out_x % words.out_y;
    let image = pixel / words.out_x / words.out_y;
    let ys = seen(y, words.size_y, words.stride_y, words.before_y, words.in_y);
    let xs = seen(x, words.size_x, words.stride_x, words.before_x, words.in_x);
    // NaN is above nothing: it counts for the place alone, if it is the first.
    var value = select(0.0, -3.4028234663852886e38, kind == 0u);
    var found = -1;
    for (var row = ys.x; row < ys.y; row++) {
        for (var column = xs.x; column < xs.y; column++) {
            let place = row * words.in_x + column;
            let each = input[(image * words.in_y * words.in_x + place) * words.channels + channel];
            if (kind == 1u) {
                value += each;
            } else if (kind == 2u && found < 0) {
                value = each;
                found = place;
            } else if (each > value) {
                value = each;
                found = place;
            }
        }
    }
    if (kind == 2u) {
        places[index] = found;
    } else if (kind == 1u) {
        output[index] = value * (1.0 / f32(max((ys.y - ys.x) * (xs.y - xs.x), 1)));
    } else {
        output[index] = value;
    }
}

fn backward(index: i32) {
    let channel = index % words.channels;
    let pixel = index / words.channels;
    let x = pixel % words.in_x;
    let y = pixel / words.in_x % words.in_y;
    let image = pixel / words.in_x / words.in_y;
    let ys = stops(y, words.size_y, words.stride_y, words.before_y, words.out_y);
    let xs = stops(x, words.size_x, words.stride_x, words.before_x, words.out_x);
    var sum = 0.0;
    for (var row = ys.x; row < ys.y; row++) {
        for (var column = xs.x; column < xs.y; column++) {
            let stop = (image * words.out_y + row) * words.out_x + column;
            let at = stop * words.channels + channel;
            if (kind == 3u) {
                if (places[at] == y * words.in_x + x) {
                    sum += input[at];
                }
            } else {
                let rows = seen(row, words.size_y, words.stride_y, words.before_y, words.in_y);
                let columns = seen(column, words.size_x, words.stride_x, words.before_x, words.in_x);
                sum += input[at] * (1.0 / f32((rows.y - rows.x) * (columns.y - columns.x)));
            }
        }
    }
    output[index] = sum;
}

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let index = (group.y * groups.x + group.x) * 256u + local;
    if (index >= words.count) {
        return;
    }
    if (kind < 3u) {
        forward(i32(index));
    } else {
        backward(i32(index));
    }
}
