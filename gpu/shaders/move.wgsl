// Elements from one place to another, as they are: both places have an offset and a step per axis.

struct Words {
    count: u32,
    axes: u32,
    input_start: u32,
    output_start: u32,
    /// The axes from the last on: sizes, and steps in both tensors; a step below 0 wraps.
    sizes: array<u32, 6>,
    input: array<u32, 6>,
    output: array<u32, 6>,
    /// What a fill writes.
    value: u32,
}

var<immediate> words: Words;

// 0: moves; 1: fills.
var<private> kind: u32 = 0xC0DE0000u;

@group(0) @binding(0) var<storage, read> input: array<$V>;
@group(0) @binding(1) var<storage, read_write> output: array<$V>;

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
    var rest = index;
    var place_in = words.input_start;
    var place_out = words.output_start;
    for (var axis = 0u; axis < words.axes; axis++) {
        let size = words.sizes[axis];
        let at = rest % size;
        rest = rest / size;
        place_in += at * words.input[axis];
        place_out += at * words.output[axis];
    }
    if (kind == 1u) {
        output[place_out] = $V(words.value);
    } else {
        output[place_out] = input[place_in];
    }
}
