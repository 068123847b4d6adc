//! Ops on variables that TensorFlow's C interface offers no kernel for, and what each does.

/// An op that reads or changes variables.
#[derive(Debug)]
pub struct VariableOp {
    /// Name of the op.
    pub op: &'static str,
    /// Its inputs in order; those that are variables are marked by `&`.
    pub inputs: &'static [&'static str],
    /// The attribute with the variables' type.
    pub type_attr: &'static str,
    /// An attribute that must have this value for the row to hold.
    pub when: Option<(&'static str, bool)>,
    /// What it does, in the language of [`formula`](super::formula). The value of an op with an
    /// output is set as `output`.
    pub formula: &'static str,
}

impl VariableOp {
    /// Whether it is the step of an optimizer.
    pub fn is_step(&self) -> bool {
        self.op.contains("Apply")
    }
}

/// Rows of ops that update one or more variables.
macro_rules! updates {
    ($($op:literal [$($input:literal)*] $(if $attr:literal = $value:literal)? => $formula:literal;)*) => {
        &[$(VariableOp {
            op: $op,
            inputs: &[$($input),*],
            type_attr: "T",
            when: updates!(@when $($attr $value)?),
            formula: $formula,
        }),*]
    };
    (@when $attr:literal $value:literal) => { Some(($attr, $value)) };
    (@when) => { None };
}

/// Rows of ops that change or take slices of a variable.
macro_rules! slices {
    ($($op:literal [$($input:literal)*] => $formula:literal;)*) => {
        &[$(VariableOp {
            op: $op,
            inputs: &[$($input),*],
            type_attr: "dtype",
            when: None,
            formula: $formula,
        }),*]
    };
}

/// The ops that take or change slices along the first axis.
pub const SLICES: &[VariableOp] = slices! {
    "ResourceGather" ["&var" "indices"] => "output = gather(var, indices)";
    "ResourceScatterAdd" ["&var" "indices" "updates"] => "var += spread_add(var, indices, updates)";
    "ResourceScatterSub" ["&var" "indices" "updates"] => "var -= spread_sub(var, indices, updates)";
    "ResourceScatterMul" ["&var" "indices" "updates"] => "var = scatter_mul(var, indices, updates)";
    "ResourceScatterDiv" ["&var" "indices" "updates"] => "var = scatter_div(var, indices, updates)";
    "ResourceScatterMin" ["&var" "indices" "updates"] => "var = scatter_min(var, indices, updates)";
    "ResourceScatterMax" ["&var" "indices" "updates"] => "var = scatter_max(var, indices, updates)";
    "ResourceScatterUpdate" ["&var" "indices" "updates"] =>
        "var = scatter_update(var, indices, updates)";
    "ResourceGatherNd" ["&var" "indices"] => "output = gather_nd(var, indices)";
};

/// The steps of the optimizers. Where indices come twice, the slice that comes last stays.
pub const STEPS: &[VariableOp] = updates! {
    "ResourceApplyGradientDescent" ["&var" "alpha" "delta"] => "var -= alpha * delta";
    "ResourceApplyMomentum" ["&var" "&accum" "lr" "grad" "momentum"] if "use_nesterov" = false =>
        "accum = accum * momentum + grad; var -= accum * lr";
    "ResourceApplyMomentum" ["&var" "&accum" "lr" "grad" "momentum"] if "use_nesterov" = true =>
        "accum = accum * momentum + grad; var -= grad * lr + accum * momentum * lr";
    "ResourceApplyKerasMomentum" ["&var" "&accum" "lr" "grad" "momentum"]
        if "use_nesterov" = false => "accum = accum * momentum - grad * lr; var += accum";
    "ResourceApplyKerasMomentum" ["&var" "&accum" "lr" "grad" "momentum"]
        if "use_nesterov" = true =>
        "accum = accum * momentum - grad * lr; var += accum * momentum - grad * lr";
    "ResourceApplyAdam"
        ["&var" "&m" "&v" "beta1_power" "beta2_power" "lr" "beta1" "beta2" "epsilon" "grad"]
        if "use_nesterov" = false =>
        "alpha = lr * sqrt(1 - beta2_power) / (1 - beta1_power);
         m += (grad - m) * (1 - beta1);
         v += (square(grad) - v) * (1 - beta2);
         var -= m * alpha / (sqrt(v) + epsilon)";
    "ResourceApplyAdam"
        ["&var" "&m" "&v" "beta1_power" "beta2_power" "lr" "beta1" "beta2" "epsilon" "grad"]
        if "use_nesterov" = true =>
        "alpha = lr * sqrt(1 - beta2_power) / (1 - beta1_power);
         m += (grad - m) * (1 - beta1);
         v += (square(grad) - v) * (1 - beta2);
         var -= (grad * (1 - beta1) + beta1 * m) * alpha / (sqrt(v) + epsilon)";
    "ResourceApplyAdamWithAmsgrad"
        ["&var" "&m" "&v" "&vhat" "beta1_power" "beta2_power" "lr" "beta1" "beta2" "epsilon" "grad"]
        =>
        "alpha = lr * sqrt(1 - beta2_power) / (1 - beta1_power);
         m += (grad - m) * (1 - beta1);
         v += (square(grad) - v) * (1 - beta2);
         vhat = max(vhat, v);
         var -= m * alpha / (sqrt(vhat) + epsilon)";
    "ResourceApplyAdaMax" ["&var" "&m" "&v" "beta1_power" "lr" "beta1" "beta2" "epsilon" "grad"] =>
        "m += (grad - m) * (1 - beta1);
         v = max(beta2 * v, abs(grad));
         var -= lr / (1 - beta1_power) * (m / (v + epsilon))";
    "ResourceApplyRMSProp" ["&var" "&ms" "&mom" "lr" "rho" "momentum" "epsilon" "grad"] =>
        "ms += (square(grad) - ms) * (1 - rho);
         mom = mom * momentum + grad * lr / sqrt(ms + epsilon);
         var -= mom";
    "ResourceApplyCenteredRMSProp"
        ["&var" "&mg" "&ms" "&mom" "lr" "rho" "momentum" "epsilon" "grad"] =>
        "ms += (square(grad) - ms) * (1 - rho);
         mg += (grad - mg) * (1 - rho);
         mom = mom * momentum + grad * lr / sqrt(ms - square(mg) + epsilon);
         var -= mom";
    "ResourceApplyAdagrad" ["&var" "&accum" "lr" "grad"] if "update_slots" = true =>
        "accum += square(grad); var -= grad * lr / sqrt(accum)";
    "ResourceApplyAdagrad" ["&var" "&accum" "lr" "grad"] if "update_slots" = false =>
        "var -= grad * lr / sqrt(accum)";
    "ResourceApplyAdagradV2" ["&var" "&accum" "lr" "epsilon" "grad"] if "update_slots" = true =>
        "accum += square(grad); var -= grad * lr / (sqrt(accum) + epsilon)";
    "ResourceApplyAdagradV2" ["&var" "&accum" "lr" "epsilon" "grad"] if "update_slots" = false =>
        "var -= grad * lr / (sqrt(accum) + epsilon)";
    "ResourceApplyAdadelta" ["&var" "&accum" "&accum_update" "lr" "rho" "epsilon" "grad"] =>
        "accum = accum * rho + square(grad) * (1 - rho);
         step = sqrt(accum_update + epsilon) / sqrt(accum + epsilon) * grad;
         accum_update = accum_update * rho + square(step) * (1 - rho);
         var -= step * lr";
    "ResourceApplyAddSign" ["&var" "&m" "lr" "alpha" "sign_decay" "beta" "grad"] =>
        "m = m * beta + grad * (1 - beta);
         var -= lr * (alpha + sign_decay * sign(grad) * sign(m)) * grad";
    "ResourceApplyPowerSign" ["&var" "&m" "lr" "logbase" "sign_decay" "beta" "grad"] =>
        "m = m * beta + grad * (1 - beta);
         var -= lr * exp(logbase * sign_decay * sign(grad) * sign(m)) * grad";
    "ResourceApplyProximalGradientDescent" ["&var" "alpha" "l1" "l2" "delta"] =>
        "prox = var - delta * alpha;
         var = sign(prox) * max(abs(prox) - alpha * l1, 0) / (1 + l2 * alpha)";
    "ResourceApplyProximalAdagrad" ["&var" "&accum" "lr" "l1" "l2" "grad"] =>
        "accum += square(grad);
         rate = lr / sqrt(accum);
         prox = var - grad * rate;
         var = sign(prox) * max(abs(prox) - rate * l1, 0) / (1 + l2 * rate)";
    "ResourceStridedSliceAssign" ["&ref" "begin" "end" "strides" "value"] =>
        "ref = strided_slice_update(ref, begin, end, strides, value)";
    "ResourceApplyAdagradDA" ["&var" "&sum" "&squares" "grad" "lr" "l1" "l2" "global_step"] =>
        "step = cast(global_step);
         sum += grad;
         squares += square(grad);
         var = (0 - lr) * sign(sum) * max(abs(sum) - l1 * step, 0) / (l2 * step * lr + sqrt(squares))";
    "ResourceSparseApplyAdagradDA"
        ["&var" "&sum" "&squares" "grad" "indices" "lr" "l1" "l2" "global_step"] =>
        "step = cast(global_step);
         a = gather(sum, indices) + grad;
         b = gather(squares, indices) + square(grad);
         new = (0 - lr) * sign(a) * max(abs(a) - l1 * step, 0) / (l2 * step * lr + sqrt(b));
         sum = scatter_update(sum, indices, a);
         squares = scatter_update(squares, indices, b);
         var = scatter_update(var, indices, new)";
    "ResourceScatterNdAdd" ["&var" "indices" "updates"] =>
        "var += spread_nd_add(var, indices, updates)";
    "ResourceScatterNdSub" ["&var" "indices" "updates"] =>
        "var -= spread_nd_sub(var, indices, updates)";
    "ResourceScatterNdUpdate" ["&var" "indices" "updates"] =>
        "var = scatter_nd_update(var, indices, updates)";
    "ResourceScatterNdMin" ["&var" "indices" "updates"] =>
        "var = scatter_nd_min(var, indices, updates)";
    "ResourceScatterNdMax" ["&var" "indices" "updates"] =>
        "var = scatter_nd_max(var, indices, updates)";
    "ResourceApplyFtrl" ["&var" "&accum" "&linear" "grad" "lr" "l1" "l2" "lr_power"]
        if "multiply_linear_by_lr" = false =>
        "new = accum + square(grad);
         power = pow(new, 0 - lr_power);
         linear += grad - (power - pow(accum, 0 - lr_power)) / lr * var;
         var = (0 - sign(linear)) * max(abs(linear) - l1, 0) / (power / lr + (l2 + l2));
         accum = new";
    "ResourceApplyFtrl" ["&var" "&accum" "&linear" "grad" "lr" "l1" "l2" "lr_power"]
        if "multiply_linear_by_lr" = true =>
        "new = accum + square(grad);
         power = pow(new, 0 - lr_power);
         linear += grad * lr - (power - pow(accum, 0 - lr_power)) * var;
         var = (0 - sign(linear)) * max(abs(linear) - l1 * lr, 0) / (power + (l2 + l2) * lr);
         accum = new";
    "ResourceApplyFtrlV2" ["&var" "&accum" "&linear" "grad" "lr" "l1" "l2" "l2_shrinkage" "lr_power"]
        if "multiply_linear_by_lr" = true =>
        "new = accum + square(grad);
         power = pow(new, 0 - lr_power);
         linear += (grad + (l2_shrinkage + l2_shrinkage) * var) * lr - (power - pow(accum, 0 - lr_power)) * var;
         var = (0 - sign(linear)) * max(abs(linear) - l1 * lr, 0) / (power + (l2 + l2) * lr);
         accum = new";
    "ResourceApplyFtrlV2" ["&var" "&accum" "&linear" "grad" "lr" "l1" "l2" "l2_shrinkage" "lr_power"]
        if "multiply_linear_by_lr" = false =>
        "new = accum + square(grad);
         power = pow(new, 0 - lr_power);
         linear += (grad + (l2_shrinkage + l2_shrinkage) * var) - (power - pow(accum, 0 - lr_power)) / lr * var;
         var = (0 - sign(linear)) * max(abs(linear) - l1, 0) / (power / lr + (l2 + l2));
         accum = new";
    "ResourceSparseApplyMomentum" ["&var" "&accum" "lr" "grad" "indices" "momentum"]
        if "use_nesterov" = false =>
        "a = gather(accum, indices) * momentum + grad;
         accum = scatter_update(accum, indices, a);
         var -= spread_sub(var, indices, a * lr)";
    "ResourceSparseApplyMomentum" ["&var" "&accum" "lr" "grad" "indices" "momentum"]
        if "use_nesterov" = true =>
        "a = gather(accum, indices) * momentum + grad;
         accum = scatter_update(accum, indices, a);
         var -= spread_sub(var, indices, grad * lr + a * momentum * lr)";
    "ResourceSparseApplyKerasMomentum" ["&var" "&accum" "lr" "grad" "indices" "momentum"]
        if "use_nesterov" = false =>
        "a = gather(accum, indices) * momentum - grad * lr;
         accum = scatter_update(accum, indices, a);
         var += spread_add(var, indices, a)";
    "ResourceSparseApplyKerasMomentum" ["&var" "&accum" "lr" "grad" "indices" "momentum"]
        if "use_nesterov" = true =>
        "a = gather(accum, indices) * momentum - grad * lr;
         accum = scatter_update(accum, indices, a);
         var += spread_add(var, indices, a * momentum - grad * lr)";
    "ResourceSparseApplyAdagrad" ["&var" "&accum" "lr" "grad" "indices"]
        if "update_slots" = true =>
        "a = gather(accum, indices) + square(grad);
         accum = scatter_update(accum, indices, a);
         var -= spread_sub(var, indices, grad * lr / sqrt(a))";
    "ResourceSparseApplyAdagrad" ["&var" "&accum" "lr" "grad" "indices"]
        if "update_slots" = false =>
        "var -= spread_sub(var, indices, grad * lr / sqrt(gather(accum, indices)))";
    "ResourceSparseApplyAdagradV2" ["&var" "&accum" "lr" "epsilon" "grad" "indices"]
        if "update_slots" = true =>
        "a = gather(accum, indices) + square(grad);
         accum = scatter_update(accum, indices, a);
         var -= spread_sub(var, indices, grad * lr / (sqrt(a) + epsilon))";
    "ResourceSparseApplyAdagradV2" ["&var" "&accum" "lr" "epsilon" "grad" "indices"]
        if "update_slots" = false =>
        "var -= spread_sub(var, indices, grad * lr / (sqrt(gather(accum, indices)) + epsilon))";
    "ResourceSparseApplyRMSProp"
        ["&var" "&ms" "&mom" "lr" "rho" "momentum" "epsilon" "grad" "indices"] =>
        "a = gather(ms, indices) * rho + square(grad) * (1 - rho);
         b = gather(mom, indices) * momentum + grad * lr / sqrt(a + epsilon);
         ms = scatter_update(ms, indices, a);
         mom = scatter_update(mom, indices, b);
         var -= spread_sub(var, indices, b)";
    "ResourceSparseApplyAdadelta"
        ["&var" "&accum" "&accum_update" "lr" "rho" "epsilon" "grad" "indices"] =>
        "a = gather(accum, indices) * rho + square(grad) * (1 - rho);
         before = gather(accum_update, indices);
         step = sqrt(before + epsilon) / sqrt(a + epsilon) * grad;
         accum = scatter_update(accum, indices, a);
         accum_update =
             scatter_update(accum_update, indices, before * rho + square(step) * (1 - rho));
         var -= spread_sub(var, indices, step * lr)";
    "ResourceSparseApplyCenteredRMSProp"
        ["&var" "&mg" "&ms" "&mom" "lr" "rho" "momentum" "epsilon" "grad" "indices"] =>
        "a = gather(ms, indices) * rho + square(grad) * (1 - rho);
         b = gather(mg, indices) * rho + grad * (1 - rho);
         c = gather(mom, indices) * momentum + grad * lr / sqrt(a - square(b) + epsilon);
         ms = scatter_update(ms, indices, a);
         mg = scatter_update(mg, indices, b);
         mom = scatter_update(mom, indices, c);
         var -= spread_sub(var, indices, c)";
    "ResourceSparseApplyProximalGradientDescent" ["&var" "alpha" "l1" "l2" "grad" "indices"] =>
        "prox = gather(var, indices) - grad * alpha;
         new = sign(prox) * max(abs(prox) - alpha * l1, 0) / (1 + l2 * alpha);
         var = scatter_update(var, indices, new)";
    "ResourceSparseApplyProximalAdagrad" ["&var" "&accum" "lr" "l1" "l2" "grad" "indices"] =>
        "a = gather(accum, indices) + square(grad);
         rate = lr / sqrt(a);
         prox = gather(var, indices) - grad * rate;
         new = sign(prox) * max(abs(prox) - rate * l1, 0) / (1 + l2 * rate);
         accum = scatter_update(accum, indices, a);
         var = scatter_update(var, indices, new)";
    "ResourceSparseApplyFtrl"
        ["&var" "&accum" "&linear" "grad" "indices" "lr" "l1" "l2" "lr_power"]
        if "multiply_linear_by_lr" = true =>
        "old = gather(accum, indices);
         value = gather(var, indices);
         new = old + square(grad);
         power = pow(new, 0 - lr_power);
         line = gather(linear, indices) + grad * lr - (power - pow(old, 0 - lr_power)) * value;
         value = (0 - sign(line)) * max(abs(line) - l1 * lr, 0) / (power + (l2 + l2) * lr);
         accum = scatter_update(accum, indices, new);
         linear = scatter_update(linear, indices, line);
         var = scatter_update(var, indices, value)";
    "ResourceSparseApplyFtrl"
        ["&var" "&accum" "&linear" "grad" "indices" "lr" "l1" "l2" "lr_power"]
        if "multiply_linear_by_lr" = false =>
        "old = gather(accum, indices);
         value = gather(var, indices);
         new = old + square(grad);
         power = pow(new, 0 - lr_power);
         line = gather(linear, indices) + grad - (power - pow(old, 0 - lr_power)) / lr * value;
         value = (0 - sign(line)) * max(abs(line) - l1, 0) / (power / lr + (l2 + l2));
         accum = scatter_update(accum, indices, new);
         linear = scatter_update(linear, indices, line);
         var = scatter_update(var, indices, value)";
    "ResourceSparseApplyFtrlV2"
        ["&var" "&accum" "&linear" "grad" "indices" "lr" "l1" "l2" "l2_shrinkage" "lr_power"]
        if "multiply_linear_by_lr" = true =>
        "old = gather(accum, indices);
         value = gather(var, indices);
         new = old + square(grad);
         power = pow(new, 0 - lr_power);
         line = gather(linear, indices) + (grad + (l2_shrinkage + l2_shrinkage) * value) * lr - (power - pow(old, 0 - lr_power)) * value;
         value = (0 - sign(line)) * max(abs(line) - l1 * lr, 0) / (power + (l2 + l2) * lr);
         accum = scatter_update(accum, indices, new);
         linear = scatter_update(linear, indices, line);
         var = scatter_update(var, indices, value)";
    "ResourceSparseApplyFtrlV2"
        ["&var" "&accum" "&linear" "grad" "indices" "lr" "l1" "l2" "l2_shrinkage" "lr_power"]
        if "multiply_linear_by_lr" = false =>
        "old = gather(accum, indices);
         value = gather(var, indices);
         new = old + square(grad);
         power = pow(new, 0 - lr_power);
         line = gather(linear, indices) + (grad + (l2_shrinkage + l2_shrinkage) * value) - (power - pow(old, 0 - lr_power)) / lr * value;
         value = (0 - sign(line)) * max(abs(line) - l1, 0) / (power / lr + (l2 + l2));
         accum = scatter_update(accum, indices, new);
         linear = scatter_update(linear, indices, line);
         var = scatter_update(var, indices, value)";
};

/// Whether an op reads and writes parts of a variable that the sum or difference of two values does
/// not express. For it to be one step for others it has to be one node; as several, it would undo
/// what others do to other parts meanwhile.
pub fn is_one_step(op: &str) -> bool {
    let part = op.strip_prefix("ResourceScatter");
    let reduction = part.map(|part| part.strip_prefix("Nd").unwrap_or(part));
    reduction.is_some_and(|reduction| !matches!(reduction, "Add" | "Sub"))
        || op == "ResourceStridedSliceAssign"
        || op.starts_with("ResourceSparseApply")
}

/// All ops, each once.
pub fn ops() -> impl Iterator<Item = &'static str> {
    let mut last = "";
    SLICES.iter().chain(STEPS).filter_map(move |row| {
        let new = row.op != last;
        last = row.op;
        new.then_some(row.op)
    })
}

/// The row of `op` whose condition `flag` confirms.
pub fn find(op: &str, flag: impl Fn(&str) -> Option<bool>) -> Option<&'static VariableOp> {
    let holds = |row: &&VariableOp| {
        row.op == op
            && row
                .when
                .is_none_or(|(attr, expected)| flag(attr) == Some(expected))
    };
    SLICES.iter().chain(STEPS).find(holds)
}
