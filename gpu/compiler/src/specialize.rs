//! Specialization constants, which naga does not write.
//!
//! In WGSL, `var<private> NAME: u32 = 0xC0DE0007u;` stands for the specialization constant number 7.
//! The constant becomes an `OpSpecConstant`, and each load of the variable a copy of it, so that drivers
//! see a constant wherever the shader reads the variable.

use std::collections::{BTreeMap, BTreeSet};

const MARK: u32 = 0xC0DE_0000;
const HEADER: usize = 5;
const OP_CONSTANT: u32 = 43;
const OP_SPEC_CONSTANT: u32 = 50;
const OP_VARIABLE: u32 = 59;
const OP_LOAD: u32 = 61;
const OP_DECORATE: u32 = 71;
const OP_COPY_OBJECT: u32 = 83;
const SPEC_ID: u32 = 1;
/// Annotations stand before the first type.
const FIRST_TYPE: u32 = 19;
const LAST_TYPE: u32 = 33;

fn opcode(word: u32) -> u32 {
    word & 0xFFFF
}

fn instructions(words: &[u32]) -> Result<Vec<&[u32]>, String> {
    let mut rest = words.get(HEADER..).ok_or("the module has no header")?;
    let mut found = Vec::new();
    while let Some(&first) = rest.first() {
        let len = (first >> 16) as usize;
        if len == 0 || len > rest.len() {
            return Err("an instruction is longer than the module".into());
        }
        let (instruction, after) = rest.split_at(len);
        found.push(instruction);
        rest = after;
    }
    Ok(found)
}

/// The module with its marked constants as specialization constants.
///
/// # Errors
/// For words that are not a module.
pub fn specialize(words: &[u32]) -> Result<Vec<u32>, String> {
    let all = instructions(words)?;
    let mut constants = BTreeMap::new();
    for each in &all {
        if let [head, _, id, value] = **each
            && opcode(head) == OP_CONSTANT
            && value & 0xFFFF_0000 == MARK
        {
            constants.insert(id, value & 0xFFFF);
        }
    }
    let mut variables = BTreeMap::new();
    for each in &all {
        if let [head, _, id, _, initial] = **each
            && opcode(head) == OP_VARIABLE
            && constants.contains_key(&initial)
        {
            variables.insert(id, initial);
        }
    }
    let used: BTreeSet<u32> = variables.values().copied().collect();
    if used.len() != constants.len() {
        return Err("a marked number is not the value of a private variable".into());
    }
    let mut out = words[..HEADER].to_vec();
    let mut decorated = false;
    for each in all {
        let code = opcode(each[0]);
        if !decorated && (FIRST_TYPE..=LAST_TYPE).contains(&code) {
            for (&id, &number) in &constants {
                out.extend([4 << 16 | OP_DECORATE, id, SPEC_ID, number]);
            }
            decorated = true;
        }
        match *each {
            [_, kind, id, _] if code == OP_CONSTANT && constants.contains_key(&id) => {
                out.extend([4 << 16 | OP_SPEC_CONSTANT, kind, id, 0]);
            }
            [_, kind, id, from] if code == OP_LOAD && variables.contains_key(&from) => {
                out.extend([4 << 16 | OP_COPY_OBJECT, kind, id, variables[&from]]);
            }
            _ => out.extend(each),
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TYPE_INT: u32 = 4 << 16 | 21;

    fn module(value: u32) -> Vec<u32> {
        let mut words = vec![0x0723_0203, 0x0001_0300, 0, 9, 0];
        words.extend([TYPE_INT, 1, 32, 0]);
        words.extend([4 << 16 | OP_CONSTANT, 1, 2, value]);
        words.extend([5 << 16 | OP_VARIABLE, 3, 4, 6, 2]);
        words.extend([4 << 16 | OP_LOAD, 1, 5, 4]);
        words
    }

    #[test]
    fn a_marked_constant_is_specialized_and_its_loads_are_copies() {
        let out = specialize(&module(MARK | 7)).unwrap();
        let found = instructions(&out).unwrap();
        assert_eq!(found[0], [4 << 16 | OP_DECORATE, 2, SPEC_ID, 7]);
        assert_eq!(found[2], [4 << 16 | OP_SPEC_CONSTANT, 1, 2, 0]);
        assert_eq!(found[4], [4 << 16 | OP_COPY_OBJECT, 1, 5, 2]);
    }

    #[test]
    fn other_constants_stay() {
        assert_eq!(specialize(&module(7)).unwrap(), module(7));
    }

    #[test]
    fn a_cut_module_is_refused() {
        let words = module(7);
        assert!(specialize(&words[..words.len() - 1]).is_err());
        assert!(specialize(&words[..3]).is_err());
    }
}
