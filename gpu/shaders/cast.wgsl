// Elements of one type as those of another, as the CPU's kernel converts them. A thread has four elements.

struct Words {
    count: u32,
}

var<immediate> words: Words;

// 0: float32; 1: int32; 2: int64; 3: a byte, which is a truth value where it is the target.
var<private> source: u32 = 0xC0DE0000u;
var<private> sink: u32 = 0xC0DE0001u;

@group(0) @binding(0) var<storage, read> input: array<u32>;
@group(0) @binding(1) var<storage, read_write> output: array<u32>;

/// The bits of an element, those of an integer as of an int64.
fn element(at: u32) -> vec2<u32> {
    if (source == 2u) {
        return vec2<u32>(input[2u * at], input[2u * at + 1u]);
    }
    if (source == 3u) {
        return vec2<u32>((input[at / 4u] >> (at % 4u * 8u)) & 255u, 0u);
    }
    let bits = input[at];
    return vec2<u32>(bits, select(0u, 0xffffffffu, source == 1u && bits >= 0x80000000u));
}

fn negated(value: vec2<u32>) -> vec2<u32> {
    return vec2<u32>(0u - value.x, ~value.y + select(0u, 1u, value.x == 0u));
}

/// A number below 2^32 times a power of two, rounded to the nearest float, a tie to the even one.
fn rounded(value: u32, power: u32) -> f32 {
    if (value < 0x1000000u) {
        return f32(value) * bitcast<f32>((127u + power) << 23u);
    }
    let shift = firstLeadingBit(value) - 23u;
    var kept = value >> shift;
    let rest = value & ((1u << shift) - 1u);
    let half = 1u << (shift - 1u);
    if (rest > half || (rest == half && (kept & 1u) == 1u)) {
        kept += 1u;
    }
    return f32(kept) * bitcast<f32>((127u + power + shift) << 23u);
}

fn as_float(value: vec2<u32>) -> f32 {
    let is_negative = value.y >= 0x80000000u;
    let size = select(value, negated(value), is_negative);
    var found = 0.0;
    if (size.y == 0u) {
        found = rounded(size.x, 0u);
    } else {
        // What is cut off can only decide whether the rest is a tie.
        let shift = firstLeadingBit(size.y) + 1u;
        var kept = size.y;
        var lost = size.x;
        if (shift < 32u) {
            kept = (size.y << (32u - shift)) | (size.x >> shift);
            lost = size.x & ((1u << shift) - 1u);
        }
        found = rounded(kept | select(0u, 1u, lost != 0u), shift);
    }
    return select(found, -found, is_negative);
}

/// The integer part of a float; the smallest integer for what does not fit in `width` bits.
fn truncated(bits: u32, width: u32) -> vec2<u32> {
    let exponent = (bits >> 23u) & 255u;
    if (exponent < 127u) {
        return vec2<u32>(0u);
    }
    let power = exponent - 127u;
    if (power + 1u >= width) {
        return select(vec2<u32>(0u, 0x80000000u), vec2<u32>(0x80000000u, 0xffffffffu), width == 32u);
    }
    let digits = (bits & 0x7fffffu) | 0x800000u;
    var found = vec2<u32>(0u);
    if (power <= 23u) {
        found.x = digits >> (23u - power);
    } else {
        let shift = power - 23u;
        if (shift < 32u) {
            found = vec2<u32>(digits << shift, digits >> (32u - shift));
        } else {
            found.y = digits << (shift - 32u);
        }
    }
    return select(found, negated(found), bits >= 0x80000000u);
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
    if (sink == 3u && many < 4u) {
        bytes = output[index];
    }
    for (var each = 0u; each < many; each++) {
        let at = start + each;
        let value = element(at);
        if (sink == 3u) {
            let bits = select(value.x | value.y, value.x & 0x7fffffffu, source == 0u);
            let shift = each * 8u;
            bytes = (bytes & ~(255u << shift)) | (select(0u, 1u, bits != 0u) << shift);
        } else if (sink == 0u) {
            output[at] = bitcast<u32>(as_float(value));
        } else if (sink == 1u) {
            output[at] = select(value.x, truncated(value.x, 32u).x, source == 0u);
        } else {
            let wide = select(value, truncated(value.x, 64u), source == 0u);
            output[2u * at] = wide.x;
            output[2u * at + 1u] = wide.y;
        }
    }
    if (sink == 3u) {
        output[index] = bytes;
    }
}
