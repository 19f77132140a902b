//! Sequences of decisions against the oracle.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tollgate_testkit::fuzzing::decision_sequence(data));
