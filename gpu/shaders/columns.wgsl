// Reductions of a middle axis: of [outer, rows, columns], a number for each outer and column. A group has the rows of
// a part; if there are several parts, another dispatch reduces them.

struct Words {
    rows: u32,
    columns: u32,
    /// Rows of a part, and parts.
    chunk: u32,
    parts: u32,
    outer: u32,
    /// What a sum is multiplied with.
    factor: f32,
}

var<immediate> words: Words;

// 0: sum; 1: largest; 2: smallest; 3: sum of squared distances from the centers; 4: sums of the slopes, and of their
// products with these distances, side by side.
var<private> kind: u32 = 0xC0DE0000u;
// Columns of a group, a power of two.
var<private> width: u32 = 0xC0DE0001u;

@group(0) @binding(0) var<storage, read> input: array<f32>;
@group(0) @binding(1) var<storage, read> slope: array<f32>;
@group(0) @binding(2) var<storage, read> center: array<f32>;
@group(0) @binding(3) var<storage, read_write> output: array<f32>;

alias V = f32;
alias W = bool;
alias I = i32;
alias U = u32;

var<workgroup> firsts: array<f32, 256>;
var<workgroup> seconds: array<f32, 256>;

/// The language has not a literal for it, and refuses a constant of its bits.
fn negative_infinity() -> f32 {
    var bits = 0xff800000u;
    return bitcast<f32>(bits);
}

fn combine(a: f32, b: f32) -> f32 {
    if (kind == 1u) {
        return select(b, a, (a > b) | is_nan(a));
    }
    if (kind == 2u) {
        return select(b, a, (a < b) | is_nan(a));
    }
    return a + b;
}

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let number = group.y * groups.x + group.x;
    let blocks = (words.columns + width - 1u) / width;
    let column = (number % blocks) * width + local % width;
    let place = number / blocks;
    let part = place % words.parts;
    let outer = place / words.parts;
    if (outer >= words.outer) {
        return;
    }
    let lanes = 256u / width;
    let inside = column < words.columns;
    var first = 0.0;
    var second = 0.0;
    if (kind == 1u) {
        first = negative_infinity();
    }
    if (kind == 2u) {
        first = -negative_infinity();
    }
    if (inside) {
        let end = min((part + 1u) * words.chunk, words.rows);
        for (var row = part * words.chunk + local / width; row < end; row += lanes) {
            let at = (outer * words.rows + row) * words.columns + column;
            let value = input[at];
            if (kind == 3u) {
                let distance = value - center[column];
                first += distance * distance;
            } else if (kind == 4u) {
                first += slope[at];
                second += slope[at] * (value - center[column]);
            } else {
                first = combine(first, value);
            }
        }
    }
    firsts[local] = first;
    seconds[local] = second;
    for (var half = 128u; half >= width; half = half >> 1u) {
        workgroupBarrier();
        if (local < half) {
            firsts[local] = combine(firsts[local], firsts[local + half]);
            seconds[local] += seconds[local + half];
        }
    }
    workgroupBarrier();
    if (local >= width || !inside) {
        return;
    }
    let row = outer * words.parts + part;
    if (kind == 4u) {
        output[row * 2u * words.columns + column] = firsts[local];
        output[(row * 2u + 1u) * words.columns + column] = seconds[local];
    } else if (kind == 1u || kind == 2u) {
        output[row * words.columns + column] = firsts[local];
    } else {
        output[row * words.columns + column] = firsts[local] * words.factor;
    }
}
