// Indices as rows with one element that differs; the rows lie along a new axis.

struct Words {
    count: u32,
    depth: u32,
    /// Elements after the new axis; words of an index.
    inner: u32,
    step: u32,
}

var<immediate> words: Words;

@group(0) @binding(0) var<storage, read> indices: array<u32>;
@group(0) @binding(1) var<storage, read> on: array<u32>;
@group(0) @binding(2) var<storage, read> off: array<u32>;
@group(0) @binding(3) var<storage, read_write> output: array<u32>;

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
    let row = index / words.inner;
    let place = row % words.depth;
    let number = ((row / words.depth) * words.inner + index % words.inner) * words.step;
    // The upper word of an int64 is 0 in what can be a place.
    var is_there = indices[number] == place;
    if (words.step == 2u) {
        is_there = is_there && indices[number + 1u] == 0u;
    }
    output[index] = select(off[0], on[0], is_there);
}
