"""The text of a generated crate. `crate.py` is the door."""
