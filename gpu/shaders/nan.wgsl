// Whether a value is NaN, by its bits: drivers may take comparisons with NaN for others.

fn is_nan(x: V) -> W {
    return (bitcast<U>(x) & U(0x7fffffffu)) > U(0x7f800000u);
}
