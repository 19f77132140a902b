//! Bodies of the data API: accepted ones say what was taken from them, refused ones are not repeated.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tollgate_service::fuzzing::json_check(data));
