// c = act(sum of parts + bias): the end of a product that was split along its depth.

struct Words {
    count: u32,
    columns: u32,
    parts: u32,
    alpha: f32,
}

var<immediate> words: Words;

var<private> activation: u32 = 0xC0DE0000u;
// 1: a number per column is added; 2: a matrix is.
var<private> added: u32 = 0xC0DE0001u;

@group(0) @binding(0) var<storage, read> parts: array<f32>;
@group(0) @binding(1) var<storage, read> bias: array<f32>;
@group(0) @binding(2) var<storage, read> extra: array<f32>;
@group(0) @binding(3) var<storage, read_write> c: array<f32>;

alias V = vec4<f32>;
alias W = vec4<bool>;
alias I = vec4<i32>;
alias U = vec4<u32>;

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
    var sum = 0.0;
    for (var part = 0u; part < words.parts; part++) {
        sum += parts[part * words.count + index];
    }
    if ((added & 1u) != 0u) {
        sum += bias[index % words.columns];
    }
    if ((added & 2u) != 0u) {
        sum += extra[index];
    }
    c[index] = activate(V(sum)).x;
}
