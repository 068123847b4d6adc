// Element-wise programs: up to 24 steps, each an operation on one or two values. Values 0 to 11 are inputs, 12 to
// 15 numbers of the call, those from 16 on results of steps. The last step's result is the first output.
// The program is a set of specialization constants, so the driver sees straight code.

struct Words {
    /// Elements of the output, in vectors; of a row; axes and a reserve.
    count: u32,
    row: u32,
    axes: u32,
    spare: u32,
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

@group(0) @binding(0) var<storage, read> input0: array<$V>;
@group(0) @binding(1) var<storage, read> input1: array<$V>;
@group(0) @binding(2) var<storage, read> input2: array<$V>;
@group(0) @binding(3) var<storage, read> input3: array<$V>;
@group(0) @binding(4) var<storage, read> input4: array<$V>;
@group(0) @binding(5) var<storage, read> input5: array<$V>;
@group(0) @binding(6) var<storage, read> input6: array<$V>;
@group(0) @binding(7) var<storage, read> input7: array<$V>;
@group(0) @binding(8) var<storage, read> input8: array<$V>;
@group(0) @binding(9) var<storage, read> input9: array<$V>;
@group(0) @binding(10) var<storage, read> input10: array<$V>;
@group(0) @binding(11) var<storage, read> input11: array<$V>;
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
    var found = 0u;
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
        case 13u: { return select(a, V(0.0), a < V(0.0)); } // Relu
        case 14u: { return select(select(a, V(6.0), a > V(6.0)), V(0.0), a < V(0.0)); } // Relu6
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
        case 41u: { return a * select(V(0.0), V(1.0), (b > V(0.0)) & (b < V(6.0))); } // Relu6Grad
        case 42u: { return a * select(V(0.0), V(1.0), b > V(0.0)); } // ReluGrad
        case 43u: { return select((-0.5 * b) * a * (a * a), V(0.0), b == V(0.0)); } // RsqrtGrad
        case 44u: { return select(a * 1.0507009873554805, a * (b + 1.7580993408473766), b < V(0.0)); } // SeluGrad
        case 45u: { return b * a * (1.0 - a); } // SigmoidGrad
        case 46u: { return a * sigmoid(b); } // SoftplusGrad
        case 47u: { return a / ((1.0 + abs(b)) * (1.0 + abs(b))); } // SoftsignGrad
        case 48u: { return select(0.5 * b / a, V(0.0), b == V(0.0)); } // SqrtGrad
        case 49u: { return b * (1.0 - a * a); } // TanhGrad
        case 50u: { return select(a, b, a > b); } // Lower
        case 51u: { return select(a, b, a < b); } // Raise
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
    if (inputs > 0u) {
        if (is_number(0u)) {
            v[0] = V(input0[0]$X);
        } else {
            v[0] = input0[place(0u, index)];
        }
    }
    if (inputs > 1u) {
        if (is_number(1u)) {
            v[1] = V(input1[0]$X);
        } else {
            v[1] = input1[place(1u, index)];
        }
    }
    if (inputs > 2u) {
        if (is_number(2u)) {
            v[2] = V(input2[0]$X);
        } else {
            v[2] = input2[place(2u, index)];
        }
    }
    if (inputs > 3u) {
        if (is_number(3u)) {
            v[3] = V(input3[0]$X);
        } else {
            v[3] = input3[place(3u, index)];
        }
    }
    if (inputs > 4u) {
        if (is_number(4u)) {
            v[4] = V(input4[0]$X);
        } else {
            v[4] = input4[place(4u, index)];
        }
    }
    if (inputs > 5u) {
        if (is_number(5u)) {
            v[5] = V(input5[0]$X);
        } else {
            v[5] = input5[place(5u, index)];
        }
    }
    if (inputs > 6u) {
        if (is_number(6u)) {
            v[6] = V(input6[0]$X);
        } else {
            v[6] = input6[place(6u, index)];
        }
    }
    if (inputs > 7u) {
        if (is_number(7u)) {
            v[7] = V(input7[0]$X);
        } else {
            v[7] = input7[place(7u, index)];
        }
    }
    if (inputs > 8u) {
        if (is_number(8u)) {
            v[8] = V(input8[0]$X);
        } else {
            v[8] = input8[place(8u, index)];
        }
    }
    if (inputs > 9u) {
        if (is_number(9u)) {
            v[9] = V(input9[0]$X);
        } else {
            v[9] = input9[place(9u, index)];
        }
    }
    if (inputs > 10u) {
        if (is_number(10u)) {
            v[10] = V(input10[0]$X);
        } else {
            v[10] = input10[place(10u, index)];
        }
    }
    if (inputs > 11u) {
        if (is_number(11u)) {
            v[11] = V(input11[0]$X);
        } else {
            v[11] = input11[place(11u, index)];
        }
    }
    if (steps > 0u) { v[16] = apply(step0 & 255u, v[(step0 >> 8u) & 255u], v[step0 >> 16u]); }
    if (steps > 1u) { v[17] = apply(step1 & 255u, v[(step1 >> 8u) & 255u], v[step1 >> 16u]); }
    if (steps > 2u) { v[18] = apply(step2 & 255u, v[(step2 >> 8u) & 255u], v[step2 >> 16u]); }
    if (steps > 3u) { v[19] = apply(step3 & 255u, v[(step3 >> 8u) & 255u], v[step3 >> 16u]); }
    if (steps > 4u) { v[20] = apply(step4 & 255u, v[(step4 >> 8u) & 255u], v[step4 >> 16u]); }
    if (steps > 5u) { v[21] = apply(step5 & 255u, v[(step5 >> 8u) & 255u], v[step5 >> 16u]); }
    if (steps > 6u) { v[22] = apply(step6 & 255u, v[(step6 >> 8u) & 255u], v[step6 >> 16u]); }
    if (steps > 7u) { v[23] = apply(step7 & 255u, v[(step7 >> 8u) & 255u], v[step7 >> 16u]); }
    if (steps > 8u) { v[24] = apply(step8 & 255u, v[(step8 >> 8u) & 255u], v[step8 >> 16u]); }
    if (steps > 9u) { v[25] = apply(step9 & 255u, v[(step9 >> 8u) & 255u], v[step9 >> 16u]); }
    if (steps > 10u) { v[26] = apply(step10 & 255u, v[(step10 >> 8u) & 255u], v[step10 >> 16u]); }
    if (steps > 11u) { v[27] = apply(step11 & 255u, v[(step11 >> 8u) & 255u], v[step11 >> 16u]); }
    if (steps > 12u) { v[28] = apply(step12 & 255u, v[(step12 >> 8u) & 255u], v[step12 >> 16u]); }
    if (steps > 13u) { v[29] = apply(step13 & 255u, v[(step13 >> 8u) & 255u], v[step13 >> 16u]); }
    if (steps > 14u) { v[30] = apply(step14 & 255u, v[(step14 >> 8u) & 255u], v[step14 >> 16u]); }
    if (steps > 15u) { v[31] = apply(step15 & 255u, v[(step15 >> 8u) & 255u], v[step15 >> 16u]); }
    if (steps > 16u) { v[32] = apply(step16 & 255u, v[(step16 >> 8u) & 255u], v[step16 >> 16u]); }
    if (steps > 17u) { v[33] = apply(step17 & 255u, v[(step17 >> 8u) & 255u], v[step17 >> 16u]); }
    if (steps > 18u) { v[34] = apply(step18 & 255u, v[(step18 >> 8u) & 255u], v[step18 >> 16u]); }
    if (steps > 19u) { v[35] = apply(step19 & 255u, v[(step19 >> 8u) & 255u], v[step19 >> 16u]); }
    if (steps > 20u) { v[36] = apply(step20 & 255u, v[(step20 >> 8u) & 255u], v[step20 >> 16u]); }
    if (steps > 21u) { v[37] = apply(step21 & 255u, v[(step21 >> 8u) & 255u], v[step21 >> 16u]); }
    if (steps > 22u) { v[38] = apply(step22 & 255u, v[(step22 >> 8u) & 255u], v[step22 >> 16u]); }
    if (steps > 23u) { v[39] = apply(step23 & 255u, v[(step23 >> 8u) & 255u], v[step23 >> 16u]); }
    output0[index] = v[15u + steps];
    if (outputs > 1u) { output1[index] = v[16u + ((results >> 0u) & 255u)]; }
    if (outputs > 2u) { output2[index] = v[16u + ((results >> 8u) & 255u)]; }
    if (outputs > 3u) { output3[index] = v[16u + ((results >> 16u) & 255u)]; }
}
