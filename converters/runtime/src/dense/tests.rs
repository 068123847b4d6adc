use super::*;

#[test]
fn ends_take_turns() {
    let turn = Turn::default();
    assert_eq!(
        [turn.next(), turn.next(), turn.next()],
        [false, true, false]
    );
    assert!(!turn.clone().next());
}
