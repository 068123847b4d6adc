// Truth values, a byte each: comparisons, combinations and choices. A thread has four elements.

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

// 0: Equal; 1: NotEqual; 2: Less; 3: LessEqual; 4: Greater; 5: GreaterEqual; 6: a choice; 7: and; 8: or; 9: not.
var<private> kind: u32 = 0xC0DE0000u;
// Two bits for each of a, b and the condition: 0 one number, 1 whole, 2 strided.
var<private> extents: u32 = 0xC0DE0001u;
// The elements of a and b: 0: float32; 1: int32, which are only chosen; 2: int64; 3: bytes.
var<private> elements: u32 = 0xC0DE0002u;

@group(0) @binding(0) var<storage, read> a: array<u32>;
@group(0) @binding(1) var<storage, read> b: array<u32>;
@group(0) @binding(2) var<storage, read> condition: array<u32>;
@group(0) @binding(3) var<storage, read_write> truth: array<u32>;
@group(0) @binding(4) var<storage, read_write> output: array<u32>;

alias V = f32;
alias W = bool;
alias I = i32;
alias U = u32;

/// The answer to a comparison, if both are equal, and if the first is less.
fn answer(equal: bool, less: bool) -> bool {
    switch kind {
        case 0u: { return equal; }
        case 1u: { return !equal; }
        case 2u: { return less; }
        case 3u: { return less || equal; }
        case 4u: { return !(less || equal); }
        default: { return !less; }
    }
}

fn byte(word: u32, at: u32) -> u32 {
    return (word >> (at % 4u * 8u)) & 255u;
}

/// What the elements at two places give.
fn compare(at_a: u32, at_b: u32) -> bool {
    if (elements == 0u) {
        let x = bitcast<f32>(a[at_a]);
        let y = bitcast<f32>(b[at_b]);
        if (is_nan(x) || is_nan(y)) {
            return kind == 1u;
        }
        return answer(x == y, x < y);
    }
    if (elements == 2u) {
        let low = vec2<u32>(a[2u * at_a], b[2u * at_b]);
        let high = vec2<i32>(bitcast<i32>(a[2u * at_a + 1u]), bitcast<i32>(b[2u * at_b + 1u]));
        let same = high.x == high.y;
        return answer(same && low.x == low.y, high.x < high.y || (same && low.x < low.y));
    }
    let x = byte(a[at_a / 4u], at_a);
    let y = byte(b[at_b / 4u], at_b);
    switch kind {
        case 7u: { return (x & y) != 0u; }
        case 8u: { return (x | y) != 0u; }
        case 9u: { return x == 0u; }
        default: { return answer(x == y, x < y); }
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
    let is_choice = kind == 6u;
    let is_bytes = !is_choice || elements == 3u;
    // The bytes after the last element are others'.
    var bytes = 0u;
    if (is_bytes && many < 4u) {
        bytes = truth[index];
    }
    for (var each = 0u; each < many; each++) {
        let at = start + each;
        var at_a = place(0u, at);
        var at_b = place(1u, at);
        var found = 0u;
        if (is_choice) {
            let chosen = place(2u, at);
            let is_first = byte(condition[chosen / 4u], chosen) != 0u;
            if (elements == 3u) {
                found = select(byte(b[at_b / 4u], at_b), byte(a[at_a / 4u], at_a), is_first);
            } else if (elements == 2u) {
                for (var half = 0u; half < 2u; half++) {
                    output[2u * at + half] = select(b[2u * at_b + half], a[2u * at_a + half], is_first);
                }
            } else {
                output[at] = select(b[at_b], a[at_a], is_first);
            }
        } else {
            found = select(0u, 1u, compare(at_a, at_b));
        }
        let shift = each * 8u;
        bytes = (bytes & ~(255u << shift)) | (found << shift);
    }
    if (is_bytes) {
        truth[index] = bytes;
    }
}
