//! Receipts: any bytes are a reservation or none.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tollgate_engine::fuzzing::receipts(data));
