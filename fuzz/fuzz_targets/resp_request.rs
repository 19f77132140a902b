//! RESP: the same commands however the bytes arrive.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tollgate_resp_server::fuzzing::resp_request(data));
