//! A blocking client of a Redis server. Starting servers is the business of `tollgate-lab`.

mod client;

pub use client::RedisClient;
