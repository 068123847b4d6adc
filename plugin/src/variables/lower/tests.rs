use super::super::table::{SLICES, STEPS, ops};
use super::*;

/// Writes down what is emitted.
#[derive(Default)]
struct Script(Vec<String>);

impl Script {
    fn line(&mut self, op: &str, inputs: &[String]) -> String {
        self.0.push(format!("{op}({})", inputs.join(", ")));
        format!("%{}", self.0.len() - 1)
    }
}

impl Emit for Script {
    type Value = String;

    fn input(&mut self, index: usize) -> Result<String> {
        Ok(format!("${index}"))
    }

    fn scalar(&mut self, data_type: DataType, bytes: &[u8]) -> Result<String> {
        Ok(format!("{data_type}{bytes:?}"))
    }

    fn op(
        &mut self,
        op: &'static str,
        inputs: &[String],
        _: &[(&'static str, Attr)],
    ) -> Result<String> {
        Ok(self.line(op, inputs))
    }

    fn effect(
        &mut self,
        op: &'static str,
        inputs: &[String],
        _: &[(&'static str, Attr)],
    ) -> Result<()> {
        self.line(op, inputs);
        Ok(())
    }

    fn output(&mut self, value: &String) -> Result<()> {
        self.line("output", std::slice::from_ref(value));
        Ok(())
    }
}

fn script(row: &VariableOp) -> Vec<String> {
    let types = Types {
        variable: DataType::FLOAT,
        indices: Some(DataType::INT64),
        batch_dims: 0,
        masks: [0; 5],
    };
    let mut script = Script::default();
    lower(row, types, &mut script).unwrap_or_else(|e| panic!("{}: {e}", row.op));
    script.0
}

fn row(op: &str) -> &'static VariableOp {
    let mut rows = SLICES.iter().chain(STEPS);
    rows.find(|row| row.op == op).unwrap()
}

#[test]
fn every_row_is_emitted_and_ends_with_what_it_changes() {
    for row in SLICES.iter().chain(STEPS) {
        let lines = script(row);
        let last = lines.last().unwrap();
        let effect = last.starts_with("Assign") || last.starts_with("output");
        assert!(effect, "{}: {last}", row.op);
        for (place, input) in row.inputs.iter().enumerate() {
            let used = format!("${place}");
            let found = lines.iter().any(|line| {
                let list = line.split(['(', ')', ',', ' ']);
                list.into_iter().any(|word| word == used)
            });
            assert!(found, "{} does not use {input}", row.op);
        }
    }
    assert_eq!(
        ops().count(),
        ops().collect::<std::collections::HashSet<_>>().len()
    );
}

#[test]
fn a_variable_that_is_not_read_is_updated_in_place() {
    let lines = script(row("ResourceApplyGradientDescent"));
    assert_eq!(lines, ["Mul($1, $2)", "AssignSubVariableOp($0, %0)"]);
    let lines = script(row("ResourceApplyMomentum"));
    assert_eq!(
        lines,
        [
            "ReadVariableOp($1)",
            "Mul(%0, $4)",
            "AddV2(%1, $3)",
            "Mul(%2, $2)",
            "AssignVariableOp($1, %2)",
            "AssignSubVariableOp($0, %3)",
        ]
    );
}

#[test]
fn what_is_added_is_added_by_the_op_for_it() {
    let lines = script(row("ResourceApplyAdam"));
    let effects: Vec<_> = lines.iter().filter(|l| l.starts_with("Assign")).collect();
    let ops: Vec<_> = effects
        .iter()
        .map(|l| l.split(',').next().unwrap())
        .collect();
    let expected = [
        "AssignAddVariableOp($1",
        "AssignAddVariableOp($2",
        "AssignSubVariableOp($0",
    ];
    assert_eq!(ops, expected);
}

#[test]
fn slices_are_taken_and_changed_as_values() {
    assert_eq!(
        script(row("ResourceGather")),
        [
            "ReadVariableOp($0)",
            "GatherV2(%0, $1, int32[0, 0, 0, 0])",
            "output(%1)"
        ]
    );
    assert_eq!(
        script(row("ResourceScatterMul")),
        [
            "ReadVariableOp($0)",
            "TfpScatter(%0, $1, $2)",
            "AssignVariableOp($0, %1)"
        ]
    );
    assert_eq!(
        script(row("ResourceScatterAdd")),
        [
            "ReadVariableOp($0)",
            "Shape(%0)",
            "Fill(%1, float32[0, 0, 0, 128])",
            "TfpScatter(%2, $1, $2)",
            "AssignAddVariableOp($0, %3)"
        ]
    );
}
