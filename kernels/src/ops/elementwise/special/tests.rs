use super::*;

#[track_caller]
fn near(found: f32, exact: f64) {
    let error = (f64::from(found) - exact).abs();
    assert!(error <= 2e-7 * exact.abs(), "{found} instead of {exact}");
}

#[test]
fn gamma_family() {
    for (x, exact) in [
        (1e-30, 69.07755278665029),
        (0.3, 1.095797953064734),
        (1.0000001, -6.880945764253302e-08),
        (0.99999994, 3.440473750337958e-08),
        (2.0000002, 1.0079965877070312e-07),
        (1.5, -0.12078223763524526),
        (7.9, 8.324266058957152),
        (8.1, 8.727389037383563),
        (171.5, 709.1431630309283),
        (1e+10, 220258509288.81058),
        (-0.5, 1.2655121234846454),
        (-1e-20, 46.051701891615394),
        (-2.4570248, -1.128784253290327e-07),
        (-7.25, -7.541883443475751),
        (-100.5, -364.9009683094273),
        (1e+36, 8.189306017217861e+37),
    ] {
        near(Lgamma.apply(x), exact);
    }
    for (x, exact) in [
        (1e-30, -9.999999968289232e+29),
        (0.3, -3.5025240762240175),
        (1.4616321, -1.2036052549106669e-08),
        (1.5, 0.03648997397857652),
        (7.9, 2.0022385004315733),
        (8.1, 2.0288675072019817),
        (1e+10, 23.025850929890456),
        (-0.5, 0.03648997397857651),
        (-1e-20, 1.0000000317344784e+20),
        (-0.50408304, -2.6025495502993583e-07),
        (-7.25, 5.189977214956288),
        (-100.5, 4.615124601338064),
    ] {
        near(Digamma.apply(x), exact);
    }
    for pole in [0.0, -0.0, -1.0, -2.0, -3e9] {
        assert_eq!(Lgamma.apply(pole), f32::INFINITY);
        assert!(Digamma.apply(pole).is_nan());
    }
    assert_eq!([1.0, 2.0].map(|x| Lgamma.apply(x).abs() < 1e-14), [true; 2]);
    assert_eq!(Lgamma.apply(f32::NEG_INFINITY), f32::INFINITY);
    assert_eq!(Lgamma.apply(3e38), f32::INFINITY);
    assert!(Digamma.apply(f32::NEG_INFINITY).is_nan());
    assert_eq!(Digamma.apply(f32::INFINITY), f32::INFINITY);
}

/// Sums of Gauss' and Legendre's kind: what the functions at `x`, `x + 1` and `2 x` have to do
/// with each other, which no coefficient knows.
#[test]
fn gamma_recurrences() {
    let ln_2 = core::f64::consts::LN_2;
    for i in 1..4000 {
        let x = f64::from(i) / 64.0;
        let twice = log_gamma_above(x) + log_gamma_above(x + 0.5);
        let sum = log_gamma_above(2.0 * x) + (1.0 - 2.0 * x) * ln_2 + 0.5 * PI.ln();
        assert!((twice - sum).abs() <= 1e-13 * sum.abs().max(1.0), "{x}");
        let next = digamma_above(x + 1.0) - digamma_above(x);
        assert!((next - 1.0 / x).abs() <= 1e-13 * (1.0 / x).max(1.0), "{x}");
        assert!(
            (log(x) - x.ln()).abs() <= 2e-15 * x.ln().abs().max(1.0),
            "{x}"
        );
    }
}

#[test]
fn inverses() {
    for (x, exact) in [
        (1e-38, 8.862268678884556e-39),
        (1e-05, 8.862269030879841e-06),
        (0.3, 0.2724627261055238),
        (0.9, 1.1630870719457722),
        (0.994, 1.942975532647011),
        (0.995, 1.984872829842413),
        (0.99999, 3.123205771165071),
        (0.99999994, 3.8325068569007104),
    ] {
        near(Erfinv.apply(x), exact);
        near(Erfinv.apply(-x), -exact);
    }
    for (x, exact) in [
        (1e-45, -14.121426613350497),
        (1e-38, -12.962359339778555),
        (1e-10, -6.361340900353645),
        (0.049, -1.6546279149784446),
        (0.051, -1.6352340244907086),
        (0.3, -0.5244004784222137),
        (0.4999999, -2.2411003183999852e-07),
        (0.7, 0.5244004784222137),
        (0.97, 1.880794028630679),
        (0.99999994, 5.294704084854597),
    ] {
        near(Ndtri.apply(x), exact);
    }
    assert_eq!(
        [-1.0, 1.0].map(|x| Erfinv.apply(x)),
        [f32::NEG_INFINITY, f32::INFINITY]
    );
    assert_eq!(
        [0.0, 1.0].map(|x| Ndtri.apply(x)),
        [f32::NEG_INFINITY, f32::INFINITY]
    );
    assert!(
        [-1.5, 1.5, f32::INFINITY]
            .iter()
            .all(|&x| Erfinv.apply(x).is_nan())
    );
    assert!(
        [-0.5, 1.5, f32::INFINITY]
            .iter()
            .all(|&x| Ndtri.apply(x).is_nan())
    );
}

#[test]
fn bessel_functions() {
    for (x, i0, i1) in [
        (1e-30, 1.0, 5.000000015855385e-31),
        (0.1, 0.9071009244981154, 0.04529844741799564),
        (1.0, 0.46575960759364043, 0.2079104153497085),
        (5.0, 0.18354081260932834, 0.16397226694454234),
        (7.99, 0.1435247675096356, 0.13421734129277516),
        (8.01, 0.1433389772891269, 0.1340677673009355),
        (50.0, 0.056561626647454184, 0.055993123892895395),
        (87.5, 0.0427100468910196, 0.04246528405831043),
        (10000.0, 0.0039894726746047314, 0.003989273195983662),
        (1e+30, 3.9894227739989746e-16, 3.9894227739989746e-16),
    ] {
        near(BesselI0e.apply(x), i0);
        near(BesselI1e.apply(x), i1);
        near(BesselI1e.apply(-x), -i1);
        if x < 88.0 {
            near(BesselI0.apply(-x), i0 * f64::from(x).exp());
            near(BesselI1.apply(-x), -i1 * f64::from(x).exp());
        }
    }
    assert_eq!(BesselI1.apply(-3e38), f32::NEG_INFINITY);
    assert_eq!(BesselI0e.apply(f32::NEG_INFINITY), 0.0);
    assert!(BesselI0.apply(f32::INFINITY).is_nan());
}

#[test]
fn nan_stays() {
    macro_rules! nan {
        ($($op:ident)*) => { $(assert!($op.apply(f32::NAN).is_nan(), stringify!($op));)* };
    }
    nan!(Lgamma Digamma Erfinv Ndtri BesselI0 BesselI0e BesselI1 BesselI1e);
}
