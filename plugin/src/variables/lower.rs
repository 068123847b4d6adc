//! From a row of the table to ops that every TensorFlow can run.

use tfp_bindings::proto::attr::Attr;
use tfp_bindings::{DataType, Error, Result};

use super::formula::{Effect, Expression, Statement, parse};
use super::table::VariableOp;

/// Where the ops go: into a graph, or to the eager runtime.
pub trait Emit {
    /// An output of an op.
    type Value: Clone;

    /// Input `index` of the op that is replaced.
    ///
    /// # Errors
    /// If there is no such input.
    fn input(&mut self, index: usize) -> Result<Self::Value>;

    /// A constant of rank 0; `bytes` are its one element.
    ///
    /// # Errors
    /// If it can't be made.
    fn scalar(&mut self, data_type: DataType, bytes: &[u8]) -> Result<Self::Value>;

    /// The only output of an op.
    ///
    /// # Errors
    /// If the op can't be run.
    fn op(
        &mut self,
        op: &'static str,
        inputs: &[Self::Value],
        attrs: &[(&'static str, Attr)],
    ) -> Result<Self::Value>;

    /// An op without outputs that changes a variable.
    ///
    /// # Errors
    /// If the op can't be run.
    fn effect(
        &mut self,
        op: &'static str,
        inputs: &[Self::Value],
        attrs: &[(&'static str, Attr)],
    ) -> Result<()>;

    /// Makes a value the output of the op that is replaced.
    ///
    /// # Errors
    /// If it can't be.
    fn output(&mut self, value: &Self::Value) -> Result<()>;
}

/// What a node says of itself.
#[derive(Clone, Copy, Debug)]
pub struct Types {
    /// Type of the variables.
    pub variable: DataType,
    /// Type of the indices, where there are any.
    pub indices: Option<DataType>,
    /// Axes that indices and slices share; of gathers only.
    pub batch_dims: i64,
    /// The values of [`MASKS`], of slices only.
    pub masks: [i64; 5],
}

/// The attributes of a slice by begin, end and step.
pub const MASKS: [&str; 5] = [
    "begin_mask",
    "end_mask",
    "ellipsis_mask",
    "new_axis_mask",
    "shrink_axis_mask",
];

/// Emits what `row` does.
///
/// # Errors
/// What `emit` refuses, and for types that have no constants here.
pub fn lower<E: Emit>(row: &VariableOp, types: Types, emit: &mut E) -> Result<()> {
    let statements = parse(row.formula).map_err(|error| Error::internal(error.clone()))?;
    let mut scope = Scope {
        types,
        inputs: row.inputs,
        values: Vec::new(),
        emit,
    };
    // What is left to be done to each variable, in order.
    let mut changes: Vec<(&'static str, Change<E::Value>)> = Vec::new();
    for (place, statement) in statements.iter().enumerate() {
        let target = statement.target;
        let is_variable = scope.variable(target).is_some();
        let value = scope.evaluate(&statement.value)?;
        let (before, after) = (&statements[..place], &statements[place + 1..]);
        let reads = |other: &Statement| other.target == target || other.value.reads(target);
        let (sum, update) = match statement.effect {
            Effect::Set => ("", ""),
            Effect::Add => ("AddV2", "AssignAddVariableOp"),
            Effect::Sub => ("Sub", "AssignSubVariableOp"),
        };
        // TensorFlow's op that adds to a variable is one step, whatever others do to it.
        let is_alone = !before
            .iter()
            .chain(after)
            .any(|other| other.target == target);
        let by_update = is_variable && is_alone && statement.effect != Effect::Set;
        if by_update {
            changes.push((target, Change::Update(update, value.clone())));
        }
        if by_update && !after.iter().any(reads) {
            continue;
        }
        let value = if statement.effect == Effect::Set {
            value
        } else {
            let old = scope.name(target)?;
            scope.arithmetic(sum, &[old, value])?
        };
        scope.values.retain(|(name, _)| *name != target);
        scope.values.push((target, value));
        if is_variable && !changes.iter().any(|(changed, _)| *changed == target) {
            changes.push((target, Change::Set));
        }
    }
    for (target, change) in changes {
        match change {
            Change::Update(op, value) => scope.assign(op, target, value)?,
            Change::Set => {
                let value = scope.name(target)?;
                scope.assign("AssignVariableOp", target, value)?;
            }
        }
    }
    if let Some((_, value)) = scope.values.iter().find(|(name, _)| *name == "output") {
        let value = value.clone();
        scope.emit.output(&value)?;
    }
    Ok(())
}

/// What is done to a variable in the end.
enum Change<V> {
    /// It gets the last value of its name.
    Set,
    /// This op changes it by a value.
    Update(&'static str, V),
}

/// The values that names stand for.
struct Scope<'a, E: Emit> {
    types: Types,
    inputs: &'static [&'static str],
    values: Vec<(&'static str, E::Value)>,
    emit: &'a mut E,
}

impl<E: Emit> Scope<'_, E> {
    /// The number of the input that is the variable `name`.
    fn variable(&self, name: &str) -> Option<usize> {
        self.inputs
            .iter()
            .position(|input| input.strip_prefix('&') == Some(name))
    }

    fn assign(&mut self, op: &'static str, target: &str, value: E::Value) -> Result<()> {
        let index = self
            .variable(target)
            .ok_or_else(|| Error::internal(format!("{target} is no variable")))?;
        let handle = self.emit.input(index)?;
        let attrs = [("dtype", Attr::Type(self.types.variable))];
        self.emit.effect(op, &[handle, value], &attrs)
    }

    /// The value of a name; a variable is read when it is first needed.
    fn name(&mut self, name: &'static str) -> Result<E::Value> {
        if let Some((_, value)) = self.values.iter().find(|(known, _)| *known == name) {
            return Ok(value.clone());
        }
        let value = if let Some(index) = self.variable(name) {
            let handle = self.emit.input(index)?;
            let attrs = [("dtype", Attr::Type(self.types.variable))];
            self.emit.op("ReadVariableOp", &[handle], &attrs)?
        } else {
            let index = self.inputs.iter().position(|input| *input == name);
            let index = index.ok_or_else(|| Error::internal(format!("nothing is {name}")))?;
            self.emit.input(index)?
        };
        self.values.push((name, value.clone()));
        Ok(value)
    }

    fn evaluate(&mut self, expression: &Expression) -> Result<E::Value> {
        match expression {
            Expression::Name(name) => self.name(name),
            Expression::Number(number) => {
                let bytes = scalar_bytes(self.types.variable, *number)?;
                self.emit.scalar(self.types.variable, &bytes)
            }
            Expression::Binary(sign, left, right) => {
                let values = [self.evaluate(left)?, self.evaluate(right)?];
                let op = match sign {
                    '+' => "AddV2",
                    '-' => "Sub",
                    '*' => "Mul",
                    _ => "RealDiv",
                };
                self.arithmetic(op, &values)
            }
            Expression::Call(function, arguments) => {
                let values = arguments
                    .iter()
                    .map(|argument| self.evaluate(argument))
                    .collect::<Result<Vec<_>>>()?;
                self.call(function, &values)
            }
        }
    }

    fn arithmetic(&mut self, op: &'static str, values: &[E::Value]) -> Result<E::Value> {
        let attrs = [("T", Attr::Type(self.types.variable))];
        self.emit.op(op, values, &attrs)
    }

    fn call(&mut self, function: &'static str, values: &[E::Value]) -> Result<E::Value> {
        let op = match function {
            "abs" => "Abs",
            "exp" => "Exp",
            "max" => "Maximum",
            "pow" => "Pow",
            "sign" => "Sign",
            "sqrt" => "Sqrt",
            "square" => "Square",
            "cast" => return self.cast(values),
            "strided_slice_update" => return self.strided_slice_update(values),
            "spread_add" => return self.spread(-0.0, false, values),
            "spread_sub" => return self.spread(0.0, false, values),
            "spread_nd_add" => return self.spread(-0.0, true, values),
            "spread_nd_sub" => return self.spread(0.0, true, values),
            "gather" => return self.gather(values),
            "gather_nd" => return self.gather_nd(values),
            _ => match (
                function.strip_prefix("scatter_nd_"),
                function.strip_prefix("scatter_"),
            ) {
                (Some(reduction), _) => return self.scatter(reduction, true, values),
                (None, Some(reduction)) => return self.scatter(reduction, false, values),
                (None, None) => return Err(Error::internal(format!("{function} is no function"))),
            },
        };
        self.arithmetic(op, values)
    }

    fn index_type(&self) -> Result<DataType> {
        let found = self.types.indices;
        found.ok_or_else(|| Error::internal("the node has no type of indices"))
    }

    fn gather(&mut self, values: &[E::Value]) -> Result<E::Value> {
        // The slices are those of the axis after the shared ones.
        let axis = i32::try_from(self.types.batch_dims)
            .map_err(|_| Error::invalid("batch_dims is out of range"))?;
        let axis = self.emit.scalar(DataType::INT32, &axis.to_le_bytes())?;
        let mut inputs = values.to_vec();
        inputs.push(axis);
        let attrs = [
            ("Tparams", Attr::Type(self.types.variable)),
            ("Tindices", Attr::Type(self.index_type()?)),
            ("Taxis", Attr::Type(DataType::INT32)),
            ("batch_dims", Attr::Int(self.types.batch_dims)),
        ];
        self.emit.op("GatherV2", &inputs, &attrs)
    }

    /// An int64 as a number of the variable's type.
    fn cast(&mut self, values: &[E::Value]) -> Result<E::Value> {
        let attrs = [
            ("SrcT", Attr::Type(DataType::INT64)),
            ("DstT", Attr::Type(self.types.variable)),
        ];
        self.emit.op("Cast", values, &attrs)
    }

    fn strided_slice_update(&mut self, values: &[E::Value]) -> Result<E::Value> {
        let mut attrs = vec![
            ("T", Attr::Type(self.types.variable)),
            ("Index", Attr::Type(self.index_type()?)),
        ];
        let masks = MASKS.iter().zip(self.types.masks);
        attrs.extend(masks.map(|(&name, mask)| (name, Attr::Int(mask))));
        self.emit.op("TensorStridedSliceUpdate", values, &attrs)
    }

    /// A tensor of the first value's shape that has updates where indices name elements, added up,
    /// and elsewhere a zero of the sign that changes nothing.
    fn spread(&mut self, zero: f32, nd: bool, values: &[E::Value]) -> Result<E::Value> {
        let [like, rest @ ..] = values else {
            return Err(Error::internal("there is nothing to spread"));
        };
        let attrs = [
            ("T", Attr::Type(self.types.variable)),
            ("out_type", Attr::Type(DataType::INT32)),
        ];
        let shape = self.emit.op("Shape", std::slice::from_ref(like), &attrs)?;
        let bytes = scalar_bytes(self.types.variable, zero)?;
        let zero = self.emit.scalar(self.types.variable, &bytes)?;
        let attrs = [
            ("T", Attr::Type(self.types.variable)),
            ("index_type", Attr::Type(DataType::INT32)),
        ];
        let zeros = self.emit.op("Fill", &[shape, zero], &attrs)?;
        let values: Vec<_> = std::iter::once(zeros).chain(rest.iter().cloned()).collect();
        self.scatter("add", nd, &values)
    }

    fn gather_nd(&mut self, values: &[E::Value]) -> Result<E::Value> {
        let attrs = [
            ("Tparams", Attr::Type(self.types.variable)),
            ("Tindices", Attr::Type(self.index_type()?)),
        ];
        self.emit.op("GatherNd", values, &attrs)
    }

    fn scatter(
        &mut self,
        reduction: &'static str,
        nd: bool,
        values: &[E::Value],
    ) -> Result<E::Value> {
        let attrs = [
            ("T", Attr::Type(self.types.variable)),
            ("Tindices", Attr::Type(self.index_type()?)),
            ("reduction", Attr::String(reduction.as_bytes().to_vec())),
            ("nd", Attr::Bool(nd)),
        ];
        self.emit.op("TfpScatter", values, &attrs)
    }
}

/// A number as an element of a tensor.
fn scalar_bytes(data_type: DataType, number: f32) -> Result<Vec<u8>> {
    match data_type {
        DataType::FLOAT => Ok(number.to_le_bytes().to_vec()),
        DataType::DOUBLE => Ok(f64::from(number).to_le_bytes().to_vec()),
        // The table has small integers only, which need no rounding.
        DataType::BFLOAT16 => Ok(number.to_le_bytes()[2..].to_vec()),
        DataType::COMPLEX64 if number == 0.0 => Ok(number.to_le_bytes().repeat(2)),
        DataType::COMPLEX128 if number == 0.0 => Ok(f64::from(number).to_le_bytes().repeat(2)),
        DataType::HALF if number == 0.0 => {
            Ok(vec![0, if number.is_sign_negative() { 0x80 } else { 0 }])
        }
        DataType::HALF if number == 1.0 => Ok(0x3c00_u16.to_le_bytes().to_vec()),
        _ => match data_type.size() {
            // An integer has one zero.
            Some(size) if number == 0.0 => Ok(vec![0; size]),
            _ => Err(Error::invalid(format!("{data_type} has no constants here"))),
        },
    }
}

#[cfg(test)]
mod tests;
