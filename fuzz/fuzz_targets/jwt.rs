//! Tokens and key sets: no panic, and one spelling per token.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tollgate_identity::fuzzing::jwt(data));
