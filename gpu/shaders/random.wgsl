// Uniform numbers of the generator Philox 4x32-10, in TensorFlow's order. A thread has a block of four numbers.

struct Words {
    count: u32,
    key_low: u32,
    key_high: u32,
    counter: array<u32, 4>,
}

var<immediate> words: Words;

@group(0) @binding(0) var<storage, read_write> output: array<f32>;

/// The upper half of a product.
fn upper(a: u32, b: u32) -> u32 {
    let a_low = a & 0xffffu;
    let a_high = a >> 16u;
    let b_low = b & 0xffffu;
    let b_high = b >> 16u;
    let low = a_low * b_low;
    let middle = a_high * b_low + (low >> 16u);
    let other = a_low * b_high + (middle & 0xffffu);
    return a_high * b_high + (middle >> 16u) + (other >> 16u);
}

/// A number from 0 up to 1 of the lowest 23 bits.
fn uniform_number(bits: u32) -> f32 {
    return bitcast<f32>((bits & 0x7fffffu) | 0x3f800000u) - 1.0;
}

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let index = (group.y * groups.x + group.x) * 256u + local;
    if (index * 4u >= words.count) {
        return;
    }
    var block = vec4<u32>(words.counter[0], words.counter[1], words.counter[2], words.counter[3]);
    block.x += index;
    if (block.x < index) {
        block.y += 1u;
        if (block.y == 0u) {
            block.z += 1u;
            if (block.z == 0u) {
                block.w += 1u;
            }
        }
    }
    var key = vec2<u32>(words.key_low, words.key_high);
    for (var round = 0u; round < 10u; round++) {
        let first = upper(block.x, 0xD2511F53u);
        let second = upper(block.z, 0xCD9E8D57u);
        block = vec4<u32>(
            second ^ block.y ^ key.x,
            block.z * 0xCD9E8D57u,
            first ^ block.w ^ key.y,
            block.x * 0xD2511F53u,
        );
        key += vec2<u32>(0x9E3779B9u, 0xBB67AE85u);
    }
    let at = index * 4u;
    output[at] = uniform_number(block.x);
    if (at + 1u < words.count) { output[at + 1u] = uniform_number(block.y); }
    if (at + 2u < words.count) { output[at + 2u] = uniform_number(block.z); }
    if (at + 3u < words.count) { output[at + 3u] = uniform_number(block.w); }
}
