"""The version of every package that this repository makes."""

VERSION = "0.1.0"
