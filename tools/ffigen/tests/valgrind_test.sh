#!/bin/sh
# Runs test programs under valgrind: an invalid access or a leak fails the test.
set -eu
for program in "$@"; do
  valgrind --quiet --error-exitcode=9 --leak-check=full \
    --show-leak-kinds=definite,indirect --errors-for-leak-kinds=definite,indirect \
    "$program" --test-threads=1
done
