//! Durations, instants, numbers: what is read is what is shown.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tollgate_testkit::fuzzing::durations(data));
