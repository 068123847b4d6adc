// Convolutions of each channel with filters of its own, with the channels last, and both gradients.

struct Words {
    count: u32,
    batch: i32,
    in_y: i32,
    in_x: i32,
    in_channels: i32,
    out_y: i32,
    out_x: i32,
    out_channels: i32,
    size_y: i32,
    size_x: i32,
    stride_y: i32,
    stride_x: i32,
    dilation_y: i32,
    dilation_x: i32,
    before_y: i32,
    before_x: i32,
    /// For the gradient by the filter: pixels of a part, and parts.
    chunk: u32,
    parts: u32,
}

var<immediate> words: Words;

// 0: forward; 1: by the input; 2: by the filter, parts of it.
var<private> kind: u32 = 0xC0DE0000u;
// Channels of a group in the gradient by the filter, a power of two.
var<private> width: u32 = 0xC0DE0001u;

@group(0) @binding(0) var<storage, read> input: array<f32>;
@group(0) @binding(1) var<storage, read> other: array<f32>;
@group(0) @binding(2) var<storage, read_write> output: array<f32>;

var<workgroup> sums: array<f32, 256>;

/// The image's pixel that a tap sees from a stop; below 0 if it is padding.
fn seen(image: i32, stop: vec2<i32>, tap: vec2<i32>) -> i32 {
    let y = stop.y * words.stride_y + tap.y * words.dilation_y - words.before_y;
    let x = stop.x * words.stride_x + tap.x * words.dilation_x - words.before_x;
    if (y < 0 || y >= words.in_y || x < 0 || x >= words.in_x) {
        return -1;
    }
    return (image * words.in_y + y) * words.in_x + x;
}

fn forward(index: i32) {
    let channel = index % words.out_channels;
    let pixel = index / words.out_channels;
    let stop = vec2<i32>(pixel % words.out_x, pixel / words.out_x % words.out_y);
    let image = pixel / words.out_x / words.out_y;
    let source = channel / (words.out_channels / words.in_channels);
    var sum = 0.0;
    for (var y = 0; y < words.size_y; y++) {
        for (var x = 0; x < words.size_x; x++) {
            let at = seen(image, stop, vec2<i32>(x, y));
            if (at >= 0) {
                let weight = other[(y * words.size_x + x) * words.out_channels + channel];
                sum += input[at * words.in_channels + source] * weight;
            }
        }
    }
    output[index] = sum;
}

fn by_input(index: i32) {
    let channel = index % words.in_channels;
    let pixel = index / words.in_channels;
    let column = pixel % words.in_x + words.before_x;
    let row = pixel / words.in_x % words.in_y + words.before_y;
    let image = pixel / words.in_x / words.in_y;
    let many = words.out_channels / words.in_channels;
    var sum = 0.0;
    for (var y = 0; y < words.size_y; y++) {
        let above = row - y * words.dilation_y;
        let stop_y = above / words.stride_y;
        if (above < 0 || stop_y * words.stride_y != above || stop_y >= words.out_y) {
            continue;
        }
        for (var x = 0; x < words.size_x; x++) {
            let left = column - x * words.dilation_x;
            let stop_x = left / words.stride_x;
            if (left < 0 || stop_x * words.stride_x != left || stop_x >= words.out_x) {
                continue;
            }
            let stop = ((image * words.out_y + stop_y) * words.out_x + stop_x) * words.out_channels;
            let tap = (y * words.size_x + x) * words.out_channels;
            for (var each = channel * many; each < (channel + 1) * many; each++) {
                sum += input[stop + each] * other[tap + each];
            }
        }
    }
    output[index] = sum;
}

fn by_filter(number: u32, local: u32) {
    let blocks = (u32(words.out_channels) + width - 1u) / width;
    let channel = i32((number % blocks) * width + local % width);
    let place = number / blocks;
    let part = place % words.parts;
    let tap = i32(place / words.parts);
    let at_tap = vec2<i32>(tap % words.size_x, tap / words.size_x);
    let source = channel / (words.out_channels / words.in_channels);
    let inside = channel < words.out_channels && tap < words.size_y * words.size_x;
    var sum = 0.0;
    if (inside) {
        let pixels = words.batch * words.out_y * words.out_x;
        let end = min(i32((part + 1u) * words.chunk), pixels);
        let lanes = i32(256u / width);
        for (var pixel = i32(part * words.chunk + local / width); pixel < end; pixel += lanes) {
            let stop = vec2<i32>(pixel % words.out_x, pixel / words.out_x % words.out_y);
            let at = seen(pixel / words.out_x / words.out_y, stop, at_tap);
            if (at >= 0) {
                sum += input[at * words.in_channels + source] * other[pixel * words.out_channels + channel];
            }
        }
    }
    sums[local] = sum;
    for (var half = 128u; half >= width; half = half >> 1u) {
        workgroupBarrier();
        if (local < half) {
            sums[local] += sums[local + half];
        }
    }
    workgroupBarrier();
    if (local < width && inside) {
        let filter_size = words.size_y * words.size_x * words.out_channels;
        output[i32(part) * filter_size + tap * words.out_channels + channel] = sums[local];
    }
}

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let number = group.y * groups.x + group.x;
    if (kind == 2u) {
        by_filter(number, local);
        return;
    }
    let index = number * 256u + local;
    if (index >= words.count) {
        return;
    }
    if (kind == 0u) {
        forward(i32(index));
    } else {
        by_input(i32(index));
    }
}
