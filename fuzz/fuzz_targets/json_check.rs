//! Bodies of the data API: accepted ones are read as written, refused ones are not quoted.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tollgate_service::fuzzing::json_check(data));
