// What follows the sum of a product: `activation` is a specialization constant of the shader.

fn activate(x: vec4<f32>) -> vec4<f32> {
    switch activation {
        case 1u: { return positive(x); }
        case 2u: { return select(min(positive(x), V(6.0)), x, is_nan(x)); }
        case 3u: { return select(exp_minus_one(x), x, x > V(0.0)); }
        case 4u: { return 1.0507009873554805 * select(1.6732632423543772 * exp_minus_one(x), x, x > V(0.0)); }
        case 5u: { return sigmoid(x); }
        case 6u: { return softplus(x); }
        case 7u: { return x / (1.0 + abs(x)); }
        case 8u: { return hyperbolic_tangent(x); }
        case 9u: { return select(words.alpha * x, x, x > V(0.0)); }
        default: { return x; }
    }
}
