// Truth values, a byte each: comparisons and choices. A thread has four elements.

struct Words {
    count: u32,
    axes: u32,
    /// For strided operands: the output's axes from the last on, and the steps of each operand.
    sizes: array<u32, 6>,
    first: array<u32, 6>,
    second: array<u32, 6>,
    chosen: array<u32, 6>,
}

var<immediate> words: Words;

// 0: Equal; 1: NotEqual; 2: Less; 3: LessEqual; 4: Greater; 5: GreaterEqual; 6: a choice.
var<private> kind: u32 = 0xC0DE0000u;
// Two bits for each of a, b and the condition: 0 one number, 1 whole, 2 strided.
var<private> extents: u32 = 0xC0DE0001u;

@group(0) @binding(0) var<storage, read> a: array<f32>;
@group(0) @binding(1) var<storage, read> b: array<f32>;
@group(0) @binding(2) var<storage, read> condition: array<u32>;
@group(0) @binding(3) var<storage, read_write> truth: array<u32>;
@group(0) @binding(4) var<storage, read_write> output: array<f32>;

alias V = f32;
alias W = bool;
alias I = i32;
alias U = u32;

fn compare(x: f32, y: f32) -> bool {
    let known = !(is_nan(x) || is_nan(y));
    switch kind {
        case 0u: { return known && x == y; }
        case 1u: { return !(known && x == y); }
        case 2u: { return known && x < y; }
        case 3u: { return known && x <= y; }
        case 4u: { return known && x > y; }
        default: { return known && x >= y; }
    }
}

/// Where the element of an operand is.
fn place(operand: u32, index: u32) -> u32 {
    let extent = (extents >> (2u * operand)) & 3u;
    if (extent < 2u) {
        return index * extent;
    }
    var rest = index;
    var found = 0u;
    for (var axis = 0u; axis < words.axes; axis++) {
        let at = rest % words.sizes[axis];
        rest = rest / words.sizes[axis];
        if (operand == 0u) {
            found += at * words.first[axis];
        } else if (operand == 1u) {
            found += at * words.second[axis];
        } else {
            found += at * words.chosen[axis];
        }
    }
    return found;
}

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let index = (group.y * groups.x + group.x) * 256u + local;
    let start = index * 4u;
    if (start >= words.count) {
        return;
    }
    let many = min(words.count - start, 4u);
    // The bytes after the last element are others'.
    var bytes = 0u;
    if (kind < 6u && many < 4u) {
        bytes = truth[index];
    }
    for (var each = 0u; each < many; each++) {
        let at = start + each;
        if (kind == 6u) {
            let chosen = place(2u, at);
            if (((condition[chosen / 4u] >> (chosen % 4u * 8u)) & 255u) != 0u) {
                output[at] = a[place(0u, at)];
            } else {
                output[at] = b[place(1u, at)];
            }
        } else {
            let found = select(0u, 1u, compare(a[place(0u, at)], b[place(1u, at)]));
            let shift = each * 8u;
            bytes = (bytes & ~(255u << shift)) | (found << shift);
        }
    }
    if (kind < 6u) {
        truth[index] = bytes;
    }
}
