// Functions of an element, for numbers and vectors. Drivers may compute theirs with errors of hundreds of ulp;
// these stay within a few.

/// The larger of a number and 0. Drivers take a comparison and a choice for their maximum, which drops NaN.
fn positive(x: V) -> V {
    return select(max(x, V(0.0)), x, is_nan(x));
}

/// 0, or NaN for NaN and infinity: drivers may take the product for 0.
fn times_zero(x: V) -> V {
    let infinite = (bitcast<U>(x) & U(0x7f800000u)) == U(0x7f800000u);
    return select(V(0.0), bitcast<V>(U(0x7fc00000u)), infinite);
}

/// `2^n` for n from -126 to 127.
fn power_of_two(n: I) -> V {
    return bitcast<V>((n + I(127)) << U(23u));
}

fn exponential(x: V) -> V {
    let bounded = clamp(x, V(-104.0), V(89.0));
    let n = round(bounded * 1.4426950408889634);
    // Exact without a fused operation: the first part has 10 bits.
    let r = (bounded - n * 0.693359375) - n * -2.1219444005469e-4;
    var p = V(0.0001984126984126984);
    p = fma(p, r, V(0.001388888888888889));
    p = fma(p, r, V(0.008333333333333333));
    p = fma(p, r, V(0.041666666666666664));
    p = fma(p, r, V(0.16666666666666666));
    p = fma(p, r, V(0.5));
    p = fma(p, r, V(1.0));
    p = fma(p, r, V(1.0));
    let whole = I(n);
    let half = whole >> U(1u);
    let value = p * power_of_two(half) * power_of_two(whole - half);
    return select(value, x, is_nan(x));
}

fn exp_minus_one(x: V) -> V {
    var p = V(2.48015873015873e-05);
    p = fma(p, x, V(0.0001984126984126984));
    p = fma(p, x, V(0.001388888888888889));
    p = fma(p, x, V(0.008333333333333333));
    p = fma(p, x, V(0.041666666666666664));
    p = fma(p, x, V(0.16666666666666666));
    p = fma(p, x, V(0.5));
    p = fma(p, x, V(1.0));
    return select(exponential(x) - 1.0, p * x, abs(x) < V(0.4));
}

/// The logarithm of a positive normal number times `2^-shift`.
fn logarithm(x: V) -> V {
    let small = x < V(1.1754944e-38);
    let scaled = select(x, x * 8388608.0, small);
    // The factor is from sqrt(1/2) to sqrt(2).
    let bits = bitcast<I>(scaled) - I(0x3f3504f3);
    let exponent = V(bits >> U(23u)) - select(V(0.0), V(23.0), small);
    let f = bitcast<V>((bits & I(0x007fffff)) + I(0x3f3504f3)) - 1.0;
    let s = f / (2.0 + f);
    let z = s * s;
    let series = z * fma(z, fma(z, fma(z, V(0.22222222222), V(0.28571428571)), V(0.4)), V(0.66666666667));
    // 2 s + s series = f - s (f - series).
    let value = fma(exponent, V(0.693145751953125), f - fma(s, f - series, exponent * -1.42860682e-6));
    let infinite = select(value, x, (x > V(3.0e38)) & (bitcast<U>(x) == U(0x7f800000u)));
    let nan = bitcast<V>(U(0x7fc00000u));
    let zero = select(infinite, bitcast<V>(U(0xff800000u)), x == V(0.0));
    return select(select(zero, nan, x < V(0.0)), x, is_nan(x));
}

/// log(1 + x): the error of 1 + x is put right in the quotient.
fn log_one_plus(x: V) -> V {
    let w = 1.0 + x;
    let part = w - 1.0;
    let quotient = logarithm(w) * (x / part);
    let plain = (part == V(0.0)) | is_nan(x);
    return select(select(quotient, logarithm(x), x > V(1.0e18)), select(x, logarithm(w), w == V(0.0)), plain | (w == V(0.0)));
}

fn sigmoid(x: V) -> V {
    let e = exponential(-abs(x));
    let small = 1.0 / (1.0 + e);
    return select(select(small, e * small, x < V(0.0)), x, is_nan(x));
}

fn softplus(x: V) -> V {
    let value = select(x, V(0.0), x < V(0.0)) + log_one_plus(exponential(-abs(x)));
    return select(value, x, is_nan(x));
}

fn hyperbolic_tangent(x: V) -> V {
    let z = x * x;
    let p = fma(z, fma(z, fma(z, fma(z, fma(z, V(0.00359212803657), V(-0.00886323552990)), V(0.0218694885362)), V(-0.0539682539683)), V(0.133333333333)), V(-0.333333333333));
    let e = exponential(2.0 * abs(x));
    let large = 1.0 - 2.0 / (e + 1.0);
    let signed = select(large, -large, x < V(0.0));
    return select(select(signed, fma(p * z, x, x), abs(x) < V(0.4)), x, is_nan(x));
}

/// The complement of the error function for x from 0.8 on.
fn complement_tail(x: V) -> V {
    let t = 1.0 / (1.0 + 0.5 * x);
    var q = V(-0.046623455924688174);
    q = fma(q, t, V(0.2468484341645835));
    q = fma(q, t, V(-0.4410540763538755));
    q = fma(q, t, V(0.24940759492143433));
    q = fma(q, t, V(-0.017585999277859));
    q = fma(q, t, V(0.2016773136565885));
    q = fma(q, t, V(0.2429390004537746));
    q = fma(q, t, V(0.28242933253427716));
    q = fma(q, t, V(0.2820824997007269));
    // The square of the upper bits is exact.
    let upper = bitcast<V>(bitcast<U>(x) & U(0xfffff000u));
    let square = exponential(-upper * upper) * exponential((upper - x) * (upper + x));
    return square * t * q;
}

fn error_near_zero(x: V) -> V {
    let z = x * x;
    var p = V(1.0595267211209887e-06);
    p = fma(p, z, V(-1.3911697299623786e-05));
    p = fma(p, z, V(0.00011956946111640547));
    p = fma(p, z, V(-0.0008542670496945217));
    p = fma(p, z, V(0.005223785003024825));
    p = fma(p, z, V(-0.026866133624150794));
    p = fma(p, z, V(0.11283791313475959));
    p = fma(p, z, V(-0.37612638889867533));
    p = fma(p, z, V(1.128379167094695));
    return x * p;
}

fn error_function(x: V) -> V {
    let large = 1.0 - complement_tail(min(abs(x), V(10.0)));
    let signed = select(large, -large, x < V(0.0));
    return select(select(signed, error_near_zero(x), abs(x) < V(1.0)), x, is_nan(x));
}

fn error_complement(x: V) -> V {
    let tail = complement_tail(min(abs(x), V(10.5)));
    let signed = select(tail, 2.0 - tail, x < V(0.0));
    return select(select(signed, 1.0 - error_near_zero(x), abs(x) < V(0.9)), x, is_nan(x));
}
