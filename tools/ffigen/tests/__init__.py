"""Tests of ffigen and the data they compare with."""
