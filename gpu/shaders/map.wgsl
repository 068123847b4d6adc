// Element-wise programs: up to 24 steps, each an operation on one or two values. Values 0 to 11 are inputs, 12 to
// 15 numbers of the call, those from 16 on results of steps. The last step's result is the first output.
// The program is a set of specialization constants, so the driver sees straight code.

struct Words {
    /// Elements of the output, in vectors; of a row; axes; where the first strided input begins.
    count: u32,
    row: u32,
    axes: u32,
    offset: u32,
    numbers: array<f32, 4>,
    /// For strided inputs 0 and 1: the output's axes from the last on, and the steps of each input.
    dims: array<u32, 6>,
    first: array<u32, 6>,
    second: array<u32, 6>,
}

var<immediate> words: Words;

// Counts of inputs, steps and outputs, 8 bits each.
var<private> counts: u32 = 0xC0DE0000u;
// Two bits per input: 0 one number, 1 a row, 2 whole, 3 strided.
var<private> extents: u32 = 0xC0DE0001u;
// The step of outputs 1 to 3, 8 bits each.
var<private> results: u32 = 0xC0DE0002u;
// Operation, first and second operand, 8 bits each.
var<private> step0: u32 = 0xC0DE0003u;
var<private> step1: u32 = 0xC0DE0004u;
var<private> step2: u32 = 0xC0DE0005u;
var<private> step3: u32 = 0xC0DE0006u;
var<private> step4: u32 = 0xC0DE0007u;
var<private> step5: u32 = 0xC0DE0008u;
var<private> step6: u32 = 0xC0DE0009u;
var<private> step7: u32 = 0xC0DE000Au;
var<private> step8: u32 = 0xC0DE000Bu;
var<private> step9: u32 = 0xC0DE000Cu;
var<private> step10: u32 = 0xC0DE000Du;
var<private> step11: u32 = 0xC0DE000Eu;
var<private> step12: u32 = 0xC0DE000Fu;
var<private> step13: u32 = 0xC0DE0010u;
var<private> step14: u32 = 0xC0DE0011u;
var<private> step15: u32 = 0xC0DE0012u;
var<private> step16: u32 = 0xC0DE0013u;
var<private> step17: u32 = 0xC0DE0014u;
var<private> step18: u32 = 0xC0DE0015u;
var<private> step19: u32 = 0xC0DE0016u;
var<private> step20: u32 = 0xC0DE0017u;
var<private> step21: u32 = 0xC0DE0018u;
var<private> step22: u32 = 0xC0DE0019u;
var<private> step23: u32 = 0xC0DE001Au;

#repeat i 12
@group(0) @binding(#i) var<storage, read> input#i: array<$V>;
#end
@group(0) @binding(12) var<storage, read_write> output0: array<$V>;
@group(0) @binding(13) var<storage, read_write> output1: array<$V>;
@group(0) @binding(14) var<storage, read_write> output2: array<$V>;
@group(0) @binding(15) var<storage, read_write> output3: array<$V>;

alias V = $V;
alias W = $W;
alias I = $I;
alias U = $U;

/// Where the element of an input is. `index` counts the output's vectors.
fn place(input: u32, index: u32) -> u32 {
    let extent = (extents >> (2u * input)) & 3u;
    if (extent == 0u) {
        return 0u;
    }
    if (extent == 1u) {
        return index % words.row;
    }
    if (extent == 2u) {
        return index;
    }
    var rest = index;
    var found = select(0u, words.offset, input == 0u);
    for (var axis = 0u; axis < words.axes; axis++) {
        let size = words.dims[axis];
        let at = rest % size;
        rest = rest / size;
        if (input == 0u) {
            found += at * words.first[axis];
        } else {
            found += at * words.second[axis];
        }
    }
    return found;
}

fn is_number(input: u32) -> bool {
    return ((extents >> (2u * input)) & 3u) == 0u;
}

fn apply(code: u32, a: V, b: V) -> V {
    switch code {
        case 0u: { return abs(a); } // Abs
        case 1u: { return ceil(a); } // Ceil
        case 2u: { return select(exp_minus_one(a), a, a > V(0.0)); } // Elu
        case 3u: { return error_function(a); } // Erf
        case 4u: { return error_complement(a); } // Erfc
        case 5u: { return exponential(a); } // Exp
        case 6u: { return exp_minus_one(a); } // Expm1
        case 7u: { return floor(a); } // Floor
        case 8u: { return 1.0 / a; } // Inv
        case 9u: { return logarithm(a); } // Log
        case 10u: { return log_one_plus(a); } // Log1p
        case 11u: { return -a; } // Neg
        case 12u: { return 1.0 / a; } // Reciprocal
        case 13u: { return positive(a); } // Relu
        case 14u: { return select(min(positive(a), V(6.0)), a, is_nan(a)); } // Relu6
        case 15u: { return round(a); } // Rint
        case 16u: { return round(a); } // Round
        case 17u: { return 1.0 / sqrt(a); } // Rsqrt
        case 18u: { return 1.0507009873554805 * select(1.6732632423543772 * exp_minus_one(a), a, a > V(0.0)); } // Selu
        case 19u: { return sigmoid(a); } // Sigmoid
        case 20u: { return select(select(select(V(0.0), V(-1.0), a < V(0.0)), V(1.0), a > V(0.0)), a, is_nan(a)); } // Sign
        case 21u: { return softplus(a); } // Softplus
        case 22u: { return a / (1.0 + abs(a)); } // Softsign
        case 23u: { return sqrt(a); } // Sqrt
        case 24u: { return a * a; } // Square
        case 25u: { return hyperbolic_tangent(a); } // Tanh
        case 26u: { return a + b; } // Add
        case 27u: { return a + b; } // AddV2
        case 28u: { return a + b; } // BiasAdd
        case 29u: { return select(a / b, V(0.0), b == V(0.0)); } // DivNoNan
        case 30u: { return select(a * b, a, a > V(0.0)); } // LeakyRelu
        case 31u: { return select(b, a, (a > b) | is_nan(a)); } // Maximum
        case 32u: { return select(b, a, (a < b) | is_nan(a)); } // Minimum
        case 33u: { return a * b; } // Mul
        case 34u: { return select(a * b, V(0.0), b == V(0.0)); } // MulNoNan
        case 35u: { return a / b; } // RealDiv
        case 36u: { return (a - b) * (a - b); } // SquaredDifference
        case 37u: { return a - b; } // Sub
        case 38u: { return select(a, a * (b + 1.0), b < V(0.0)); } // EluGrad
        case 39u: { return select(-b * a * a, V(0.0), b == V(0.0)); } // InvGrad
        case 40u: { return select(-b * a * a, V(0.0), b == V(0.0)); } // ReciprocalGrad
        case 41u: { return select(times_zero(a), a, (b > V(0.0)) & (b < V(6.0))); } // Relu6Grad
        case 42u: { return select(times_zero(a), a, b > V(0.0)); } // ReluGrad
        case 43u: { return select((-0.5 * b) * a * (a * a), V(0.0), b == V(0.0)); } // RsqrtGrad
        case 44u: { return select(a * 1.0507009873554805, a * (b + 1.7580993408473766), b < V(0.0)); } // SeluGrad
        case 45u: { return b * a * (1.0 - a); } // SigmoidGrad
        case 46u: { return a * sigmoid(b); } // SoftplusGrad
        case 47u: { return a / ((1.0 + abs(b)) * (1.0 + abs(b))); } // SoftsignGrad
        case 48u: { return select(0.5 * b / a, V(0.0), b == V(0.0)); } // SqrtGrad
        case 49u: { return b * (1.0 - a * a); } // TanhGrad
        case 50u: { return select(min(a, b), a, is_nan(a)); } // Lower
        case 51u: { return select(max(a, b), a, is_nan(a)); } // Raise
        default: { return a; }
    }
}

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
    let inputs = counts & 255u;
    let steps = (counts >> 8u) & 255u;
    let outputs = counts >> 16u;
    var v: array<V, 40>;
    v[12] = V(words.numbers[0]);
    v[13] = V(words.numbers[1]);
    v[14] = V(words.numbers[2]);
    v[15] = V(words.numbers[3]);
#repeat i 12
    if (inputs > #iu) {
        if (is_number(#iu)) {
            v[#i] = V(input#i[0]$X);
        } else {
            v[#i] = input#i[place(#iu, index)];
        }
    }
#end
#repeat i 24
    if (steps > #iu) {
        v[16 + #i] = apply(step#i & 255u, v[(step#i >> 8u) & 255u], v[step#i >> 16u]);
    }
#end
    output0[index] = v[15u + steps];
    if (outputs > 1u) { output1[index] = v[16u + ((results >> 0u) & 255u)]; }
    if (outputs > 2u) { output2[index] = v[16u + ((results >> 8u) & 255u)]; }
    if (outputs > 3u) { output3[index] = v[16u + ((results >> 16u) & 255u)]; }
}
