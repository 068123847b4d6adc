// Rows of a matrix, a group of threads for each: softmax, its logarithm, its cross-entropy, and reductions.

struct Words {
    rows: u32,
    width: u32,
    /// Words of a sparse label, or of a place.
    step: u32,
}

var<immediate> words: Words;

// 0: softmax; 1: its logarithm; 2: sum; 3: mean; 4: largest; 5: smallest; 6: cross-entropy with the bits of floats as
// labels; 7: with sparse ones; 8: where the largest is; 9: where the smallest is.
var<private> kind: u32 = 0xC0DE0000u;

@group(0) @binding(0) var<storage, read> input: array<f32>;
@group(0) @binding(1) var<storage, read_write> output: array<f32>;
@group(0) @binding(2) var<storage, read_write> labels: array<u32>;
@group(0) @binding(3) var<storage, read_write> loss: array<f32>;

alias V = f32;
alias W = bool;
alias I = i32;
alias U = u32;

var<workgroup> shared_values: array<f32, 256>;
var<workgroup> shared_places: array<u32, 256>;

/// The language has not a literal for it, and refuses a constant of its bits.
fn negative_infinity() -> f32 {
    var bits = 0xff800000u;
    return bitcast<f32>(bits);
}

fn combine(a: f32, b: f32, how: u32) -> f32 {
    if (how == 0u) {
        return a + b;
    }
    if (how == 1u) {
        return select(b, a, (a > b) | is_nan(a));
    }
    if (how == 3u) {
        return select(b, a, (a > b) | is_nan(b));
    }
    return select(b, a, (a < b) | is_nan(a));
}

/// The values of all threads in one; all threads get it.
fn all(value: f32, local: u32, how: u32) -> f32 {
    workgroupBarrier();
    shared_values[local] = value;
    for (var half = 128u; half > 0u; half = half >> 1u) {
        workgroupBarrier();
        if (local < half) {
            shared_values[local] = combine(shared_values[local], shared_values[local + half], how);
        }
    }
    workgroupBarrier();
    return shared_values[0];
}

/// Writes where the largest element of a row is, the first of equal ones: NaN is none, nor is the lowest finite number.
fn find(row: u32, local: u32) {
    let start = row * words.width;
    var best = -3.4028234663852886e38;
    var place = words.width;
    for (var column = local; column < words.width; column += 256u) {
        let value = select(input[start + column], -input[start + column], kind == 9u);
        if (!is_nan(value) && value > best) {
            best = value;
            place = column;
        }
    }
    shared_values[local] = best;
    shared_places[local] = place;
    for (var half = 128u; half > 0u; half = half >> 1u) {
        workgroupBarrier();
        if (local < half) {
            let other = shared_values[local + half];
            let other_place = shared_places[local + half];
            let mine = shared_values[local];
            if (other > mine || (other == mine && other_place < shared_places[local])) {
                shared_values[local] = other;
                shared_places[local] = other_place;
            }
        }
    }
    if (local == 0u) {
        labels[row * words.step] = select(shared_places[0], 0u, shared_places[0] == words.width);
        if (words.step == 2u) {
            labels[row * 2u + 1u] = 0u;
        }
    }
}

/// Loss and gradient of a row with its largest logit, the sum of its weights, and the sum's logarithm.
fn cross_entropy(row: u32, local: u32, found: vec3<f32>) {
    let start = row * words.width;
    let sparse = labels[row * words.step];
    var total = 0.0;
    for (var column = local; column < words.width; column += 256u) {
        let distance = input[start + column] - found.x;
        var share = exponential(distance) / found.y;
        if (kind == 7u) {
            share -= select(0.0, 1.0, column == sparse);
            if (column == sparse) {
                loss[row] = found.z - distance;
            }
        } else {
            let label = bitcast<f32>(labels[start + column]);
            share -= label;
            let each = found.z - distance;
            // Drivers may take a product with 0 for 0.
            total += select(label * each, times_zero(each), label == 0.0);
        }
        output[start + column] = share;
    }
    if (kind == 6u) {
        total = all(total, local, 0u);
        if (local == 0u) {
            loss[row] = total;
        }
    }
}

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let row = group.y * groups.x + group.x;
    if (row >= words.rows) {
        return;
    }
    if (kind >= 8u) {
        find(row, local);
        return;
    }
    let start = row * words.width;
    let end = start + words.width;
    if (kind >= 2u && kind < 6u) {
        let how = select(0u, kind - 3u, kind >= 4u);
        var value = 0.0;
        if (how == 1u) {
            value = negative_infinity();
        }
        if (how == 2u) {
            value = -negative_infinity();
        }
        for (var at = start + local; at < end; at += 256u) {
            value = combine(value, input[at], how);
        }
        value = all(value, local, how);
        if (local == 0u) {
            output[row] = select(value, value / f32(words.width), kind == 3u);
        }
        return;
    }
    // From the lowest finite number NaN and negative infinity keep their distance. As in TensorFlow, NaN and
    // positive infinity leave 0 for all others of their row.
    var largest = -3.4028234663852886e38;
    for (var at = start + local; at < end; at += 256u) {
        largest = combine(largest, input[at], 3u);
    }
    largest = all(largest, local, 3u);
    var sum = 0.0;
    for (var at = start + local; at < end; at += 256u) {
        sum += exponential(input[at] - largest);
    }
    sum = all(sum, local, 0u);
    let log_sum = logarithm(sum);
    if (kind >= 6u) {
        cross_entropy(row, local, vec3<f32>(largest, sum, log_sum));
        return;
    }
    for (var at = start + local; at < end; at += 256u) {
        let distance = input[at] - largest;
        if (kind == 0u) {
            let weight = exponential(distance);
            // Drivers may take a product with 0 for 0.
            output[at] = select(weight / sum, select(0.0, weight, is_nan(weight)), is_nan(sum));
        } else {
            output[at] = distance - log_sum;
        }
    }
}
