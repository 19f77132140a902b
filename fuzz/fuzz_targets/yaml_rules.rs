//! Any bytes are rules or a report.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tollgate_testkit::fuzzing::yaml_rules(data));
