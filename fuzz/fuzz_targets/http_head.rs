//! Heads of HTTP/1: accepted ones mean one thing, however they arrive.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tollgate_http::fuzzing::http_head(data));
