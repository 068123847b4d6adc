// What a device reaches: fused multiply-adds in registers, and a copy.

struct Words {
    count: u32,
    turns: u32,
}

var<immediate> words: Words;

// 0: multiply-adds; 1: a copy.
var<private> kind: u32 = 0xC0DE0000u;

@group(0) @binding(0) var<storage, read> input: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read_write> output: array<vec4<f32>>;

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
    if (kind == 1u) {
        output[index] = input[index];
        return;
    }
    // Two of three operands are the same for all, as in products: they need no register bank of their own.
    let first = input[index];
    let x = vec4<f32>(first.x);
    let y = vec4<f32>(first.y);
#repeat i 8
    var sum#i = first + f32(#i);
#end
    for (var turn = 0u; turn < words.turns; turn++) {
#repeat j 4
#repeat i 8
        sum#i = fma(sum#i, y, x);
#end
#end
    }
    output[index] = sum0 + sum1 + sum2 + sum3 + sum4 + sum5 + sum6 + sum7;
}
